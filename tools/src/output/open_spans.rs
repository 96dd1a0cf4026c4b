//! What was under way: the open spans of each thread.

use ringmark_decoder::{Dump, OpenSpan, OpenThread};

use super::printable;
use super::units::duration;

/// Levels of nesting that are shown by indentation; deeper ones stand below each other.
const INDENTED: usize = 16;

/// Lines of text about the open spans of all threads, one for each span, nested by indentation:
/// `open: worker-1[812] http.handle 1.30 ms worker=1`. Empty: none is open.
pub(crate) fn text(dump: &Dump) -> String {
    let mut out = String::new();
    for thread in dump.open_spans() {
        let front = format!("open: {}[{}]", thread_name(&thread), thread.tid);
        for (depth, span) in thread.spans.iter().enumerate() {
            let depth = 2 * depth.min(INDENTED);
            out += &format!("{front} {:depth$}{}\n", "", span_text(span));
        }
        let depth = 2 * thread.spans.len().min(INDENTED);
        if thread.deeper > 0 {
            out += &format!("{front} {:depth$}+ {} deeper\n", "", thread.deeper);
        }
        if thread.moving {
            out += &format!("{front} {:depth$}(it went on: others may be missing)\n", "");
        }
    }
    out
}

fn span_text(span: &OpenSpan<'_>) -> String {
    let name = printable(&String::from_utf8_lossy(&span.ty.name));
    let mut args = Vec::new();
    span.text_args(&mut args);
    let args = String::from_utf8_lossy(&args).into_owned();
    format!("{name} {}{args}", duration(span.open_ns))
}

/// Name of a thread, or of its process where it has none.
fn thread_name(thread: &OpenThread<'_>) -> String {
    let name = match thread.comm {
        [] => thread.session.process_name(),
        name => name,
    };
    printable(&String::from_utf8_lossy(name))
}
