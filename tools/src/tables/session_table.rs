//! Sessions of trace files: as rows of `list`, as facts and as JSON.

use std::io;
use std::io::Write;

use ringmark_console::json::Head;
use ringmark_console::units::{count, duration};
use ringmark_console::{Table, host_name, json, printable};
use ringmark_decoder::{Dump, Session, Stamper};
use ringmark_format::attribute::tag;
use ringmark_format::session::{Clock, Mode};
use serde_json::json;

use super::host_table::moment;

/// The sessions as a table, by host and by their start.
pub(crate) fn table(dump: &Dump) -> Table {
    let mut table = Table::new(&[
        "HOST",
        "SERVICE",
        "PID",
        "NAME",
        ">EVENTS",
        "FIRST SEEN",
        "LAST SEEN",
        "END",
    ]);
    let mut sessions: Vec<_> = dump.sessions.iter().collect();
    sessions.sort_by_key(|s| (s.host(), s.clock.real_zero_ns));
    for session in sessions {
        let pages = session.slots.iter().flat_map(|slot| &slot.pages);
        let wall = |tick| session.clock.wall_ns(session.clock.t_ns(tick));
        let ticks = pages.clone().filter_map(|page| page.summary.ticks);
        let ticks = ticks.filter(|_| session.has_times());
        table.row(vec![
            host_name(session.host()),
            host_name(session.service()),
            session.pid().to_string(),
            host_name(session.process_name()),
            count(pages.map(|page| page.summary.events).sum()),
            moment(ticks.clone().map(|ticks| wall(ticks.0)).min()),
            moment(ticks.map(|ticks| wall(ticks.1)).max()),
            session.ending.map_or("-".to_owned(), |end| end.to_string()),
        ]);
    }
    table
}

/// An attribute of a session as text.
fn text(session: &Session, tag: u16) -> Option<String> {
    let value = session.attribute(tag)?;
    let joined: Vec<u8> = value
        .iter()
        .map(|b| if *b == 0 { b' ' } else { *b })
        .collect();
    Some(printable(String::from_utf8_lossy(&joined).trim_end()))
}

/// ns from the session's start to its last counters.
fn duration_ns(session: &Session) -> Option<u64> {
    let header = session.header?;
    let end = session.counters.as_ref()?.header.sample_mono_ns;
    (end > 0).then(|| end.saturating_sub(header.mono_zero_ns))
}

/// A session as a JSON object.
pub(crate) fn as_json(session: &Session) -> serde_json::Value {
    let known = |tag| text(session, tag);
    let notices = session.attributes.iter().filter(|(t, _)| *t == tag::NOTICE);
    let notices = notices.map(|(_, notice)| String::from_utf8_lossy(notice).into_owned());
    let header = session.header;
    let mode = header.and_then(|header| Mode::from_u32(header.mode));
    let clock = header.and_then(|header| Clock::from_u32(header.clock));
    let wall_ns = |t_ns: u64| header.map(|_| session.clock.wall_ns(t_ns));
    let from = header.and_then(|header| Some(session.window?.saturating_sub(header.mono_zero_ns)));
    let pages = session.slots.iter().flat_map(|slot| &slot.pages);
    let fields = json!({
        "process": known(tag::PROCESS_NAME),
        "version": known(tag::SERVICE_VERSION),
        "kernel": known(tag::KERNEL),
        "container": known(tag::CONTAINER_ID),
        "executable": known(tag::EXECUTABLE),
        "command_line": known(tag::COMMAND_LINE),
        "notices": notices.collect::<Vec<_>>(),
        "mode": mode.map(Mode::name),
        "clock": clock.map(Clock::name),
        "schema_incomplete": session.schema_incomplete(),
        "start_ts_ns": json::ts_ns(header.map(|header| header.real_zero_ns)),
        "from_ts_ns": json::ts_ns(from.and_then(wall_ns)),
        "end_ts_ns": json::ts_ns(duration_ns(session).and_then(wall_ns)),
        "dur_ns": duration_ns(session),
        "pages": pages.clone().count(),
        "events": pages.map(|page| page.summary.events).sum::<u64>(),
    });
    json::object("recorded_session", &Head::of(session), fields)
}

/// Facts about a session, as name and text.
fn facts(session: &Session) -> Vec<(&'static str, String)> {
    let mut facts = vec![("session", session.uuid.to_string())];
    let mut add = |name, text: Option<String>| facts.extend(text.map(|text| (name, text)));
    for (name, tag) in [
        ("process", tag::PROCESS_NAME),
        ("service", tag::SERVICE_NAME),
        ("version", tag::SERVICE_VERSION),
        ("kernel", tag::KERNEL),
        ("container", tag::CONTAINER_ID),
        ("executable", tag::EXECUTABLE),
        ("command line", tag::COMMAND_LINE),
        ("notice", tag::NOTICE),
    ] {
        add(name, text(session, tag));
    }
    let host = (!session.host().is_empty()).then(|| host_name(session.host()));
    add("host", host);
    if let Some(header) = session.header {
        add("pid", Some(header.pid.to_string()));
        add(
            "mode",
            Mode::from_u32(header.mode).map(|m| m.name().to_owned()),
        );
        add(
            "clock",
            Clock::from_u32(header.clock).map(|c| c.name().to_owned()),
        );
        let incomplete = session.schema_incomplete();
        add("schema", incomplete.then(|| "incomplete".to_owned()));
        let stamp = |ns| String::from_utf8_lossy(Stamper::default().stamp(ns)).into_owned();
        add("start", Some(stamp(header.real_zero_ns)));
        // Its process may have begun its first session earlier: the clock counts from there.
        let clock = &session.clock;
        let at = |mono_ns: u64| stamp(clock.wall_ns(mono_ns.saturating_sub(clock.mono_zero_ns)));
        add("shown from", session.window.map(at));
        let end = duration_ns(session);
        add("end", end.map(|ns| at(header.mono_zero_ns + ns)));
        add("duration", end.map(duration));
    }
    facts
}

/// Writes the facts about a session, a line each.
///
/// # Errors
/// Those of writing.
pub(crate) fn write_facts(out: &mut impl Write, session: &Session) -> io::Result<()> {
    let mut lines = facts(session).into_iter();
    lines.try_for_each(|(name, text)| writeln!(out, "{name:<12} {text}"))
}
