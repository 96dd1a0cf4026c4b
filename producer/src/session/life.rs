//! A session's life: started by the program, by its environment or after a fork; closed.

use core::ffi::c_int;
use core::sync::atomic::Ordering;
use std::fmt;
use std::fs::{self, File};
use std::path::Path;

use ringmark_format::Uuid;
use ringmark_format::session::{Clock, Mode, SessionState, exit_status, phase};
use ringmark_ring::consumer_lease;
use ringmark_ring::control_lock::ControlLock;
use ringmark_ring::environment;

use super::control::Helper;
use super::core::Core;
use super::process::{ForkLock, Hooks};
use super::{attach, create, memory, off_note, other_copies, process, registry, span_gate};
use super::{wait_record, warm};
use crate::setup::StartError;
use crate::setup::filter::{DirectiveError, Directives};
use crate::setup::{Fork, Keep, OptionError, Options};

/// What start and close agree on.
struct Control {
    closed: bool,
}

static CONTROL: ControlLock<Control> = ControlLock::new(Control { closed: false });

/// The hooks of the operating system.
static HOOKS: Hooks = Hooks {
    locks: [
        ForkLock {
            take: || CONTROL.before_fork(),
            give_back: || CONTROL.after_fork(),
        },
        registry::FORK_LOCK,
    ],
    start_child,
    exit: |core, status| close(core, End::Exit(status)),
};

/// Registers the hooks for fork; see [`process::install_fork_hooks`].
pub(super) fn install_fork_hooks() {
    process::install_fork_hooks(&HOOKS);
}

/// The forked child's own session, as its parent's options say; without one its events are off.
fn start_child() -> Option<&'static Core> {
    let options = Core::parent().map(|parent| &parent.options);
    let options = options.filter(|options| options.fork == Fork::Follow);
    let core = options.and_then(|options| start_core(options.clone()).ok());
    if core.or_else(Core::current).is_none() {
        registry::unregister_all();
    }
    core
}

/// Starts a session if the environment asks for one; leaves a note where none can be started.
pub(crate) fn start_from_env() -> Option<Session> {
    start_changed(|options| options)
}

/// The same, with options that are changed.
fn start_changed(change: fn(Options) -> Options) -> Option<Session> {
    let wanted = environment::text("RINGMARK").unwrap_or_default();
    let result = match Options::parse(&wanted) {
        Ok(None) => return None,
        Ok(Some(options)) => start(with_env(change(options))),
        Err(error) => Err(StartError::Option(error)),
    };
    result.inspect_err(off_note::leave).ok()
}

fn with_env(mut options: Options) -> Options {
    options.filter = environment::text("RINGMARK_FILTER").unwrap_or_default();
    let tags = environment::text("RINGMARK_TAGS").unwrap_or_default();
    options.tags = tags
        .split(',')
        .map(str::trim)
        .filter(|t| !t.is_empty())
        .map(str::to_owned)
        .collect();
    options
}

fn parse_filter(text: &str, clock: Clock) -> Result<Directives, StartError> {
    let wrong = |error: DirectiveError| StartError::Filter { found: error.found };
    let directives = Directives::parse(text).map_err(wrong)?;
    match span_gate::refusal(clock, directives.conditions().count()) {
        None => Ok(directives),
        Some(expected) => Err(StartError::Option(OptionError {
            option: "filter".to_owned(),
            found: text.to_owned(),
            expected,
        })),
    }
}

/// Starts the session of this process and notifies the listener of what is enabled. (A forked child inherits
/// its parent's caches with the same filter, and must not take foreign locks.)
pub(crate) fn start(options: Options) -> Result<Session, StartError> {
    let core = start_core(options)?;
    registry::tell();
    Ok(Session::of(core))
}

fn start_core(options: Options) -> Result<&'static Core, StartError> {
    options.check().map_err(StartError::Option)?;
    let directives = parse_filter(&options.filter, options.clock)?;
    // Before the lock: a child forked while this thread starts must not inherit it as taken.
    install_fork_hooks();
    if !options.wait.is_zero() {
        wait_record::describe(registry::register);
    }
    let control = CONTROL.lock();
    if control.closed {
        return Err(StartError::Closed);
    }
    if let Some(core) = Core::current().filter(|core| core.wiped.is_ours()) {
        return same_options(&core.options, &options).map(|()| core);
    }
    process::install_exit_hooks();
    let (core, helper) = create::create(options)?;
    let core: &'static Core = Box::leak(Box::new(core));
    registry::register_all(core, directives);
    drop(control);
    prepare_threads(core, helper);
    Ok(core)
}

fn prepare_threads(core: &'static Core, helper: Option<Helper>) {
    if let Some(helper) = helper {
        return helper.serve();
    }
    warm::fill(core);
}

fn same_options(running: &Options, wanted: &Options) -> Result<(), StartError> {
    let differs = |option| Err(StartError::Running { option });
    match () {
        () if running.mode != wanted.mode => differs("mode"),
        () if running.ring_bytes != wanted.ring_bytes => differs("ring"),
        () if running.page_bytes != wanted.page_bytes => differs("page"),
        () if running.session_bytes() != wanted.session_bytes() => differs("session"),
        () if running.clock != wanted.clock => differs("clock"),
        () if running.filter != wanted.filter => differs("filter"),
        () if running != wanted => {
            differs("keep, control, warm, wait, fork, memfd, guard, panic or tags")
        }
        () => Ok(()),
    }
}

/// How a session ends.
#[derive(Clone, Copy)]
enum End {
    /// The program closes it and goes on.
    Close,
    /// The process exits, with this status where it is known.
    Exit(Option<c_int>),
}

/// Closes a session: publishes the phase, removes the file if the options say so. In a forked child,
/// which may hold its parent's handle, it is the child's own session that ends, if it has one.
/// Types stay on in an exit: handlers and other threads emit until the process is gone.
fn close(core: &'static Core, end: End) {
    CONTROL.lock().closed = true;
    let own = Some(core).filter(|core| core.wiped.is_ours());
    let Some(core) = own.or_else(|| Core::current().filter(|core| core.wiped.is_ours())) else {
        return;
    };
    let was_closed = core.file.closed();
    if let End::Exit(Some(status)) = end {
        let word = core.state_word(core::mem::offset_of!(SessionState, exit_status));
        word.store(exit_status::word(status), Ordering::Relaxed);
    }
    if !was_closed {
        let word = core.state_word(core::mem::offset_of!(SessionState, phase));
        let last_phase = match end {
            End::Close => phase::CLOSED,
            End::Exit(_) => phase::EXITING,
        };
        word.store(last_phase, Ordering::Release); // [T1] pairs with [T2]
    }
    if core.options.memfd {
        return;
    }
    let remove = match core.options.keep {
        // No system call: a filter may kill the process for it.
        Keep::Always => return,
        Keep::Never => true,
        Keep::Crash => is_clean(end) && is_done_with(core, was_closed),
    };
    if remove {
        let _ = fs::remove_file(core.file.path());
    } else {
        memory::give_warm_rings_back(core);
    }
}

/// Whether the process ends well, as far as is known now: a status that is not known is evidence to
/// be kept. A session that was closed stays until then.
fn is_clean(end: End) -> bool {
    matches!(end, End::Exit(Some(status)) if exit_status::word(status) == exit_status::word(0))
}

/// Whether no reader wants the file of a session whose process exits cleanly.
fn is_done_with(core: &Core, was_closed: bool) -> bool {
    match core.options.mode {
        Mode::Overwrite if was_closed => !is_awaited(core) || is_drained(core),
        Mode::Overwrite => !is_awaited(core),
        // What handlers and other threads emit in an exit is the consumer's.
        Mode::Discard => (was_closed || !is_awaited(core)) && is_drained(core),
    }
}

/// Whether a consumer of all sessions comes for this one, and removes it.
fn is_awaited(core: &Core) -> bool {
    core.file
        .path()
        .parent()
        .is_some_and(consumer_lease::is_held)
}

/// Whether a reader has everything, and there is no loss that only this file could tell of.
fn is_drained(core: &Core) -> bool {
    let mut slots = (0..core.file.slots_used()).filter_map(|index| core.file.slot(index));
    let read = slots.all(|slot| slot.consumed() == slot.produced() && slot.lost_in_all() == 0);
    read && core.file.lost().iter().all(|count| *count == 0)
}

/// A handle to the session of this process: its living ring file.
///
/// Copying and dropping a handle does nothing; the session ends with the process, or by
/// [`Session::close`].
///
/// ```
/// use ringmark::{Session, event};
///
/// let session = Session::builder().start().expect("a session");
/// event!("started");
/// assert_eq!(session.records(), 1);
/// assert_eq!(Session::current().map(|s| s.uuid()), Some(session.uuid()));
///
/// session.close();
/// event!("too.late");
/// assert_eq!(session.records(), 1);
/// ```
#[derive(Clone, Copy)]
pub struct Session {
    pub(super) core: &'static Core,
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

    /// The session of this process, if one runs.
    ///
    /// A forked child has none until its first event starts its own: the session of its parent is
    /// not returned.
    #[must_use]
    pub fn current() -> Option<Self> {
        Core::current()
            .filter(|core| core.wiped.is_ours())
            .map(Self::of)
    }

    /// Starts a session for a copy of this library that was loaded into a running process: with the
    /// options of the environment or else the default ones, changed as `settings` says, which is
    /// empty or `key=value,…`. It has no prepared rings, and the clock of the sessions that the
    /// process has. A failure leaves a note, as that of [`start_from_env`](crate::start_from_env).
    #[must_use]
    pub fn start_in_running_process(settings: &str) -> Option<Self> {
        span_gate::has_no_spans();
        let wanted = environment::text("RINGMARK").unwrap_or_default();
        let options = Options::parse(&wanted).ok().flatten().unwrap_or_default();
        let clock = other_copies::clock_of_process().unwrap_or(options.clock);
        // The threads run already: each makes its ring at its first record.
        let own = |options: Options| Options {
            clock,
            warm: 0,
            ..with_env(options)
        };
        let options = options.with(settings).map_err(StartError::Option);
        let started = options.and_then(|options| start(own(options)));
        started.inspect_err(off_note::leave).ok()
    }

    /// Starts a session for a copy of this library that was loaded in front of a program, as
    /// [`start_from_env`](crate::start_from_env) does. It has no prepared rings: the program's own
    /// copy has them, and each thread makes its ring here at its first record.
    #[must_use]
    pub fn start_in_front_of_program() -> Option<Self> {
        span_gate::has_no_spans();
        start_changed(|options| Options { warm: 0, ..options })
    }

    /// Path of the ring file; for an anonymous file a name that cannot be opened.
    ///
    /// A name for tools: `ringmark` and the crate `ringmark-reader` open it, during the session and
    /// after the process has died.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.core.file.path()
    }

    /// The open ring file, for handing a memfd to a reader.
    #[must_use]
    pub fn file(&self) -> &File {
        self.core.file.file()
    }

    /// Whether panics of the program are to be recorded.
    pub(crate) fn records_panics(&self) -> bool {
        self.core.options.panic
    }

    /// The session's random identity, which its trace files carry.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        Uuid(self.core.file.geometry().header.session)
    }

    /// The clock that the ticks count; another one than configured where that one is not usable.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.core.clock
    }

    /// Ticks of the session's clock in `ns` nanoseconds, for differences of
    /// [`ticks`](crate::ticks). Rounded down; `u64::MAX` where the number does not fit.
    #[must_use]
    pub fn ticks_of_ns(&self, ns: u64) -> u64 {
        let rate = self.core.rate;
        let ticks = (u128::from(ns) << rate.shift) / u128::from(rate.mult.max(1));
        ticks.try_into().unwrap_or(u64::MAX)
    }

    /// Events that were not recorded because this process is a raw clone of a traced one, which
    /// must not write into its parent's rings.
    #[must_use]
    pub fn foreign_events() -> u64 {
        process::foreign_events()
    }

    /// Changes which events are enabled, as [`Builder::filter`](crate::Builder::filter) sets it;
    /// returns the number of types that are enabled now. Types that are registered later obey it,
    /// too. Without a session of this process, as in an untraced child, it changes nothing.
    ///
    /// ```
    /// use ringmark::{Session, event};
    ///
    /// let session = Session::builder().start().expect("a session");
    /// session.set_filter("off").expect("a level");
    /// event!("not recorded");
    /// session.set_filter("info").expect("a level");
    /// event!("recorded");
    /// assert_eq!(session.records(), 1);
    /// ```
    ///
    /// # Errors
    /// A directive cannot be read; nothing was changed.
    pub fn set_filter(&self, directives: &str) -> Result<usize, StartError> {
        let directives = parse_filter(directives, self.clock())?;
        // In a forked child: of its own session, not its parent's.
        let Some(core) = attach::session_of_this_process() else {
            return Ok(0);
        };
        let on = registry::apply_directives(core, directives);
        registry::tell();
        Ok(on)
    }

    /// Disables all events and ends the session. No other session can start in this process.
    ///
    /// The ring file stays or goes as [`Builder::keep`](crate::Builder::keep) says: by default it
    /// stays until the process has exited with status 0. Threads keep their rings mapped, so an
    /// event that is being written by another thread does no harm.
    pub fn close(self) {
        registry::unregister_all();
        close(self.core, End::Close);
        registry::tell();
    }
}
