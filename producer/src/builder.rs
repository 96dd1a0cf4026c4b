//! What programs say to start a session.

use ringmark_format::session::{Clock, Mode};

use crate::session::{self, Session};
use crate::setup::{Fork, Keep, Options, StartError};

/// Builds a session: `Session::builder().ring_bytes(256 << 10).start()?`.
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
        /// What may be lost when a ring is full; default: overwrite (the oldest).
        mode: Mode;
        /// Bytes of a page: a power of two from 4 KiB to 1 MiB; default: 64 KiB.
        page_bytes: u32;
        /// Wanted bytes of a ring; default: 256 KiB.
        ring_bytes: u32;
        /// The clock; default: the time stamp counter.
        clock: Clock;
        /// What happens to the ring file at exit.
        keep: Keep;
        /// Whether a helper thread refills the pool and answers requests; default: yes.
        ///
        /// No for a program that forbids itself system calls by a filter that kills all its threads;
        /// DESIGN.md says what else such a program needs.
        control: bool;
        /// Rings that wait for threads; default: 4.
        warm: u32;
        /// What a forked child does; default: it follows.
        fork: Fork;
        /// An anonymous, sealed file instead of a named one.
        memfd: bool;
        /// Whether the program survives when another process of its user truncates the named file;
        /// no if not said. Installs a handler for SIGBUS, which passes on what is not about the
        /// ring file. Events behind the cut are lost without a count: nothing can be counted in a
        /// file that is gone, and the tools say that it was truncated.
        guard: bool;
    }

    /// Most bytes of the session; default: 16 MiB, or eight rings where that is more.
    #[must_use]
    pub fn session_bytes(mut self, session_bytes: u64) -> Self {
        self.options.session_bytes = Some(session_bytes);
        self
    }

    /// `LEVEL` and `TARGET=LEVEL` directives, comma separated; default: everything is on.
    #[must_use]
    pub fn filter(mut self, directives: impl Into<String>) -> Self {
        self.options.filter = directives.into();
        self
    }

    /// Adds a tag to the session attributes.
    #[must_use]
    pub fn tag(mut self, key: &str, value: &str) -> Self {
        self.options.tags.push(format!("{key}={value}"));
        self
    }

    /// Starts the session, or returns the running one if it has the same options.
    ///
    /// # Errors
    /// Why tracing is off. The program can go on: without a session every macro does nothing.
    pub fn start(self) -> Result<Session, StartError> {
        session::start(self.options)
    }
}

impl Session {
    /// Options of a session to be started.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }
}
