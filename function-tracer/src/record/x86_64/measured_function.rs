//! A function with a patch site, whose calls show what a stub costs.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use super::stub::Stub;
use crate::record::site_tables::SITES_MAX;

/// The number of its site: the last one, which no module's site reaches in practice.
pub(crate) const MEASURED_SITE: u32 = SITES_MAX - 1;

/// The target of its trampoline.
static TARGET: AtomicU64 = AtomicU64::new(0);

core::arch::global_asm!(
    ".pushsection .text.ringmark_measured,\"ax\",@progbits",
    ".balign 64",
    ".globl ringmark_measured",
    ".hidden ringmark_measured",
    ".type ringmark_measured,@function",
    "ringmark_measured:",
    ".cfi_startproc",
    "call 2f",
    "ret",
    "2:", // as a trampoline
    ".cfi_adjust_cfa_offset 8",
    "push {site}",
    ".cfi_adjust_cfa_offset 8",
    "jmp qword ptr [rip + {target}]",
    ".cfi_endproc",
    ".size ringmark_measured, .-ringmark_measured",
    ".popsection",
    site = const MEASURED_SITE,
    target = sym TARGET,
);

unsafe extern "C" {
    fn ringmark_measured();
}

/// Calls the measured function `calls` times with `stub` as the target of its site. The site must
/// have a type.
pub(crate) fn call_measured(stub: Stub, calls: u32) {
    TARGET.store(stub.target().address(), Relaxed);
    for _ in 0..calls {
        // SAFETY: the function takes and returns nothing; record invariant 9 for its target.
        unsafe { ringmark_measured() };
    }
}
