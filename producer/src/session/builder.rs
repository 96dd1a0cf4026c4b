//! Starting and closing a session.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ringmark_format::Uuid;
use ringmark_format::clock::Rate;
use ringmark_format::session::{Clock, Mode, SessionState, phase};
use ringmark_ring::session_dir::{self, DirError, RING_FILE_ENDING};
use ringmark_ring::{
    ClockSample, MapError, RingFile, RingFileError, clean, clock, identity, mapping,
};

use super::attributes;
use super::core::Core;
use super::filter::Directives;
use super::layout::{self, Facts, Regions};
use super::lock::ControlLock;
use super::options::{Fork, Keep, OptionError, Options};
use super::{attach, control, memory, process, registry};
use crate::wiped::Wiped;

/// Nominal rate where none could be measured yet: 1 GHz, corrected by the first samples.
const UNKNOWN_RATE: Rate = Rate::IDENTITY;

/// Why a session did not start. The program goes on without tracing.
#[derive(Debug)]
pub enum StartError {
    /// An option cannot be used.
    Option(OptionError),
    /// A directive of the filter cannot be read.
    Filter {
        /// The directive.
        found: String,
    },
    /// The session directory was refused.
    Dir(DirError),
    /// A system call failed.
    Io {
        /// The step.
        step: &'static str,
        /// The ring file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file that was just laid out cannot be used.
    File(RingFileError),
    /// There is less memory than the smallest session needs.
    NoSpace {
        /// Where.
        path: PathBuf,
        /// Bytes that are needed.
        needed: u64,
        /// Bytes that may be taken.
        available: u64,
        /// What limits them.
        limit: &'static str,
    },
    /// A session runs with other options.
    Running {
        /// The first option that differs.
        option: &'static str,
    },
    /// The session of this process was closed.
    Closed,
    /// Another copy of the library in this process has a session.
    OtherCopy {
        /// Its ring file.
        path: PathBuf,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Option(error) => error.fmt(f),
            Self::Filter { found } => {
                write!(f, "filter: found {found:?}, expected LEVEL or TARGET=LEVEL")
            }
            Self::Dir(error) => error.fmt(f),
            Self::Io { step, path, source } => write!(f, "{}: {step}: {source}", path.display()),
            Self::File(error) => error.fmt(f),
            Self::NoSpace {
                path,
                needed,
                available,
                limit,
            } => write!(
                f,
                "{}: a session needs {needed} bytes, {available} may be taken ({limit})",
                path.display()
            ),
            Self::Running { option } => {
                write!(f, "a session runs already, with another value of {option}")
            }
            Self::Closed => write!(f, "the session of this process was closed"),
            Self::OtherCopy { path } => write!(
                f,
                "another copy of the ringmark library in this process has the session {}",
                path.display()
            ),
        }
    }
}

impl std::error::Error for StartError {}

/// Builds a session: `Session::builder().ring_bytes(256 << 10).start()?`.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    options: Options,
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
        /// Most bytes of the session; 16 MiB if not said.
        session_bytes: u64;
        /// The clock; the time stamp counter if not said.
        clock: Clock;
        /// What happens to the ring file at exit.
        keep: Keep;
        /// Whether a helper thread refills the pool and answers requests; yes if not said.
        control: bool;
        /// Rings that wait for threads; 4 if not said.
        warm: u32;
        /// What a forked child does; it follows if not said.
        fork: Fork;
        /// An anonymous, sealed file instead of a named one.
        memfd: bool;
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
        start(self.options)
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
        let directives = parse_filter(directives)?;
        Ok(registry::apply_directives(self.core, directives))
    }

    /// Switches all events off and says good-bye. There is no other session in this process.
    pub fn close(self) {
        registry::unregister_all();
        close(self.core);
    }
}

/// What start and close agree on.
struct Control {
    closed: bool,
    parent_options: Option<Options>,
}

static CONTROL: ControlLock<Control> = ControlLock::new(Control {
    closed: false,
    parent_options: None,
});

pub(super) fn before_fork() {
    CONTROL.before_fork();
}

pub(super) fn after_fork() {
    CONTROL.after_fork();
}

/// In the child of a fork, which has one thread and the lock just released.
pub(super) fn remember_parent_options() {
    CONTROL.lock().parent_options = Core::current().map(|core| core.options.clone());
}

pub(super) fn parent_options() -> Option<Options> {
    CONTROL.lock().parent_options.clone()
}

/// The forked child's own session; without one its events stay off.
pub(super) fn start_child(options: Options) -> Option<&'static Core> {
    registry::unregister_all();
    start(options).ok().map(|session| session.core)
}

/// Starts a session as `RINGMARK`, `RINGMARK_FILTER` and `RINGMARK_TAGS` say. `None`: not wanted,
/// or not possible; the reason is printed only with `RINGMARK_VERBOSE=1`.
pub fn start_from_env() -> Option<Session> {
    let wanted = std::env::var("RINGMARK").unwrap_or_default();
    let result = match Options::parse(&wanted) {
        Ok(None) => return None,
        Ok(Some(options)) => start(with_env(options)),
        Err(error) => Err(StartError::Option(error)),
    };
    match result {
        Ok(session) => Some(session),
        Err(error) => {
            report_off(&error);
            None
        }
    }
}

fn with_env(mut options: Options) -> Options {
    options.filter = std::env::var("RINGMARK_FILTER").unwrap_or_default();
    let tags = std::env::var("RINGMARK_TAGS").unwrap_or_default();
    options.tags = tags
        .split(',')
        .map(str::trim)
        .filter(|t| !t.is_empty())
        .map(str::to_owned)
        .collect();
    options
}

/// Leaves a note beside the ring files, where `ringmark list` finds it.
fn report_off(error: &StartError) {
    let dir = session_dir::path();
    let _ = session_dir::ensure(&dir);
    let note = dir.join(format!("{}.off", std::process::id()));
    let _ = session_dir::create(&note)
        .and_then(|mut file| io::Write::write_all(&mut file, format!("{error}\n").as_bytes()));
    if std::env::var_os("RINGMARK_VERBOSE").is_some_and(|v| v == "1") {
        let line = format!("ringmark: tracing is off: {error}\n");
        let _ = io::Write::write_all(&mut io::stderr(), line.as_bytes());
    }
}

fn parse_filter(text: &str) -> Result<Directives, StartError> {
    Directives::parse(text).map_err(|error| StartError::Filter { found: error.found })
}

fn start(options: Options) -> Result<Session, StartError> {
    options.check().map_err(StartError::Option)?;
    let directives = parse_filter(&options.filter)?;
    let mut control = CONTROL.lock();
    if control.closed {
        return Err(StartError::Closed);
    }
    if let Some(core) = Core::current().filter(|core| core.wiped.is_ours()) {
        return same_options(&core.options, &options).map(|()| Session { core });
    }
    let core: &'static Core = Box::leak(Box::new(create(options)?));
    control.parent_options = None;
    process::install_hooks();
    core.publish();
    registry::register_all(core, directives);
    drop(control);
    prepare_threads(core);
    Ok(Session { core })
}

fn prepare_threads(core: &'static Core) {
    if core.options.control && control::spawn(core) {
        return;
    }
    for _ in 0..core.options.warm {
        if !attach::add_warm(core) {
            break;
        }
    }
}

fn same_options(running: &Options, wanted: &Options) -> Result<(), StartError> {
    let differs = |option| Err(StartError::Running { option });
    match () {
        () if running.mode != wanted.mode => differs("mode"),
        () if running.ring_bytes != wanted.ring_bytes => differs("ring"),
        () if running.page_bytes != wanted.page_bytes => differs("page"),
        () if running.session_bytes != wanted.session_bytes => differs("session"),
        () if running.clock != wanted.clock => differs("clock"),
        () if running.filter != wanted.filter => differs("filter"),
        () if running != wanted => differs("keep, control, warm, fork, memfd or tags"),
        () => Ok(()),
    }
}

/// Makes the ring file and maps it.
fn create(options: Options) -> Result<Core, StartError> {
    let dir = session_dir::path();
    if !options.memfd {
        session_dir::ensure(&dir).map_err(StartError::Dir)?;
        refuse_other_copy(&dir)?;
    }
    let mut notices = Vec::new();
    match if options.memfd {
        0
    } else {
        clean::before_start(&dir)
    } {
        0 => {}
        removed => notices.push(format!("removed {removed} dead sessions to make room")),
    }
    let (clock, fell_back) = usable_clock(options.clock, &mut notices);
    let first = clock::sample(clock);
    let (cap, limit) = memory::cap(&dir, options.session_bytes);
    let regions = Regions::for_cap(cap);
    let least = u64::from(options.page_bytes.min(4096)) * 2;
    if cap < least {
        let limit = limit.unwrap_or("the option session");
        return Err(StartError::NoSpace {
            path: dir,
            needed: regions.end + least,
            available: cap,
            limit,
        });
    }
    if let Some(limit) = limit {
        notices.push(format!("session cut to {cap} bytes by {limit}"));
    }
    let file_bytes = (regions.end + cap).next_multiple_of(4096);
    let session = random_uuid();
    let draft = Draft::create(&dir, session, options.memfd, file_bytes)?;
    layout::allocate(&draft.file, &regions, file_bytes).map_err(|e| draft.failed(e))?;
    let attributes = attributes::gather(&options, &notices);
    let wiped = Wiped::map(regions.slots()).map_err(|e| draft.io("mmap", e))?;
    let rate = measured_rate(clock, first);
    let facts = Facts {
        options: &options,
        identity: identity::own(),
        session,
        clock,
        fell_back,
        zero: first,
        real_zero_ns: clock::realtime_ns(),
        rate,
        attributes: &attributes,
    };
    layout::write(&draft.file, &regions, file_bytes, &facts)
        .map_err(|e| draft.io("write header", e))?;
    let file = draft.publish()?;
    Ok(Core {
        file,
        wiped,
        clock,
        rate,
        cap: regions.end + cap,
        options,
    })
}

fn usable_clock(wanted: Clock, notices: &mut Vec<String>) -> (Clock, bool) {
    if wanted == Clock::Tsc && !clock::tsc_is_invariant() {
        notices.push("clock tsc is not invariant here: monotonic is used".to_owned());
        return (Clock::Monotonic, true);
    }
    (wanted, false)
}

/// The rate over the time that start-up took so far; samples along the trace correct it.
fn measured_rate(clock: Clock, first: ClockSample) -> Rate {
    match clock {
        Clock::Tsc => clock::rate_between(first, clock::sample(clock)).unwrap_or(UNKNOWN_RATE),
        _ => Rate::IDENTITY,
    }
}

fn random_uuid() -> [u8; 16] {
    let mut bytes = [0; 16];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK);
    if got != Ok(16) {
        let seed = u128::from(clock::realtime_ns()) << 64 | u128::from(clock::tsc());
        bytes = seed.to_le_bytes();
    }
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    bytes
}

/// A ring file that nobody sees yet.
struct Draft {
    file: File,
    /// Name while it is being laid out.
    draft: PathBuf,
    /// Name afterwards.
    path: PathBuf,
    memfd: bool,
}

impl Draft {
    fn create(dir: &Path, session: [u8; 16], memfd: bool, bytes: u64) -> Result<Self, StartError> {
        let short = Uuid(session).to_string();
        let stem = format!("{}-{}", std::process::id(), &short[..8]);
        let path = dir.join(format!("{stem}{RING_FILE_ENDING}"));
        let draft = dir.join(format!("{stem}.starting"));
        let io = |source| StartError::Io {
            step: "create",
            path: draft.clone(),
            source,
        };
        let file = if memfd {
            mapping::sealed_memfd("ringmark.ring", bytes).map_err(|e| io(e.source))?
        } else {
            session_dir::create(&draft).map_err(io)?
        };
        let path = if memfd {
            PathBuf::from("memfd:ringmark.ring")
        } else {
            path
        };
        Ok(Self {
            file,
            draft,
            path,
            memfd,
        })
    }

    fn io(&self, step: &'static str, source: io::Error) -> StartError {
        self.remove();
        StartError::Io {
            step,
            path: self.path.clone(),
            source,
        }
    }

    fn failed(&self, error: MapError) -> StartError {
        self.io(error.step, error.source)
    }

    fn remove(&self) {
        if !self.memfd {
            let _ = fs::remove_file(&self.draft);
        }
    }

    /// Takes the lock, maps the file and gives it its name.
    fn publish(self) -> Result<RingFile, StartError> {
        identity::hold_lock(&self.file);
        if !self.memfd
            && let Err(error) = fs::rename(&self.draft, &self.path)
        {
            return Err(self.io("rename", error));
        }
        RingFile::produce(self.file, &self.path).map_err(StartError::File)
    }
}

/// A file of this very process that is mapped was made by another copy of the library. (A forked
/// child still maps its parent's file, but that one has the parent's pid in its name.)
fn refuse_other_copy(dir: &Path) -> Result<(), StartError> {
    let ours = format!("{}-", std::process::id());
    let mine = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with(&ours))
    };
    let files = session_dir::ring_files(dir).unwrap_or_default();
    let Some(path) = files.into_iter().find(mine) else {
        return Ok(());
    };
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    if maps.contains(&*path.to_string_lossy()) {
        return Err(StartError::OtherCopy { path });
    }
    Ok(())
}

/// Says good-bye: publishes the phase, removes the file if the options say so.
pub(super) fn close(core: &'static Core) {
    CONTROL.lock().closed = true;
    let word = core.state_word(core::mem::offset_of!(SessionState, phase));
    word.store(phase::CLOSED, core::sync::atomic::Ordering::Release); // [T1] pairs with [T2]
    let drained = core.options.mode == Mode::Overwrite || is_drained(core);
    let remove = match core.options.keep {
        Keep::Always => false,
        Keep::Never => true,
        Keep::Crash => drained,
    };
    if remove && !core.options.memfd {
        let _ = fs::remove_file(core.file.path());
    }
}

fn is_drained(core: &Core) -> bool {
    let mut slots = (0..core.file.slots_used()).filter_map(|index| core.file.slot(index));
    slots.all(|slot| slot.consumed() == slot.produced())
}
