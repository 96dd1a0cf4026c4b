//! The thread block: where a thread finds its writer.
//!
//! A thread-local symbol defined in assembly, so that Rust, C and generated stubs reach it by the
//! same two instructions. All zero in a new thread.

use core::mem::offset_of;
use core::ptr;

use ringmark_ring::Writer;

/// The block of one thread.
#[repr(C)]
struct ThreadBlock {
    writer: *const Writer,
    phase: u64,
    failure: u64,
}

/// What a thread does with Ringmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Phase {
    /// No ring yet, or attached.
    Open = 0,
    /// Getting a ring: events that come now, in a signal handler or in a function of the program's
    /// own that getting it calls, are lost.
    Attaching = 1,
    /// The ring was given back at thread exit: later events are lost.
    Exited = 2,
}

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".pushsection .tbss.ringmark_thread_block,\"awT\",@nobits",
    ".balign 16",
    ".globl ringmark_thread_block",
    ".type ringmark_thread_block,@tls_object",
    ".size ringmark_thread_block,32",
    "ringmark_thread_block:",
    ".zero 32",
    ".popsection",
);

/// Address of this thread's block.
#[inline(always)]
fn block() -> *mut ThreadBlock {
    let block: *mut ThreadBlock;
    // SAFETY: reads the thread pointer and the symbol's offset from it (initial-exec model); both
    // are set up before any code of the thread runs.
    unsafe {
        core::arch::asm!(
            "mov {block}, qword ptr [rip + ringmark_thread_block@gottpoff]",
            "add {block}, qword ptr fs:[0]",
            block = out(reg) block,
            options(pure, readonly, nostack),
        );
    }
    block
}

/// What tells this thread from all others.
pub(crate) fn address() -> usize {
    block().addr()
}

/// This thread's writer, if it has one.
#[inline(always)]
pub(crate) fn writer() -> Option<&'static Writer> {
    let writer: *const Writer;
    // SAFETY: loads the first word of this thread's block; see `block`.
    unsafe {
        core::arch::asm!(
            "mov {writer}, qword ptr [rip + ringmark_thread_block@gottpoff]",
            "mov {writer}, qword ptr fs:[{writer}]",
            writer = out(reg) writer,
            options(readonly, nostack, preserves_flags),
        );
    }
    // SAFETY: null, or set by `set_writer` from a reference that lives for ever.
    unsafe { writer.as_ref() }
}

/// Gives this thread a writer, or takes it away.
pub(crate) fn set_writer(writer: Option<&'static Writer>) {
    let value = writer.map_or(ptr::null(), ptr::from_ref);
    let place = block().cast::<*const Writer>();
    // SAFETY: the first word of this thread's block; a handler on it sees the old or the new one.
    unsafe { place.write_volatile(value) };
}

/// Where this thread keeps its phase.
fn phase_word() -> *mut u64 {
    block()
        .cast::<u64>()
        .wrapping_add(offset_of!(ThreadBlock, phase) / 8)
}

/// Where this thread keeps what it knows about its last look for a ring.
fn failure_word() -> *mut u64 {
    block()
        .cast::<u64>()
        .wrapping_add(offset_of!(ThreadBlock, failure) / 8)
}

/// What this thread knows about its last look for a ring; 0: nothing.
pub(crate) fn failure() -> u64 {
    let place = failure_word();
    // SAFETY: the third word of this thread's block, zero or written by `set_failure`.
    unsafe { place.read_volatile() }
}

/// Remembers it.
pub(crate) fn set_failure(failure: u64) {
    let place = failure_word();
    // SAFETY: as in `failure`.
    unsafe { place.write_volatile(failure) };
}

/// What this thread does with Ringmark.
pub(crate) fn phase() -> Phase {
    let place = phase_word();
    // SAFETY: the second word of this thread's block, zero or written by `set_phase`.
    match unsafe { place.read_volatile() } {
        0 => Phase::Open,
        1 => Phase::Attaching,
        _ => Phase::Exited,
    }
}

/// Says what this thread does with Ringmark.
pub(crate) fn set_phase(phase: Phase) {
    let place = phase_word();
    // SAFETY: as in `phase`.
    unsafe { place.write_volatile(phase as u64) };
}
