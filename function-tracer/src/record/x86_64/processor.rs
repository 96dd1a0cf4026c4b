//! What the slow way asks the processor.

use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;

/// Number of the CPU that this thread runs on now.
pub(crate) fn current_cpu() -> u64 {
    let mut aux = 0;
    // SAFETY: the instruction only reads the TSC and the CPU's number.
    unsafe { core::arch::x86_64::__rdtscp(&raw mut aux) };
    u64::from(aux & 0xFFF)
}

/// Whether the processor compares return addresses with copies of its own (CET). The loader enables
/// that before the program runs. Asks the kernel once, and does not change `errno`.
pub(crate) fn has_shadow_stack() -> bool {
    const ARCH_SHSTK_STATUS: u64 = 0x5005;
    const UNKNOWN: u8 = 2;
    static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);
    let answer = ANSWER.load(Relaxed);
    if answer != UNKNOWN {
        return answer != 0;
    }
    let mut features = 0_u64;
    let mut result = libc::SYS_arch_prctl;
    // SAFETY: the system call writes `features`, or fails where the kernel does not know it.
    unsafe {
        core::arch::asm!(
            "syscall",
            inout("rax") result,
            in("rdi") ARCH_SHSTK_STATUS,
            in("rsi") &raw mut features,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    let is_on = result == 0 && features & 1 != 0;
    ANSWER.store(u8::from(is_on), Relaxed);
    is_on
}

/// Ends the process where going on would jump to nowhere.
pub(crate) fn trap() -> ! {
    // SAFETY: the instruction raises SIGILL and does not return.
    unsafe { core::arch::asm!("ud2", options(noreturn)) }
}
