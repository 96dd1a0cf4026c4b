//! Options of a session, as code sets them and as `RINGMARK` holds them.

use std::fmt;
use std::time::Duration;

use ringmark_format::page::{PAGE_BYTES_MIN, PAGES_MIN, valid_page_bytes};
use ringmark_format::session::{Clock, Mode};

use super::filter::{Directives, EXPECTED};

/// What happens to the ring file at a clean exit.
///
/// ```
/// use ringmark::{Keep, Session};
///
/// let session = Session::builder().keep(Keep::Never).start().expect("a session");
/// let path = session.path().to_owned();
/// session.close();
/// assert!(!path.exists());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Keep {
    /// The file stays unless the process exits with status 0: after a crash, after `exit(1)`, and
    /// where the C library does not give the status. With status 0 it stays only if events of a
    /// discard session were not read, or a collector of all sessions comes for it.
    Crash = 0,
    /// The file stays, so that a session can be looked at after its program has ended. The program
    /// or its user removes it.
    Always = 1,
    /// The file is removed, read or not.
    Never = 2,
}

/// What a forked child does.
///
/// The child of `vfork`, which may do nothing but `exec` or `_exit`, runs on its parent's thread:
/// events that it emits are recorded as that thread's.
///
/// ```
/// use ringmark::{Fork, Options};
///
/// let options = Options::parse("fork=off").expect("known keys").expect("not empty");
/// assert_eq!(options.fork, Fork::Off);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fork {
    /// The child gets a session of its own at its first event, with the options of its parent's. A
    /// child that emits nothing has none.
    Follow,
    /// The child is not traced.
    Off,
}

/// Options of a session. The reference of the guide says when to change which.
///
/// ```
/// use ringmark::{Mode, Options};
///
/// let options = Options::parse("mode=discard,ring=1M").expect("known keys").expect("not empty");
/// assert_eq!((options.mode, options.ring_bytes), (Mode::Discard, 1 << 20));
/// assert_eq!(Options::parse("0"), Ok(None));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What may be lost when a ring is full: the oldest events, or in discard mode the new ones,
    /// until a reader frees pages. Both are counted.
    pub mode: Mode,
    /// Bytes of a page: a power of two, 4 KiB to 1 MiB. A page is the unit in which events reach a
    /// collector and in which old ones are replaced. Smaller pages reach it sooner.
    pub page_bytes: u32,
    /// Wanted bytes of a ring: a multiple of 4 KiB, at least 8 KiB. Each thread that emits takes
    /// one. Late threads get smaller rings when the session is half full.
    pub ring_bytes: u32,
    /// Most bytes of the session, up to 1 TiB; `None`: see [`Options::session_bytes`].
    pub session_bytes: Option<u64>,
    /// Wanted clock. [`Session::clock`](crate::Session::clock) returns the one that the session
    /// has: the TSC cannot be used on every machine.
    pub clock: Clock,
    /// What happens to the ring file at a clean exit.
    pub keep: Keep,
    /// Whether a helper thread refills the pool of prepared rings and answers the requests of
    /// tools. Without it no tool enables or disables types, and new threads attach more slowly.
    pub control: bool,
    /// Rings that are prepared before threads need them. Each costs about 0.1 ms at the start, and
    /// spares a thread that work at its first event.
    pub warm: u32,
    /// How long a thread may wait for room in a full ring instead of losing its event. Discard mode
    /// only, and only while a reader takes the session's pages. Zero: no thread ever waits.
    pub wait: Duration,
    /// What a forked child does.
    pub fork: Fork,
    /// An anonymous file instead of a named one. No other process can truncate it. It is gone
    /// after a crash, unless a recorder holds it.
    pub memfd: bool,
    /// Whether the program survives when another process truncates its named ring file.
    pub guard: bool,
    /// Whether each panic of the program is recorded as an event. Its message may hold what should
    /// stay in the program.
    pub panic: bool,
    /// Which events are enabled: `LEVEL` and `TARGET=LEVEL`, comma separated; empty: all.
    pub filter: String,
    /// Tags that are stored with the session, each `key=value`. Every trace file of the session has
    /// them, so they can name a host, a role or a release.
    pub tags: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Overwrite,
            page_bytes: 64 << 10,
            ring_bytes: 256 << 10,
            session_bytes: None,
            clock: Clock::Tsc,
            keep: Keep::Crash,
            control: true,
            warm: 4,
            wait: Duration::ZERO,
            fork: Fork::Follow,
            memfd: false,
            guard: false,
            panic: true,
            filter: String::new(),
            tags: Vec::new(),
        }
    }
}

/// An option that cannot be used.
///
/// ```
/// use ringmark::{OptionError, Options};
///
/// let error: OptionError = Options::parse("page=5000").unwrap_err();
/// assert_eq!(error.to_string(), r#"page: found "5000", expected a power of two from 4K to 1M"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionError {
    /// The option's key, or the variable.
    pub option: String,
    /// The value that was found.
    pub found: String,
    /// The values that can be used.
    pub expected: &'static str,
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            option,
            found,
            expected,
        } = self;
        write!(f, "{option}: found {found:?}, expected {expected}")
    }
}

impl std::error::Error for OptionError {}

/// The error of an option that cannot be used.
pub(super) fn wrong(option: &str, found: impl fmt::Display, expected: &'static str) -> OptionError {
    OptionError {
        option: option.to_owned(),
        found: found.to_string(),
        expected,
    }
}

impl Options {
    /// Checks directives as `RINGMARK_FILTER` and [`Options::filter`] hold them.
    ///
    /// ```
    /// use ringmark::Options;
    ///
    /// assert!(Options::check_filter("info,hyper=debug,noisy=off").is_ok());
    /// assert_eq!(Options::check_filter("http=loud").unwrap_err().found, "http=loud");
    /// ```
    ///
    /// # Errors
    /// The first directive that cannot be read.
    pub fn check_filter(text: &str) -> Result<(), OptionError> {
        Directives::parse(text)
            .map(|_| ())
            .map_err(|error| wrong("filter", error.found, EXPECTED))
    }

    /// Most bytes of the session. By default 16 MiB, or eight rings of the wanted size where that is
    /// more: half of a session is for rings of that size.
    #[must_use]
    pub fn session_bytes(&self) -> u64 {
        let four_rings = 8 * u64::from(self.ring_bytes);
        self.session_bytes.unwrap_or(four_rings.max(16 << 20))
    }

    /// Checks the numbers against each other.
    ///
    /// # Errors
    /// The first option that cannot be used.
    pub fn check(&self) -> Result<(), OptionError> {
        if !valid_page_bytes(self.page_bytes) {
            return Err(wrong(
                "page",
                self.page_bytes,
                "a power of two from 4K to 1M",
            ));
        }
        let least = PAGE_BYTES_MIN * PAGES_MIN;
        if self.ring_bytes < least || !self.ring_bytes.is_multiple_of(PAGE_BYTES_MIN) {
            return Err(wrong(
                "ring",
                self.ring_bytes,
                "a multiple of 4K, at least 8K",
            ));
        }
        let session_bytes = self.session_bytes();
        if session_bytes < u64::from(self.ring_bytes) {
            return Err(wrong(
                "session",
                session_bytes,
                "at least one ring, twice one for a ring of the wanted size, or no session=",
            ));
        }
        if session_bytes > 1 << 40 {
            return Err(wrong("session", session_bytes, "at most 1T"));
        }
        if !self.wait.is_zero() && self.mode == Mode::Overwrite {
            let found = format!("{}ms", self.wait.as_millis());
            return Err(wrong(
                "wait",
                found,
                "mode=discard: overwrite mode never waits",
            ));
        }
        Ok(())
    }
}
