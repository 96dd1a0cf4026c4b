//! The metadata of a trace, in CTF's description language (TSDL).

use ringmark_decoder::{Session, escape};

use super::event_class::EventClass;

const TYPES: &str = "/* CTF 1.8 */

typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
typealias integer { size = 64; align = 8; signed = true; } := i64;
typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := f64;
";

/// All traces have one clock, wall time, so that readers put them side by side.
const CLOCK_AND_STREAM: &str = "
clock {
	name = \"realtime\";
	uuid = \"8e0d41fa-2c53-4a0b-9c1e-d2d0a5b1f7c4\";
	description = \"CLOCK_REALTIME, ns since 1970\";
	freq = 1000000000;
	precision = 1;
	offset_s = 0;
	offset = 0;
	absolute = TRUE;
};

typealias integer {
	size = 64; align = 8; signed = false;
	map = clock.realtime.value;
} := at;

stream {
	id = 0;
	packet.context := struct {
		at timestamp_begin;
		at timestamp_end;
		u64 content_size;
		u64 packet_size;
		u64 events_discarded;
		u64 packet_seq_num;
		u32 _tid;
		string _thread;
	};
	event.header := struct {
		u32 id;
		at timestamp;
	};
};
";

/// A text between quotes.
fn quoted(text: &[u8]) -> String {
    let mut shown = Vec::new();
    escape::text(text, &mut shown);
    let shown = String::from_utf8_lossy(&shown).replace('\\', "\\\\");
    format!("\"{}\"", shown.replace('"', "\\\""))
}

/// What stands before the event classes.
pub(super) fn head(session: &Session) -> String {
    let uuid = session.uuid;
    let (host, name) = (quoted(session.host()), quoted(session.process_name()));
    let (pid, service) = (session.pid(), quoted(session.service()));
    format!(
        "{TYPES}
trace {{
\tmajor = 1;
\tminor = 8;
\tuuid = \"{uuid}\";
\tbyte_order = le;
\tpacket.header := struct {{
\t\tu32 magic;
\t\tu8 uuid[16];
\t\tu32 stream_id;
\t}};
}};

env {{
\ttracer_name = \"ringmark\";
\thostname = {host};
\tprocname = {name};
\tservice = {service};
\tvpid = {pid};
}};
{CLOCK_AND_STREAM}"
    )
}

/// An event class with its number.
pub(super) fn class(number: u32, name: &[u8], class: &EventClass) -> String {
    let mut out = format!(
        "\nevent {{\n\tname = {};\n\tid = {number};\n\tstream_id = 0;\n\tfields := struct {{\n",
        quoted(name)
    );
    class.describe(&mut out);
    out.push_str("\t};\n};\n");
    out
}
