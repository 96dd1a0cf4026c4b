//! What this process was given when it started, and programs that are started with the same.
//!
//! Rust's runtime ignores SIGPIPE before `main` and opens `/dev/null` where a standard stream is closed;
//! [`Command`] resets SIGPIPE and sorts the environment. Here all that is read before the runtime begins.

use std::ffi::{CString, OsStr, OsString, c_int};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// Signals that were ignored: SIGHUP in bit 0.
static IGNORED: AtomicU64 = AtomicU64::new(0);
/// Signals that were blocked.
static BLOCKED: AtomicU64 = AtomicU64::new(0);
/// Standard streams that were closed: standard input in bit 0.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Numbers of signals that there are.
const SIGNALS: std::ops::RangeInclusive<c_int> = 1..=64;

// The C library calls the functions of this section before Rust's runtime begins.
#[unsafe(link_section = ".init_array")]
#[used]
static READ: extern "C" fn() = read;

extern "C" fn read() {
    let of = |signals: &mut dyn Iterator<Item = c_int>| signals.fold(0, |all, one| all | bit(one));
    IGNORED.store(of(&mut SIGNALS.filter(|one| is_ignored(*one))), Relaxed);
    let mut set = no_signals();
    // SAFETY: a null pointer changes nothing; the set is ours to be filled in.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, ptr::null(), &raw mut set) };
    let is_member = |one: &c_int| {
        // SAFETY: a set that was filled in.
        unsafe { libc::sigismember(&raw const set, *one) == 1 }
    };
    BLOCKED.store(of(&mut SIGNALS.filter(is_member)), Relaxed);
    let is_closed = |number: &u8| {
        // SAFETY: asks about a descriptor, and changes nothing.
        unsafe { libc::fcntl(c_int::from(*number), libc::F_GETFD) == -1 }
    };
    let closed = (0..3).filter(is_closed).fold(0, |all, one| all | 1 << one);
    CLOSED.store(closed, Relaxed);
    if IGNORED.load(Relaxed) & bit(libc::SIGCHLD) != 0 {
        // Else the ends of our children would be lost.
        set_action(libc::SIGCHLD, libc::SIG_DFL);
    }
}

fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

fn is_ignored(signal: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null pointer changes nothing; the action is ours to be filled in.
    let found = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: zeros are a valid action.
    let action = unsafe { action.assume_init() };
    found == 0 && action.sa_sigaction == libc::SIG_IGN
}

fn set_action(signal: c_int, action: libc::sighandler_t) {
    // SAFETY: one of the two actions that are no handlers. The C library refuses signals of its own.
    unsafe { libc::signal(signal, action) };
}

fn no_signals() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the set is ours to be filled in.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: it was filled in.
    unsafe { set.assume_init() }
}

/// These signals as the C library has them.
pub(crate) fn set_of(signals: impl IntoIterator<Item = c_int>) -> libc::sigset_t {
    let mut set = no_signals();
    for signal in signals {
        // SAFETY: a set that was filled in; a number that is no signal's is refused.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

/// Whether this signal was ignored.
#[must_use]
pub fn was_ignored(signal: c_int) -> bool {
    IGNORED.load(Relaxed) & bit(signal) != 0
}

/// Has a program find what this one was given: ignored and blocked signals, closed streams. What the
/// command itself redirects is left alone if `redirects` names it.
pub fn pass_on(command: &mut Command, redirects: &[c_int]) {
    pass_on_with(command, redirects, Vec::new());
}

/// A program with its arguments that is started with what this one was given, and with these variables set
/// in its environment, the others as they were and in their order.
#[must_use]
pub fn command(
    program: &OsStr,
    arguments: &[OsString],
    variables: &[(&str, OsString)],
    redirects: &[c_int],
) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    let environment = with(environment(), variables);
    let environment = environment
        .into_iter()
        .filter_map(|text| CString::new(text).ok());
    pass_on_with(&mut command, redirects, environment.collect());
    command
}

/// With an empty environment, the one that the command has.
fn pass_on_with(command: &mut Command, redirects: &[c_int], environment: Vec<CString>) {
    let redirected = redirects.iter().fold(0, |all, one| all | 1 << one);
    let closed = CLOSED.load(Relaxed) & !redirected;
    let (ignored, blocked) = (IGNORED.load(Relaxed), BLOCKED.load(Relaxed));
    // Addresses as numbers: pointers may not go to the child's side.
    let mut words: Vec<_> = environment
        .iter()
        .map(|text| text.as_ptr().expose_provenance())
        .collect();
    words.push(0);
    let restore = move || {
        for signal in SIGNALS.filter(|one| ignored & bit(*one) != 0) {
            set_action(signal, libc::SIG_IGN);
        }
        let mask = set_of(SIGNALS.filter(|one| blocked & bit(*one) != 0));
        // SAFETY: sets the mask of the only thread to one that was filled in.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const mask, ptr::null_mut()) };
        for number in (0..3).filter(|one| closed & 1 << one != 0) {
            // SAFETY: `/dev/null`, which the runtime has opened and nobody uses here.
            unsafe { libc::close(number) };
        }
        if !environment.is_empty() {
            // SAFETY: the only thread; nothing here changes the environment afterwards, and the words lead to
            // texts that live as long as this closure.
            unsafe { libc::environ = words.as_mut_ptr().cast() };
        }
        Ok(())
    };
    // SAFETY: it calls functions that a signal handler may call, and takes no lock and no memory.
    unsafe { command.pre_exec(restore) };
}

/// The texts of the environment, as they were given.
fn environment() -> Vec<Vec<u8>> {
    let given = std::fs::read("/proc/self/environ").unwrap_or_default();
    if given.is_empty() {
        let variables = std::env::vars_os();
        let text = |(name, value): (OsString, OsString)| {
            [name.as_bytes(), b"=", value.as_bytes()].concat()
        };
        return variables.map(text).collect();
    }
    let given = given.strip_suffix(b"\0").unwrap_or(&given);
    given.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

/// Sets variables: where the first of that name stands, or behind all others.
fn with(mut environment: Vec<Vec<u8>>, variables: &[(&str, OsString)]) -> Vec<Vec<u8>> {
    for (name, value) in variables {
        let head = [name.as_bytes(), b"="].concat();
        let text = [&head, value.as_bytes()].concat();
        match environment.iter().position(|one| one.starts_with(&head)) {
            Some(place) => environment[place] = text,
            None => environment.push(text),
        }
    }
    environment
}
