//! The lines of `cat` on a terminal: local time of day, thread, name, duration, values, within its
//! width. The date stands once at the head, and where it changes.

use std::collections::HashMap;

use ringmark_decoder::{Dump, Event, Lost, Session, Span, ThreadTimes, event_words, span_args};
use ringmark_format::schema::Level;
use time::{OffsetDateTime, UtcOffset};

use super::last_words::verb;
use ringmark_console::units::{count, counted, duration};
use ringmark_console::width::{SHORTEST_NAME, cut, pad, shorten, width};
use ringmark_console::{Style, printable};

/// Most columns of names that stand in a column of their own; longer ones reach out of it.
const NAME_COLUMNS: usize = 24;
/// Columns of a duration: `1.23 ms`.
const TOOK_COLUMNS: usize = 7;
/// Columns from which on times have microseconds.
const ROOMY: usize = 60;
/// A time zone changes at quarters of an hour.
const QUARTER_S: i64 = 900;

/// Makes the lines.
#[derive(Debug)]
pub(crate) struct Screen {
    /// `None`: lines are not cut.
    columns: Option<usize>,
    style: Style,
    clock: LocalClock,
    /// The date that was printed last.
    day: Option<String>,
    /// What is meant, in the line of the first date.
    what: String,
    thread_columns: usize,
    name_columns: usize,
    has_took: bool,
    /// Threads of one name are told apart by their ids.
    has_tids: bool,
    has_process: bool,
    /// Spaces before a name.
    indent: usize,
}

/// What a line says.
struct Line<'s> {
    session: &'s Session,
    thread: String,
    level: Option<Level>,
    name: String,
    took_ns: Option<u64>,
    values: String,
}

/// What kept a thread from running, where that took longer than its running; it stands last, as a narrow terminal cuts
/// it and not the fields.
fn held_up(did: Option<ThreadTimes>) -> String {
    let did = did.unwrap_or_default();
    let (ns, what) = (did.waiting_ns, "waiting").max((did.ready_ns, "ready"));
    match ns > did.running_ns {
        true => format!("  {what} {}", duration(ns)),
        false => String::new(),
    }
}

impl Screen {
    /// Lines for a terminal of that many columns; `None`: that are not cut.
    pub(crate) fn new(columns: Option<usize>, style: Style) -> Self {
        Self {
            columns,
            style,
            clock: LocalClock::default(),
            day: None,
            what: String::new(),
            thread_columns: 0,
            name_columns: 0,
            has_took: false,
            has_tids: false,
            has_process: false,
            indent: 0,
        }
    }

    /// Shows times in UTC.
    pub(crate) const fn in_utc(&mut self) {
        self.clock.is_utc = true;
    }

    /// Puts that many spaces before the names of the lines that follow.
    pub(crate) const fn indent(&mut self, spaces: usize) {
        self.indent = spaces;
    }

    /// Learns which threads and names there are, for columns that fit.
    pub(crate) fn learn(&mut self, dump: &Dump) {
        self.has_process = dump.has_several_hosts();
        if let ([session], true) = (dump.sessions.as_slice(), self.what.is_empty()) {
            let name = printable(&String::from_utf8_lossy(session.process_name()));
            let host = printable(&String::from_utf8_lossy(session.host()));
            let on = if host.is_empty() { "" } else { " on " };
            self.what = format!(" ── {name}[{}]{on}{host}", session.pid());
        }
        let mut ids: HashMap<Vec<u8>, u32> = HashMap::new();
        for session in &dump.sessions {
            for page in session.slots.iter().flat_map(|slot| &slot.pages) {
                let tid = page.header.tid;
                let known = ids.entry(page.thread_name().to_vec()).or_insert(tid);
                self.has_tids |= *known != tid;
            }
            for ty in session.schema.types().iter().filter(|ty| ty.known) {
                let name = width(&String::from_utf8_lossy(&ty.name));
                self.name_columns = self.name_columns.max(name);
                let kind = ty.kind();
                self.has_took |= kind.starts_with("span") || kind.starts_with("function");
            }
        }
        let part = |part| self.columns.map_or(NAME_COLUMNS, |columns| columns / part);
        self.name_columns = self.name_columns.min(part(4)).min(NAME_COLUMNS);
        let names = ids.iter().map(|(name, tid)| self.thread(name, *tid));
        let widest = names.map(|name| width(&name)).max().unwrap_or(0);
        self.thread_columns = self.thread_columns.max(widest).min(part(5));
    }

    fn thread(&self, name: &[u8], tid: u32) -> String {
        let name = printable(&String::from_utf8_lossy(name));
        match self.has_tids || name.is_empty() {
            true => format!("{name}[{tid}]"),
            false => name,
        }
    }

    /// Appends the line of an event at this time since 1970. `time`: the time that was asked for,
    /// in place of the local one.
    pub(crate) fn event(
        &mut self,
        event: &Event<'_>,
        wall_ns: u64,
        time: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        let (name, values) = event_words(event);
        let took_ns = event.duration_ns();
        let mut name = text(&name);
        if took_ns.is_none() {
            name += verb(event);
        }
        let line = Line {
            session: event.session,
            thread: self.thread(event.comm(), event.tid()),
            level: event.level(),
            name,
            took_ns,
            values: text(&values) + &held_up(event.did()),
        };
        self.write(line, wall_ns, time, out);
    }

    /// Appends the line of a span, as [`Self::event`].
    pub(crate) fn span(
        &mut self,
        span: &Span<'_>,
        wall_ns: u64,
        time: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        let mut values = Vec::new();
        span_args(span, &mut values);
        let mut values = text(&values);
        if let Some(entered) = span.entered.as_ref().filter(|e| e.polls > 1 || !e.is_whole) {
            let least = if entered.is_whole { "" } else { "at least " };
            let busy = duration(entered.busy_ns);
            let polls = counted(entered.polls, "poll");
            // Last, so that a narrow terminal cuts it and not the fields.
            values += &format!("  {least}busy {busy} in {polls}");
        }
        values += &held_up(span.times);
        let end = &span.end;
        let line = Line {
            session: end.session,
            thread: self.thread(end.comm(), end.tid()),
            level: span.ty.level,
            name: printable(&String::from_utf8_lossy(span.name)) + called(span),
            took_ns: Some(span.total_ns),
            values,
        };
        self.write(line, wall_ns, time, out);
    }

    /// Appends the line of a loss.
    pub(crate) fn lost(&mut self, lost: &Lost<'_>, time: Option<&str>, out: &mut Vec<u8>) {
        let thread = match lost.page {
            Some(page) => self.thread(page.thread_name(), page.header.tid),
            None => self.thread(lost.session.process_name(), lost.session.pid()),
        };
        let wall_ns = lost.session.clock.wall_ns(lost.t_ns);
        let head = self.head(lost.session, &thread, wall_ns, time, out);
        let (events, cause) = (count(lost.loss.count), lost.loss.why.cause());
        let text = format!("LOST {events} events: {cause}");
        self.push(&head, &text, self.style.alarm(), out);
    }

    /// Appends the date, if it is another one, and returns the front of a line.
    fn head(
        &mut self,
        session: &Session,
        thread: &str,
        wall_ns: u64,
        time: Option<&str>,
        out: &mut Vec<u8>,
    ) -> String {
        let mut head = match time {
            Some(time) => time.to_owned(),
            None => self.local(wall_ns, out),
        };
        if self.has_process {
            head = format!("{head} {}", session.process_label());
        }
        let mut thread = thread.to_owned();
        shorten(&mut thread, self.thread_columns.max(SHORTEST_NAME.min(8)));
        pad(&mut thread, self.thread_columns);
        format!("{head}  {thread}  ")
    }

    /// The time of day here; a new date is appended as a line.
    fn local(&mut self, wall_ns: u64, out: &mut Vec<u8>) -> String {
        let (local, zone) = self.clock.local(wall_ns);
        let day = format!("{}, {zone}", local.date());
        if self.day.as_ref() != Some(&day) {
            let what = match self.day {
                None => std::mem::take(&mut self.what),
                Some(_) => String::new(),
            };
            self.push("", &format!("── {day}{what}"), self.style.heading(), out);
            self.day = Some(day);
        }
        let (hour, minute, second) = local.to_hms();
        let us = wall_ns % 1_000_000_000 / 1_000;
        match self.columns {
            Some(columns) if columns < ROOMY => {
                format!("{hour:02}:{minute:02}:{second:02}.{:03}", us / 1_000)
            }
            _ => format!("{hour:02}:{minute:02}:{second:02}.{us:06}"),
        }
    }

    fn write(&mut self, line: Line<'_>, wall_ns: u64, time: Option<&str>, out: &mut Vec<u8>) {
        let head = self.head(line.session, &line.thread, wall_ns, time, out);
        let (level, colour) = match line.level {
            Some(Level::Error) => ("error ", self.style.alarm()),
            Some(Level::Warn) => ("warn ", self.style.warning()),
            Some(Level::Debug | Level::Trace) => ("", self.style.dim()),
            _ => ("", ""),
        };
        let mut body = format!("{level}{}", line.name);
        let mut indent = self.indent;
        if let Some(columns) = self.columns {
            let others = width(&head) + if self.has_took { TOOK_COLUMNS + 2 } else { 0 };
            let room = columns.saturating_sub(others).max(SHORTEST_NAME);
            indent = indent.min(room - SHORTEST_NAME);
            shorten(&mut body, room - indent);
        }
        body.insert_str(0, &" ".repeat(indent));
        if self.has_took || !line.values.is_empty() {
            pad(&mut body, self.name_columns);
        }
        if self.has_took {
            let took = line.took_ns.map_or_else(String::new, duration);
            body += &format!("  {took:>TOOK_COLUMNS$}");
        }
        if !line.values.is_empty() {
            body += &format!("  {}", line.values.trim_start());
        }
        self.push(&head, body.trim_end(), colour, out);
    }

    /// Appends a line, cut to the terminal.
    fn push(&self, head: &str, body: &str, colour: &str, out: &mut Vec<u8>) {
        let mut line = format!("{head}{body}");
        if let Some(columns) = self.columns {
            cut(&mut line, columns);
        }
        let plain = if colour.is_empty() {
            ""
        } else {
            self.style.plain()
        };
        let at = head.len().min(line.len());
        match line.is_char_boundary(at) {
            true => line.insert_str(at, colour),
            false => line.insert_str(0, colour),
        }
        out.extend_from_slice(format!("{line}{plain}\n").as_bytes());
    }
}

/// What follows the name of a call, unless that has its parameters.
fn called(span: &Span<'_>) -> &'static str {
    match span.is_call() && !span.name.ends_with(b")") {
        true => "()",
        false => "",
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Times of the wall clock as they are where the reader is.
#[derive(Debug, Default)]
struct LocalClock {
    /// Times are UTC.
    is_utc: bool,
    /// The quarter of an hour since 1970 that was asked for last, and its offset from UTC; `None`:
    /// not known.
    known: Option<(i64, Option<UtcOffset>)>,
}

impl LocalClock {
    /// Date and time of a moment, and what to call them.
    fn local(&mut self, wall_ns: u64) -> (OffsetDateTime, String) {
        let second = (wall_ns / 1_000_000_000) as i64;
        // A `u64` of ns ends in the year 2554.
        let utc = OffsetDateTime::from_unix_timestamp(second);
        let utc = utc.unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let quarter = second / QUARTER_S;
        let offset = match self.known {
            _ if self.is_utc => None,
            Some((known, offset)) if known == quarter => offset,
            _ => UtcOffset::local_offset_at(utc).ok(),
        };
        self.known = Some((quarter, offset));
        match offset {
            Some(offset) => {
                let (hours, minutes, _) = offset.as_hms();
                let sign = if offset.is_negative() { '-' } else { '+' };
                let (hours, minutes) = (hours.unsigned_abs(), minutes.unsigned_abs());
                let zone = format!("local time (UTC{sign}{hours:02}:{minutes:02})");
                (utc.to_offset(offset), zone)
            }
            None => (utc, "UTC".to_owned()),
        }
    }
}
