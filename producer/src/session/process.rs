//! Thread exit, process exit, fork: what the operating system tells the session. What lies above is
//! called through [`Hooks`], which it hands in.
//!
//! # Invariants
//!
//! 1. A hook that the system is given is a function of this object, which `pin` keeps mapped until
//!    the process ends.
//! 2. The value of the key in `EXIT_KEY` is null, or a `&'static Writer` that `seal_at_thread_exit`
//!    stored.
//! 3. What a call writes fits into the local that it is given.
//! 4. The words of a ring file are reached through atomics only, by this process at the same
//!    address for ever: other memory may take the place of the mapping.
//! 5. A thread's place for its `errno` is there as long as the thread, and only the thread uses it.

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};

use ringmark_format::counters::Cause;
use ringmark_format::session::Clock;
use ringmark_ring::published_static::Published;
use ringmark_ring::{ClockSample, Writer, clock, raw};

use super::core::Core;
use super::exit_status::{self, AtExit};
use super::held_signals::HeldSignals;
use super::{handler, pin, retry};
#[cfg(feature = "tracing")]
use crate::setup::Fork;
use crate::thread_block::{self, Phase};

/// A lock that a fork holds: the child finds it free, and what it guards whole.
pub(super) struct ForkLock {
    pub(super) take: fn(),
    pub(super) give_back: fn(),
}

/// What the hooks of the operating system call. A fork itself calls only `locks`: the child starts
/// its session with its first event.
pub(super) struct Hooks {
    /// Locks that a fork takes, in the order in which a start takes them.
    pub(super) locks: [ForkLock; 2],
    /// Starts the session of a forked child, if it gets one.
    pub(super) start_child: fn() -> Option<&'static Core>,
    /// Ends a session whose process exits, with this status where it is known.
    pub(super) exit: fn(&'static Core, Option<c_int>),
}

/// The hooks that were handed in: always the same ones.
static HOOKS: Published<Hooks> = Published::new();
/// The key whose destructor runs at thread exit, after those of Rust's thread locals. 0: none.
static EXIT_KEY: AtomicU32 = AtomicU32::new(0);
/// The thread that forks and holds the locks for that time, by its block; 0: none.
static FORKING: AtomicUsize = AtomicUsize::new(0);
/// The state of this process: [`NOT_FORKED`], [`CHILD`] or [`STARTING`].
static FORKED: AtomicU32 = AtomicU32::new(NOT_FORKED);
/// It is no child of a traced process, or its own session has been decided on.
const NOT_FORKED: u32 = 0;
/// It is the child of a fork and has no session yet.
const CHILD: u32 = 1;
/// One of its threads starts its session.
const STARTING: u32 = 2;
/// The time of the fork: tick, and nanoseconds of `CLOCK_MONOTONIC`.
static FORKED_AT: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Events that came while a forked child's session was starting, for which no thread waits, or in
/// signal handlers before its start.
static EARLY: AtomicU64 = AtomicU64::new(0);
/// Events of processes that must not write, such as raw clones.
static FOREIGN: AtomicU64 = AtomicU64::new(0);

/// In a forked child: the time of the fork on this clock. The times of its session count from there:
/// a span may have begun before the session.
pub(super) fn fork_time(clock: Clock) -> Option<ClockSample> {
    Core::parent().filter(|parent| parent.clock == clock)?;
    let [tick, mono_ns] = FORKED_AT.each_ref().map(|word| word.load(Relaxed));
    (mono_ns != 0).then_some(ClockSample { tick, mono_ns })
}

/// Registers the hooks for fork, which every lock needs before it is first taken. Racing callers may
/// both register: the hooks are idempotent, and no caller returns before they are in place.
pub(super) fn install_fork_hooks(hooks: &'static Hooks) {
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    if INSTALLED.load(Relaxed) {
        return;
    }
    // Before the registration: a fork after it finds them.
    HOOKS.publish(hooks);
    // Everything that leads here from outside, such as threads and hooks, comes after this.
    pin::own_object();
    // SAFETY: invariant 1.
    unsafe {
        libc::pthread_atfork(
            Some(before_fork),
            Some(after_fork_parent),
            Some(after_fork_child),
        )
    };
    INSTALLED.store(true, Relaxed);
}

/// Registers the hooks for the end of threads and of the process, once. To be called under a lock.
pub(super) fn install_exit_hooks() {
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    if INSTALLED.swap(true, Relaxed) {
        return;
    }
    let mut key = 0;
    // SAFETY: invariants 1 and 3: `key` is a local.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(on_thread_exit)) } == 0 {
        EXIT_KEY.store(key + 1, Relaxed);
    }
    exit_status::at_exit(&AtExit(on_process_exit));
}

/// Arranges for `writer`, and every ring that joins it, to be sealed when this thread ends.
pub(super) fn seal_at_thread_exit(writer: &'static Writer) {
    if let Some(key) = EXIT_KEY.load(Relaxed).checked_sub(1) {
        // SAFETY: invariant 2: the key was created.
        unsafe { libc::pthread_setspecific(key, ptr::from_ref(writer).cast()) };
    }
}

unsafe extern "C" fn on_thread_exit(value: *mut c_void) {
    // SAFETY: invariant 2.
    let Some(writer) = (unsafe { value.cast::<Writer>().as_ref() }) else {
        return;
    };
    thread_block::set_phase(Phase::Exited);
    thread_block::set_writer(None);
    writer.seal_all();
    retry::ring_freed();
}

fn on_process_exit(status: Option<c_int>) {
    if let Some(core) = Core::current()
        && core.wiped.is_ours()
        && let Some(hooks) = HOOKS.current()
    {
        (hooks.exit)(core, status);
    }
}

fn locks() -> &'static [ForkLock] {
    HOOKS.current().map_or(&[], |hooks| &hooks.locks)
}

/// Takes the locks in the order in which a start takes them.
extern "C" fn before_fork() {
    if FORKING.load(Relaxed) != thread_block::address() {
        locks().iter().for_each(|lock| (lock.take)());
        FORKING.store(thread_block::address(), Relaxed);
    }
}

extern "C" fn after_fork_parent() {
    if FORKING.load(Relaxed) == thread_block::address() {
        FORKING.store(0, Relaxed);
        locks().iter().rev().for_each(|lock| (lock.give_back)());
    }
}

extern "C" fn after_fork_child() {
    after_fork_parent();
    let Some(parent) = Core::current() else {
        return;
    };
    let_go_of_rings(parent);
    thread_block::set_writer(None);
    thread_block::set_phase(Phase::Open);
    thread_block::set_failure(0);
    let now = clock::sample(parent.clock);
    FORKED_AT[0].store(now.tick, Relaxed);
    FORKED_AT[1].store(now.mono_ns, Relaxed);
    parent.inherit();
    EARLY.store(0, Relaxed);
    FORKED.store(CHILD, Relaxed);
}

/// Puts private zeros in place of the parent's ring file: a record that was reserved before the fork
/// may yet be written and committed here, and must not reach the parent's pages.
fn let_go_of_rings(parent: &Core) {
    let map = parent.file.map();
    let Some(words) = map.words(0, map.bytes() & !7) else {
        return;
    };
    let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let start = words.as_ptr().cast_mut().cast();
    // SAFETY: invariant 4: replaces exactly our own mapping by as much other memory. Where that
    // fails, the parent's stays.
    unsafe { libc::mmap(start, size_of_val(words), protection, flags, -1, 0) };
}

/// In a forked child without a session yet: starts one, if the parent's options say so.
/// Not in a signal handler, which may have interrupted whatever a start needs: its events are lost.
pub(super) fn session_after_fork() -> Option<&'static Core> {
    // What a start calls may be traced, and is no call of the program: no handler's calls are to pass for it.
    let signals = (FORKED.load(Relaxed) == CHILD).then(HeldSignals::hold);
    if signals.as_ref().is_some_and(is_in_handler) {
        EARLY.fetch_add(1, Relaxed);
        return None;
    }
    match FORKED.compare_exchange(CHILD, STARTING, Relaxed, Relaxed) {
        Ok(_) => {
            let _errno = KeptErrno::new();
            let core = HOOKS.current().and_then(|hooks| (hooks.start_child)());
            FORKED.store(NOT_FORKED, Relaxed);
            core.inspect(|core| count_early(core))
        }
        Err(STARTING) => Core::current().or_else(|| {
            EARLY.fetch_add(1, Relaxed);
            // It may have started in between; then this event is counted by the thread that comes first.
            Core::current().inspect(|core| count_early(core));
            None
        }),
        Err(_) => Core::current(),
    }
}

/// Whether the session of a forked child is being started.
pub(super) fn is_starting_in_child() -> bool {
    FORKED.load(Relaxed) == STARTING
}

/// Whether this is a forked child that gets a session when it first records something.
#[cfg(feature = "tracing")]
pub(super) fn awaits_session() -> bool {
    let follows = |parent: &Core| parent.options.fork == Fork::Follow;
    FORKED.load(Relaxed) != NOT_FORKED && Core::parent().is_some_and(follows)
}

/// Whether a signal handler runs, or a function that the program defines and that this look calls.
fn is_in_handler(held: &HeldSignals) -> bool {
    let phase = thread_block::phase();
    if phase == Phase::Attaching {
        return true;
    }
    thread_block::set_phase(Phase::Attaching);
    let blocked = held.blocked_before();
    let is_running = handler::is_running_where(blocked.unwrap_or_else(handler::blocked_signals));
    thread_block::set_phase(phase);
    is_running
}

/// Counts the early events as lost, now that there is a session that can say so.
fn count_early(core: &Core) {
    for _ in 0..EARLY.swap(0, Relaxed) {
        core.count_lost(Cause::NoRing);
    }
}

/// From this key on the C library allocates the place for a thread's value.
const FIRST_KEY_THAT_ALLOCATES: u32 = 32;

/// Whether this thread may get a ring of the session: not if it is a process of its own that shares
/// our memory, as `clone` makes them, and not yet where the hook at its end would have to be
/// allocated in a signal handler.
pub(super) fn may_attach(core: &Core) -> bool {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    if own.cast_unsigned() != core.file.geometry().header.pid {
        return false;
    }
    // The key's number is one less.
    EXIT_KEY.load(Relaxed) <= FIRST_KEY_THAT_ALLOCATES || !handler::is_running()
}

/// Whether the calling thread is between the hooks of a fork, and holds the locks for that time.
pub(super) fn is_forking() -> bool {
    FORKING.load(Relaxed) == thread_block::address()
}

/// Whether the calling thread is scheduled ahead of ordinary ones, or that cannot be asked.
pub(super) fn is_real_time() -> bool {
    // SAFETY: asks for the policy of the calling thread.
    let policy = unsafe { raw::syscall(libc::SYS_sched_getscheduler, [0; 4]) };
    let policy = policy & !i64::from(libc::SCHED_RESET_ON_FORK);
    let ordinary = [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE];
    !ordinary.map(i64::from).contains(&policy)
}

/// Gives `errno` back as it was: an event may stand between a call and the look at its error. Asks
/// the C library where that is, so a function of the program must not call back into this one
/// while it does.
pub(super) struct KeptErrno(libc::c_int);

impl KeptErrno {
    pub(super) fn new() -> Self {
        // SAFETY: invariant 5: takes nothing, changes nothing.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: invariant 5.
        Self(unsafe { place.read() })
    }
}

impl Drop for KeptErrno {
    fn drop(&mut self) {
        // SAFETY: invariant 5: takes nothing, changes nothing.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: invariant 5.
        unsafe { place.write(self.0) };
    }
}

/// Counts an event of a process that must not write.
pub(super) fn count_foreign() {
    FOREIGN.fetch_add(1, Relaxed);
}

/// Events that were not recorded because this process is a raw clone of a traced one.
pub(super) fn foreign_events() -> u64 {
    FOREIGN.load(Relaxed)
}

/// Thread id and name of the calling thread.
pub(super) fn own_thread() -> (u32, [u8; 16]) {
    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let mut name = [0_u8; 16];
    let arguments = [libc::PR_GET_NAME as u64, name.as_mut_ptr() as u64, 0, 0];
    // SAFETY: invariant 3: PR_GET_NAME writes at most 16 bytes. Where a filter forbids it the
    // thread has no name.
    let _ = unsafe { raw::syscall(libc::SYS_prctl, arguments) };
    (tid, name)
}
