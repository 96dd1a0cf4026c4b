//! The session's interface where no session can start.

use core::convert::Infallible;
use core::ops::Range;
use std::fs::File;
use std::path::Path;

use ringmark_format::session::Clock;
use ringmark_format::{TypeId, Uuid};

use super::ring::Reservation;
use crate::description::{Description, Now};
use crate::recorded::Recorded;
use crate::setup::{Options, StartError};

/// A handle to the session of this process: there is none.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    none: Infallible,
}

impl Session {
    /// Starts no session, and leaves no note.
    #[must_use]
    pub fn start_in_running_process(_settings: &str) -> Option<Self> {
        None
    }

    /// Starts no session.
    #[must_use]
    pub const fn start_in_front_of_program() -> Option<Self> {
        None
    }

    /// The session of this process: none runs.
    #[must_use]
    pub fn current() -> Option<Self> {
        None
    }

    /// The ring file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self.none {}
    }

    /// The open ring file.
    #[must_use]
    pub fn file(&self) -> &File {
        match self.none {}
    }

    /// Random identity of the session.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        match self.none {}
    }

    /// The clock in use.
    #[must_use]
    pub fn clock(&self) -> Clock {
        match self.none {}
    }

    /// Ticks of the session's clock in `ns` nanoseconds.
    #[must_use]
    pub fn ticks_of_ns(&self, _ns: u64) -> u64 {
        match self.none {}
    }

    /// Events of a raw clone that were not recorded: none.
    #[must_use]
    pub fn foreign_events() -> u64 {
        0
    }

    /// How much was written into each ring so far.
    #[must_use]
    pub fn ring_counts(&self) -> Vec<RingCounts> {
        match self.none {}
    }

    /// Records that all rings got so far.
    #[must_use]
    pub fn records(&self) -> u64 {
        match self.none {}
    }

    /// How many records each ring got so far.
    pub(crate) fn reservations(&self) -> Vec<u64> {
        match self.none {}
    }

    /// This thread's events.
    pub(crate) fn own_events(&self, _from: &[u64]) -> (Vec<Recorded>, u64) {
        match self.none {}
    }

    /// Calls `visit` with the types of records in a ring.
    pub fn sample_types(
        &self,
        _ring: u32,
        _page_switches: Range<u64>,
        _pages_max: u32,
        _visit: &mut dyn FnMut(u32),
    ) {
        match self.none {}
    }

    /// Changes which events are enabled.
    ///
    /// # Errors
    /// None: there is no session to call it on.
    pub fn set_filter(&self, _directives: &str) -> Result<usize, StartError> {
        match self.none {}
    }

    /// Whether panics of the program are to be recorded.
    pub(crate) fn records_panics(&self) -> bool {
        match self.none {}
    }

    /// Ends the session.
    pub fn close(self) {
        match self.none {}
    }
}

/// Refuses to start a session.
pub(crate) fn start(_options: Options) -> Result<Session, StartError> {
    let forced = if cfg!(ringmark_unsupported) {
        ", built with --cfg ringmark_unsupported"
    } else {
        ""
    };
    let library = if cfg!(target_env = "musl") {
        " with musl"
    } else {
        ""
    };
    let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
    Err(StartError::Unsupported {
        found: format!("{system}{library} on {processor}{forced}"),
    })
}

/// Starts no session. What `RINGMARK` asks for is refused; the reason is printed with
/// `RINGMARK_VERBOSE=1`.
pub(crate) fn start_from_env() -> Option<Session> {
    let wanted = std::env::var("RINGMARK").unwrap_or_default();
    let started = match Options::parse(&wanted) {
        Ok(options) => start(options?),
        Err(error) => Err(StartError::Option(error)),
    };
    match started {
        Ok(session) => Some(session),
        Err(error) => {
            if is_verbose() {
                let line = format!("ringmark: tracing is off: {error}\n");
                let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
            }
            None
        }
    }
}

/// Whether the program is to print why it is not traced.
#[must_use]
pub fn is_verbose() -> bool {
    std::env::var_os("RINGMARK_VERBOSE").is_some_and(|value| value == "1")
}

/// Gets a ring for this thread: `false`, there is none.
pub fn attach_thread() -> bool {
    false
}

/// Gets no ring for a span.
pub(crate) fn attach_for_span() {}

/// The session's clock in ticks: 0.
#[inline(always)]
pub(crate) fn now() -> u64 {
    0
}

/// No thread has a clock.
#[inline(always)]
pub(crate) fn now_at_once() -> Option<u64> {
    None
}

/// Filters by spans: there are none.
pub(crate) mod span_gate {
    use ringmark_format::span_condition::SpanValue;

    use super::super::ring::SpanPlace;

    pub(crate) fn is_on() -> bool {
        false
    }

    pub(crate) fn permits(_type_id: u32) -> bool {
        false
    }

    pub(crate) fn permits_in(_type_id: u32, _inside: u32) -> bool {
        false
    }

    pub(crate) fn inside() -> u32 {
        0
    }

    pub(crate) fn as_if_inside<R>(_bits: u32, work: impl FnOnce() -> R) -> R {
        work()
    }

    pub(crate) fn enter_at(place: SpanPlace, _bits: u32) -> SpanPlace {
        place
    }

    pub(crate) fn leave_at(place: SpanPlace) -> SpanPlace {
        place
    }

    /// The conditions that a span meets: none.
    pub(crate) struct Matching;

    impl Matching {
        pub(crate) fn of_span<'f>(_name: &str, _fields: impl Iterator<Item = &'f str>) -> Self {
            Self
        }

        pub(crate) fn asks_for(&self, _field: &str) -> bool {
            false
        }

        pub(crate) fn see(&mut self, _field: &str, _value: SpanValue<'_>) {}

        pub(crate) fn met(&self) -> (u32, u32) {
            (0, 0)
        }
    }
}

/// Reserves no record.
#[inline(always)]
pub(crate) fn reserve_slow(
    _type_id: TypeId,
    _words: u64,
    _now: Now,
    _ticks: u64,
) -> Option<Reservation<'static>> {
    None
}

/// Reserves no record.
#[inline(always)]
pub(crate) fn reserve_slow_from(
    _stack: Stack,
    _type_id: TypeId,
    _words: u64,
    _now: Now,
    _ticks: u64,
) -> Option<Reservation<'static>> {
    None
}

/// Nothing is recorded here.
#[must_use]
pub const fn does_own_work() -> bool {
    false
}

/// Finds no map of memory.
pub const fn mapping_at<F>(_maps: &F, _address: u64) -> Option<core::ops::Range<u64>> {
    None
}

/// Where the frames of the calling thread's program lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stack {
    /// On the stack that the caller is on.
    Current,
    /// Around this address, on the stack that the caller has left for one of its own.
    Around(usize),
    /// Not to be told.
    Unknown,
}

/// How much was written into a ring, over all threads that had it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RingCounts {
    /// Records.
    pub records: u64,
    /// Page switches: the open page is not counted.
    pub page_switches: u64,
}

/// Runs no `work`: there is no session.
pub fn without_trace<R>(_work: impl FnOnce() -> R) -> Option<R> {
    None
}

/// The helper thread: there is none.
pub mod helper {
    /// The signals of the calling thread, held until this is dropped: none are.
    #[derive(Debug)]
    pub struct HeldSignals;

    impl HeldSignals {
        /// Holds none.
        #[must_use]
        pub const fn hold() -> Self {
            Self
        }
    }

    /// Tells no asker that a library works on its request.
    pub fn working() {}

    /// Wakes no thread.
    #[must_use]
    pub fn wake() -> bool {
        false
    }
}

pub(crate) fn register_dynamic(_description: &Description<'_>) {}

pub(crate) fn answer_requests(
    _word: &'static str,
    _answer: fn(&str) -> Result<String, String>,
    _idle: fn(),
) {
}

pub(crate) fn append_written(_entries: &[u8]) -> bool {
    false
}

pub(crate) fn is_first(_number: usize) -> bool {
    false
}

pub(crate) fn keep_mapped(_address: *const core::ffi::c_void) {}

pub(crate) fn is_in_program() -> bool {
    true
}

/// Records and spans of C code: there are none.
pub mod raw {}
