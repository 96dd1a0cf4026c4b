//! The thread block: where a thread finds its writer.
//!
//! A thread-local symbol defined in assembly, so that Rust, C and generated stubs reach it by the
//! same few instructions (`arch`). All zero in a new thread.
//!
//! A process may hold several copies of this library, and each has a block of its own: the symbol is
//! hidden, so no copy finds another one's. C code that is linked to a copy needs a name that is not
//! hidden (feature `c-names`). By it a shared object may find the block of another copy than its
//! own; so it says at registration which block it found.
//!
//! Invariants that the SAFETY lines cite:
//!
//! 1. The thread pointer and the symbol's offset from it (initial-exec model) are set up before any
//!    code of the thread runs, and the block lives as long as the thread.
//! 2. Its first word is null, or comes from a `&'static Writer`: only `set_writer` writes it.
//! 3. Its other words are zero, or written by this file; any value of them is valid.
//! 4. Only the thread and its signal handlers touch the block. Each access is one load or store of
//!    an aligned word, so a handler sees the old value or the new one.

use core::mem::offset_of;
use core::ptr;

use ringmark_ring::Writer;

use super::arch;

/// The block of one thread.
#[repr(C)]
struct ThreadBlock {
    writer: *const Writer,
    phase: u64,
    failure: u64,
    never_waits: u64,
}

/// State of a thread's attachment to its ring.
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

/// Defines the block, under further names that start here.
macro_rules! define_block {
    ($($name:literal),*) => {
        core::arch::global_asm!(
            ".pushsection .tbss.ringmark_thread_block,\"awT\",@nobits",
            ".balign 16",
            ".globl ringmark_own_thread_block",
            ".hidden ringmark_own_thread_block",
            ".type ringmark_own_thread_block,@tls_object",
            ".size ringmark_own_thread_block,32",
            $($name,)*
            "ringmark_own_thread_block:",
            ".zero 32",
            ".popsection",
        );
    };
}

#[cfg(not(feature = "c-names"))]
define_block!();
#[cfg(feature = "c-names")]
define_block!(
    ".globl ringmark_thread_block",
    ".type ringmark_thread_block,@tls_object",
    ".size ringmark_thread_block,32",
    "ringmark_thread_block:"
);

/// Address of this thread's block.
#[inline(always)]
fn block() -> *mut ThreadBlock {
    arch::thread_block().cast()
}

/// A number that no other living thread has: where the block of this thread lies.
pub(crate) fn address() -> usize {
    block().addr()
}

/// This thread's writer, if it has one.
#[inline(always)]
pub(crate) fn writer() -> Option<&'static Writer> {
    let writer = arch::first_word().cast::<Writer>();
    // SAFETY: null, or a reference that lives for ever (invariant 2).
    unsafe { writer.as_ref() }
}

/// Gives this thread a writer, or takes it away.
pub(crate) fn set_writer(writer: Option<&'static Writer>) {
    let value = writer.map_or(ptr::null(), ptr::from_ref);
    let place = block().cast::<*const Writer>();
    // SAFETY: stores the first word of this thread's block (invariants 1, 2 and 4).
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

/// Outcome of this thread's last look for a ring; 0: it has not looked.
pub(crate) fn failure() -> u64 {
    let place = failure_word();
    // SAFETY: loads the third word of this thread's block (invariants 1, 3 and 4).
    unsafe { place.read_volatile() }
}

/// Remembers the outcome of a look for a ring.
pub(crate) fn set_failure(failure: u64) {
    let place = failure_word();
    // SAFETY: stores the third word (invariants 1, 3 and 4).
    unsafe { place.write_volatile(failure) };
}

/// Where this thread keeps whether it may wait for room in a full ring.
fn never_waits_word() -> *mut u64 {
    block()
        .cast::<u64>()
        .wrapping_add(offset_of!(ThreadBlock, never_waits) / 8)
}

/// Whether this thread must not wait for room in a full ring.
pub(crate) fn never_waits() -> bool {
    let place = never_waits_word();
    // SAFETY: loads the fourth word of this thread's block (invariants 1, 3 and 4).
    unsafe { place.read_volatile() != 0 }
}

/// From now on this thread does not wait for room in a full ring.
pub(crate) fn never_wait() {
    let place = never_waits_word();
    // SAFETY: stores the fourth word (invariants 1, 3 and 4).
    unsafe { place.write_volatile(1) };
}

/// State of this thread's attachment.
pub(crate) fn phase() -> Phase {
    let place = phase_word();
    // SAFETY: loads the second word of this thread's block (invariants 1, 3 and 4).
    match unsafe { place.read_volatile() } {
        0 => Phase::Open,
        1 => Phase::Attaching,
        _ => Phase::Exited,
    }
}

/// Sets the state of this thread's attachment.
pub(crate) fn set_phase(phase: Phase) {
    let place = phase_word();
    // SAFETY: stores the second word (invariants 1, 3 and 4).
    unsafe { place.write_volatile(phase as u64) };
}
