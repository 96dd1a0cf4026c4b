//! Whether the calling thread is in a signal handler: there it must not allocate or wait for a lock,
//! since it may have interrupted the allocator or the holder of the lock.
//!
//! The frame of a handler holds the context of the code that was interrupted, which links to no other one (sigreturn(2)).
//! On x86-64 it begins with the address of its action's restorer, to which the handler returns (sigaction(2)); `arch`
//! has the marks of each processor. While the handler runs its signal is blocked, unless its action
//! says `SA_NODEFER`. The address alone is also what sigaction(2) leaves where later frames of the
//! thread have a gap. The false positive: a whole frame of an earlier handler in such a gap, while the
//! signal is blocked for another reason.
//!
//! # Invariants
//!
//! 1. The system calls here ask and change nothing: without a new value the kernel only writes what
//!    is set now into the local that it is given, of the size that it is told.
//! 2. The words that are read lie between an address in a frame of the calling thread and the end
//!    of its stack: they are aligned and mapped, and no other thread writes them.

use ringmark_ring::raw;
use rustix::fs::{Mode, OFlags};

use crate::platform::arch::{HANDLER_FRAME_WORDS, is_handler_frame};

/// Highest signal number.
const SIGNALS: i32 = 64;
/// Places that handlers may return to; more are not looked for.
const RESTORERS_MAX: usize = 4;
/// Words of a stack that are looked at: it may lie in the middle of a program's large mapping.
const WORDS_MAX: usize = 1 << 20;
/// A signal's action as the kernel has it; the C library hides the restorer.
#[repr(C)]
struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// Whether a signal handler runs on this thread, or may well run.
pub(super) fn is_running() -> bool {
    is_running_where(blocked_signals())
}

/// The same, where these signals are blocked, or were before they were all held.
#[inline(never)]
pub(super) fn is_running_where(blocked: u64) -> bool {
    let mut restorers = [0; RESTORERS_MAX];
    let Some(found) = find_restorers(&mut restorers, blocked) else {
        return true;
    };
    // Only what callers left on the stack counts: it begins after this function's own array.
    found > 0 && stack_holds(&restorers[..found], restorers.as_ptr_range().end)
}

/// As [`is_running`], where this library's code runs on a stack of its own: `frame` is an address in a
/// frame of the calling thread on the stack that it left for it.
pub(super) fn is_running_around(frame: usize) -> bool {
    let mut restorers = [0; RESTORERS_MAX];
    let Some(found) = find_restorers(&mut restorers, blocked_signals()) else {
        return true;
    };
    let frame = frame.next_multiple_of(size_of::<usize>()) as *const usize;
    found > 0 && stack_holds(&restorers[..found], frame)
}

/// Where the handlers return to that may run now, and how many places those are; `None`: too many.
#[inline(never)]
fn find_restorers(restorers: &mut [usize; RESTORERS_MAX], blocked: u64) -> Option<usize> {
    let mut found = 0;
    for signal in 1..=SIGNALS {
        let Some(action) = action(signal).filter(|action| may_run(action, signal, blocked)) else {
            continue;
        };
        if !restorers[..found].contains(&action.restorer) {
            *restorers.get_mut(found)? = action.restorer;
            found += 1;
        }
    }
    Some(found)
}

fn may_run(action: &Action, signal: i32, blocked: u64) -> bool {
    let is_blocked = blocked & 1 << (signal - 1) != 0;
    let is_function = action.handler != libc::SIG_DFL && action.handler != libc::SIG_IGN;
    is_function && (is_blocked || action.flags & libc::SA_NODEFER as u64 != 0)
}

pub(super) fn blocked_signals() -> u64 {
    let mut set = 0_u64;
    let bytes = size_of::<u64>() as u64;
    let arguments = [libc::SIG_BLOCK as u64, 0, &raw mut set as u64, bytes];
    // SAFETY: invariant 1: one word.
    let _ = unsafe { raw::syscall(libc::SYS_rt_sigprocmask, arguments) };
    set
}

fn action(signal: i32) -> Option<Action> {
    let mut action = Action {
        handler: 0,
        flags: 0,
        restorer: 0,
        mask: 0,
    };
    let bytes = size_of::<u64>() as u64;
    let arguments = [signal as u64, 0, &raw mut action as u64, bytes];
    // SAFETY: invariant 1: one action.
    let done = unsafe { raw::syscall(libc::SYS_rt_sigaction, arguments) };
    (done == 0).then_some(action)
}

/// Whether a handler's frame is on this stack, from `start` to its end, by where handlers return to.
#[inline(never)]
fn stack_holds(restorers: &[usize], start: *const usize) -> bool {
    let Some(end) = mapping_end(start.addr()) else {
        return true;
    };
    let words = ((end - start.addr()) / size_of::<usize>()).min(WORDS_MAX);
    // SAFETY: invariant 2: `n` is below `words`.
    let word = |n: usize| unsafe { start.wrapping_add(n).read_volatile() };
    (0..words.saturating_sub(HANDLER_FRAME_WORDS))
        .any(|n| is_handler_frame(|at| word(n + at), restorers))
}

/// Where the mapping ends that this address lies in. Allocates nothing.
fn mapping_end(address: usize) -> Option<usize> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let maps = rustix::fs::open(c"/proc/self/maps", flags, Mode::empty()).ok()?;
    let (mut bytes, mut line) = ([0_u8; 512], Line::default());
    loop {
        let got = rustix::io::read(&maps, &mut bytes)
            .ok()
            .filter(|n| *n > 0)?;
        let mut ranges = bytes.get(..got)?.iter().filter_map(|byte| line.take(*byte));
        if let Some((_, end)) = ranges.find(|(start, end)| (*start..*end).contains(&address)) {
            return Some(end);
        }
    }
}

/// A line of `/proc/self/maps`, as far as it was read: `START-END …`.
#[derive(Default)]
struct Line {
    start: usize,
    number: usize,
    is_past: bool,
}

impl Line {
    /// The range, at the byte after it.
    fn take(&mut self, byte: u8) -> Option<(usize, usize)> {
        match byte {
            b'\n' => *self = Self::default(),
            _ if self.is_past => {}
            b'-' => (self.start, self.number) = (self.number, 0),
            b' ' => {
                self.is_past = true;
                return Some((self.start, self.number));
            }
            _ => {
                let digit = char::from(byte).to_digit(16)?;
                self.number = self.number << 4 | digit as usize;
            }
        }
        None
    }
}
