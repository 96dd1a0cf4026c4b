//! What programs say to start a session, and what they hold afterwards.

use std::fmt;
use std::fs::File;
use std::path::Path;

use ringmark_format::Uuid;
use ringmark_format::session::{Clock, Mode, phase};

use super::core::Core;
use super::error::StartError;
use super::options::{Fork, Keep, Options};
use super::{attach, life, registry};

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
        /// What may be lost when a ring is full; overwrite (the oldest) if not said.
        mode: Mode;
        /// Bytes of a page: a power of two from 4 KiB to 1 MiB; 64 KiB if not said.
        page_bytes: u32;
        /// Wanted bytes of a ring; 256 KiB if not said.
        ring_bytes: u32;
        /// The clock; the time stamp counter if not said.
        clock: Clock;
        /// What happens to the ring file at exit.
        keep: Keep;
        /// Whether a helper thread refills the pool and answers requests; yes if not said.
        ///
        /// No for a program that forbids itself system calls by a filter that kills all its threads;
        /// DESIGN.md says what else such a program needs.
        control: bool;
        /// Rings that wait for threads; 4 if not said.
        warm: u32;
        /// What a forked child does; it follows if not said.
        fork: Fork;
        /// An anonymous, sealed file instead of a named one.
        memfd: bool;
        /// Whether the program survives when another process of its user truncates the named file;
        /// no if not said. Installs a handler for SIGBUS, which passes on what is not about the
        /// ring file. Events behind the cut are lost without a count: nothing can be counted in a
        /// file that is gone, and the tools say that it was truncated.
        guard: bool;
    }

    /// Most bytes of the session; 16 MiB if not said, or eight rings where that is more.
    #[must_use]
    pub fn session_bytes(mut self, session_bytes: u64) -> Self {
        self.options.session_bytes = Some(session_bytes);
        self
    }

    /// `LEVEL` and `TARGET=LEVEL` directives, comma separated; everything is on if not said.
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
        life::start_and_tell(self.options).map(Session::of)
    }
}

/// A handle to the session of this process. Cloning and dropping it does nothing.
#[derive(Clone, Copy)]
pub struct Session {
    core: &'static Core,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(super) const fn of(core: &'static Core) -> Self {
        Self { core }
    }

    /// Options of a session to be started.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The session of this process, if one runs.
    #[must_use]
    pub fn current() -> Option<Self> {
        Core::current()
            .filter(|core| core.wiped.is_ours())
            .map(|core| Self { core })
    }

    /// The ring file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.core.file.path()
    }

    /// The open ring file, for handing a memfd to a reader.
    #[must_use]
    pub fn file(&self) -> &File {
        self.core.file.file()
    }

    /// Random identity of the session.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        Uuid(self.core.file.geometry().header.session)
    }

    /// The clock in use.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.core.clock
    }

    /// Changes which events are on, as [`Builder::filter`]; returns how many types are on.
    ///
    /// # Errors
    /// A directive cannot be read; nothing was changed.
    pub fn set_filter(&self, directives: &str) -> Result<usize, StartError> {
        let directives = life::parse_filter(directives)?;
        // In a forked child: of its own session, not its parent's.
        let Some(core) = attach::session_of_this_process() else {
            return Ok(0);
        };
        let on = registry::apply_directives(core, directives);
        registry::tell();
        Ok(on)
    }

    /// Switches all events off and says good-bye. There is no other session in this process.
    pub fn close(self) {
        registry::unregister_all();
        life::close(self.core, phase::CLOSED);
        registry::tell();
    }
}
