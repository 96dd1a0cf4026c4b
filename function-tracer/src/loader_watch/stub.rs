//! What the patch site in the loader leads to.
//!
//! # Invariants
//!
//! 1. The stub is entered by a jump in the place of the return of the loader's function, which takes
//!    and returns nothing: callers of it expect all but the callee's registers changed. It keeps the
//!    general ones all the same, and the stack, and is part of this library, which is never unloaded.
//! 2. `STATE` is 0 or the address of the loader's word, which is aligned, and mapped as long as the
//!    process. The loader's lock is held where the stub runs, so no thread writes the word.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64};

use super::turns;
use crate::patch::Target;

core::arch::global_asm!(
    ".pushsection .text.ringmark_loader_changed,\"ax\",@progbits",
    ".balign 16",
    ".globl ringmark_loader_changed",
    ".hidden ringmark_loader_changed",
    ".type ringmark_loader_changed,@function",
    "ringmark_loader_changed:",
    ".cfi_startproc",
    ".cfi_adjust_cfa_offset 8", // the site's number
    "push rbp",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_offset rbp, -24",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "push rax",
    "push rcx",
    "push rdx",
    "push rsi",
    "push rdi",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    "and rsp, -16",
    "call {changed}",
    "lea rsp, [rbp - 72]",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rdi",
    "pop rsi",
    "pop rdx",
    "pop rcx",
    "pop rax",
    "pop rbp",
    ".cfi_def_cfa rsp, 16",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
    ".size ringmark_loader_changed, .-ringmark_loader_changed",
    ".popsection",
    changed = sym changed,
);

unsafe extern "C" {
    fn ringmark_loader_changed();
}

/// Address of the loader's word that says what it does; 0: it is not known.
static STATE: AtomicU64 = AtomicU64::new(0);
/// Whether modules are being unmapped, and the loader has not said yet that it is done.
static UNMAPS: AtomicBool = AtomicBool::new(false);

/// Values of the loader's word.
const CONSISTENT: u32 = 0;
const DELETES: u32 = 2;

/// Forgets an unmapping whose end was not seen, before the site is enabled, and in a forked child.
pub(super) fn forget_unmapping() {
    UNMAPS.store(false, Relaxed);
}

/// Sets where the loader says what it does, before the site is enabled.
pub(super) fn set_state_at(address: u64) {
    STATE.store(address, Relaxed);
}

/// The target of the site.
pub(super) fn target() -> Target {
    let stub: unsafe extern "C" fn() = ringmark_loader_changed;
    // SAFETY: invariant 1.
    unsafe { Target::new(stub as usize as u64) }
}

/// Called whenever the loader has changed its list, or is about to.
extern "C" fn changed() {
    let state = STATE.load(Relaxed) as *const u32;
    if state.is_null() {
        return;
    }
    // SAFETY: invariant 2.
    match unsafe { state.read_volatile() } {
        DELETES => UNMAPS.store(true, Relaxed),
        CONSISTENT if !UNMAPS.swap(false, Relaxed) => turns::take(),
        _ => {}
    }
}
