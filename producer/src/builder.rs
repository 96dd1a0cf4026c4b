//! The builder: how code sets options and starts a session.

use ringmark_format::session::{Clock, Mode};

use crate::event::panic_record;
use crate::session::{self, Session};
use crate::setup::{Fork, Keep, Options, StartError};

/// Builds a session; made by [`Session::builder`].
///
/// Each method sets an option; [`Options`] holds them all. The guide's reference says when
/// to change which.
///
/// ```
/// use ringmark::{Builder, Keep, Mode, Session};
///
/// let builder: Builder = Session::builder().mode(Mode::Discard).ring_bytes(1 << 20);
/// let session = builder.keep(Keep::Never).filter("info").tag("role", "index").start()?;
/// assert!(session.path().exists());
/// # Ok::<(), ringmark::StartError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Builder {
    options: Options,
}

impl From<Options> for Builder {
    fn from(options: Options) -> Self {
        Self { options }
    }
}

macro_rules! setters {
    ($($(#[$meta:meta])* $name:ident: $type:ty;)*) => { $(
        $(#[$meta])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.options.$name = $name;
            self
        }
    )* };
}

impl Builder {
    setters! {
        /// What may be lost when a ring is full; default: overwrite, which loses the oldest events.
        mode: Mode;
        /// Bytes of a page: a power of two from 4 KiB to 1 MiB; default: 64 KiB.
        page_bytes: u32;
        /// Wanted bytes of a ring; default: 256 KiB.
        ring_bytes: u32;
        /// The clock; default: the time stamp counter.
        clock: Clock;
        /// What happens to the ring file at a clean exit; default: [`Keep::Crash`].
        keep: Keep;
        /// Whether a helper thread refills the pool and answers requests; default: yes.
        ///
        /// A program whose system-call filter kills all its threads needs `false`; DESIGN.md says
        /// what else such a program needs.
        control: bool;
        /// Rings that are prepared before threads need them; default: 4.
        warm: u32;
        /// What a forked child does; default: it gets a session of its own.
        fork: Fork;
        /// Whether the ring file is anonymous and sealed instead of named; default: no.
        memfd: bool;
        /// Whether the program survives when another process of its user truncates the named file;
        /// default: no.
        ///
        /// Installs a handler for SIGBUS, which passes on signals that are not about the ring file.
        /// Events after the cut are lost without a count: nothing can be counted in a file that is
        /// gone, and the tools report that it was truncated.
        guard: bool;
        /// Whether each panic of the program is recorded as an event, with message, file and line,
        /// before its message is printed; default: yes.
        ///
        /// Sets a panic hook that calls the one before. Messages may hold what should stay in the
        /// program.
        panic: bool;
    }

    /// Most bytes of the session; default: 16 MiB, or eight rings where that is more.
    #[must_use]
    pub fn session_bytes(mut self, session_bytes: u64) -> Self {
        self.options.session_bytes = Some(session_bytes);
        self
    }

    /// Which events are enabled: `LEVEL` and `TARGET=LEVEL`, comma separated; default: all.
    #[must_use]
    pub fn filter(mut self, directives: impl Into<String>) -> Self {
        self.options.filter = directives.into();
        self
    }

    /// Adds a tag that is stored with the session, and so in every trace file of it.
    #[must_use]
    pub fn tag(mut self, key: &str, value: &str) -> Self {
        self.options.tags.push(format!("{key}={value}"));
        self
    }

    /// Starts the session, or returns the running one if it has the same options.
    ///
    /// # Errors
    /// Why there is no session. The program can go on: without one every macro does nothing.
    pub fn start(self) -> Result<Session, StartError> {
        session::start(self.options).inspect(with_panics)
    }
}

/// Has panics recorded, if the session's options say so.
fn with_panics(session: &Session) {
    if session.records_panics() {
        panic_record::install();
    }
}

/// Starts a session if the environment asks for one: `RINGMARK`, `RINGMARK_FILTER`, `RINGMARK_TAGS`.
///
/// `None`: no session is wanted, or none can be started. The reason is printed only with
/// `RINGMARK_VERBOSE=1`; `ringmark list` shows it in any case.
///
/// ```
/// // Without RINGMARK in the environment:
/// let session = ringmark::start_from_env();
/// assert_eq!(session.is_some(), std::env::var_os("RINGMARK").is_some_and(|text| text == "1"));
/// ```
pub fn start_from_env() -> Option<Session> {
    session::start_from_env().inspect(with_panics)
}

impl Session {
    /// Options of a session to be started.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }
}
