//! How the sessions of a trace file ended, and by which panic.
//!
//! A panic may have been caught, so its record alone ends nothing. It ended the program if that
//! exited as the Rust runtime does after a panic of the main thread, and there is one of that thread.
//! Before SIGABRT it is only named as what came before, and only if nothing shows that it was caught: its
//! thread did nothing new since, and the process was gone within [`AT_ONCE_NS`].

use std::fmt;

use ringmark_format::ending::{Ending, signal_name};
use ringmark_format::panics;
use ringmark_format::schema::Shape;

use crate::events::event::{Event, Output};
use crate::trace_file::dump::Dump;
use crate::trace_file::session::Session;
use crate::trace_file::value::Value;
use crate::words::escape::Printable;

/// The status with which Rust's runtime exits after a panic of the main thread.
const PANIC_STATUS: u8 = 101;
/// The signal by which `abort` ends a program.
const SIGABRT: u8 = 6;
/// How long after a panic a process that it ends may still be there, in ns: the end is known from when
/// someone has seen it.
const AT_ONCE_NS: u64 = 1_000_000_000;

/// How one session ended. Its text is one line for a person, such as
/// `shop[812]: panicked at src/main.rs:10: no rows (exit status 101)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEnd {
    /// Number of the session, its place in [`Dump::sessions`].
    pub session: usize,
    /// Name of the process, as its session gives it; bytes of any kind.
    pub name: Vec<u8>,
    /// Process id, in the process's own pid namespace.
    pub pid: u32,
    /// How it ended.
    pub ending: Ending,
    /// The panic that ended it, or the last one before it ended as after a panic.
    pub panic: Option<PanicRecord>,
}

/// A recorded panic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PanicRecord {
    /// Its message, or empty where it was no text.
    pub message: Vec<u8>,
    /// Source file of the panic, or empty.
    pub file: Vec<u8>,
    /// Line in that file, from 1; 0: not known.
    pub line: u64,
    /// Name of the thread.
    pub thread: Vec<u8>,
    /// Number of the thread in the dump, as [`Event::thread`].
    pub number: u32,
    /// Whether it was the main thread: the one whose id is the process id.
    pub is_main: bool,
    /// Tick at which it was recorded.
    tick: u64,
    /// Whether its thread began something since.
    went_on: bool,
}

impl Dump {
    /// How the sessions ended that are known to have ended, in their order.
    #[must_use]
    pub fn endings(&self) -> Vec<SessionEnd> {
        let ended = self.sessions.iter().enumerate();
        let mut ends: Vec<SessionEnd> = ended
            .filter_map(|(number, session)| {
                Some(SessionEnd {
                    session: number,
                    name: session.process_name().to_vec(),
                    pid: session.pid(),
                    ending: session.ending?,
                    panic: None,
                })
            })
            .collect();
        let may_be_panic = |end: &SessionEnd| {
            let session = &self.sessions[end.session];
            SessionEnd::is_like_panic(end.ending) && records_panics(session)
        };
        if ends.iter().any(may_be_panic) {
            self.add_panics(&mut ends);
        }
        ends
    }

    fn add_panics(&self, ends: &mut [SessionEnd]) {
        for item in self.events() {
            let Output::Event(event) = item else {
                continue;
            };
            let of_session = |end: &&mut SessionEnd| end.session == event.session.number;
            let Some(end) = ends.iter_mut().find(of_session) else {
                continue;
            };
            if event.category() != panics::CATEGORY.as_bytes() {
                end.see(&event);
                continue;
            }
            let panic = PanicRecord::of(&event);
            // After a panic of its own the main thread ends the process; others may panic on.
            let is_decided = end.ending.status() == Some(PANIC_STATUS)
                && end.panic.as_ref().is_some_and(|p| p.is_main)
                && !panic.is_main;
            if SessionEnd::is_like_panic(end.ending) && !is_decided {
                end.panic = Some(panic);
            }
        }
        for end in ends {
            let session = &self.sessions[end.session];
            let is_exit = end.ending.status().is_some();
            end.panic = end
                .panic
                .take()
                .filter(|panic| is_exit || panic.is_last(session));
        }
    }
}

fn records_panics(session: &Session) -> bool {
    let mut types = session.schema.types().iter();
    types.any(|ty| ty.origin.category == panics::CATEGORY.as_bytes())
}

impl PanicRecord {
    /// Whether nothing shows that it was caught: its process was gone at once.
    fn is_last(&self, session: &Session) -> bool {
        let clock = &session.clock;
        let since_ns = clock
            .t_ns(session.last_tick())
            .saturating_sub(clock.t_ns(self.tick));
        !self.went_on && since_ns <= AT_ONCE_NS
    }

    fn of(event: &Event<'_>) -> Self {
        let value = |name: &str| {
            let mut args = event.args();
            args.find_map(|(field, value)| (field.name == name.as_bytes()).then_some(value))
        };
        let text = |name| match value(name) {
            Some(Value::Str(text)) => text.to_vec(),
            _ => Vec::new(),
        };
        let [message, file, line] = panics::FIELDS;
        Self {
            message: text(message),
            file: text(file),
            line: match value(line) {
                Some(Value::U64(line)) => line,
                _ => 0,
            },
            thread: event.comm().to_vec(),
            number: event.thread(),
            is_main: event.tid() == event.pid(),
            tick: event.tick,
            went_on: false,
        }
    }
}

impl SessionEnd {
    /// Takes an event after the panic. What its thread had open ends while the panic unwinds.
    fn see(&mut self, event: &Event<'_>) {
        if let Some(panic) = &mut self.panic {
            let is_end = matches!(event.shape(), Some(Shape::SpanExit | Shape::SpanClose));
            let is_new = event.start_tick() > panic.tick && !is_end;
            panic.went_on |= event.thread() == panic.number && is_new;
        }
    }

    /// Whether programs end in this way after a panic, among others: exit status 101, SIGABRT.
    #[must_use]
    pub fn is_like_panic(ending: Ending) -> bool {
        ending.status() == Some(PANIC_STATUS) || ending.signal() == Some(SIGABRT)
    }

    /// The end in words, without the name of the process.
    #[must_use]
    pub fn words(&self) -> String {
        let ending = self.ending;
        match &self.panic {
            None => ending.to_string(),
            Some(panic) if panic.is_main && ending.status() == Some(PANIC_STATUS) => {
                format!("panicked {panic} ({ending})")
            }
            Some(panic) => {
                let thread = Printable(&panic.thread);
                format!("{ending}, after a panic of {thread} {panic}")
            }
        }
    }

    /// The keys of the end as a JSON object: `pid`, `name`, `how` (`exit`, `signal`, `closed`,
    /// `exec` or `unknown`), `status`, `signal`, `core`, `out_of_memory`, `panic`, `text`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = b"{".to_vec();
        push_ending(self.ending, &mut out);
        out.extend_from_slice(format!(",\"pid\":{},\"name\":", self.pid).as_bytes());
        crate::words::escape::json(&self.name, &mut out);
        out.extend_from_slice(b",\"panic\":");
        match &self.panic {
            None => out.extend_from_slice(b"null"),
            Some(panic) => {
                out.extend_from_slice(b"{\"message\":");
                crate::words::escape::json(&panic.message, &mut out);
                out.extend_from_slice(b",\"file\":");
                crate::words::escape::json(&panic.file, &mut out);
                out.extend_from_slice(format!(",\"line\":{},\"thread\":", panic.line).as_bytes());
                crate::words::escape::json(&panic.thread, &mut out);
                out.push(b'}');
            }
        }
        out.extend_from_slice(b",\"text\":");
        crate::words::escape::json(self.words().as_bytes(), &mut out);
        out.push(b'}');
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// Appends the keys of an ending, without braces.
fn push_ending(ending: Ending, out: &mut Vec<u8>) {
    let status = ending.status().map_or("null".to_owned(), |s| s.to_string());
    let signal = match ending.signal().map(|s| (s, signal_name(s))) {
        None => "null".to_owned(),
        Some((_, Some(name))) => format!("\"{name}\""),
        Some((number, None)) => format!("\"{number}\""),
    };
    let (core, memory) = match ending {
        Ending::Killed { core, memory, .. } => (core, memory),
        _ => (false, false),
    };
    let how = ending.word();
    let text = format!(
        "\"how\":\"{how}\",\"status\":{status},\"signal\":{signal},\"core\":{core},\"out_of_memory\":{memory}"
    );
    out.extend_from_slice(text.as_bytes());
}

impl fmt::Display for PanicRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}:{}", Printable(&self.file), self.line)?;
        if self.message.is_empty() {
            return Ok(());
        }
        write!(f, ": {}", Printable(&self.message))
    }
}

impl fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, pid) = (Printable(&self.name), self.pid);
        write!(f, "{name}[{pid}]: {}", self.words())
    }
}
