//! What the slow way asks the processor, and the kernel by calls of its own: a program may define the
//! functions of the C library, and have them traced.

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
    // SAFETY: the system call writes `features`, or fails where the kernel does not know it.
    let result = unsafe {
        system_call(
            libc::SYS_arch_prctl,
            ARCH_SHSTK_STATUS,
            &raw mut features as u64,
        )
    };
    let is_on = result == 0 && features & 1 != 0;
    ANSWER.store(u8::from(is_on), Relaxed);
    is_on
}

/// The lowest address and the bytes of this thread's alternate signal stack, if it has one.
pub(crate) fn alternate_stack() -> Option<(u64, u64)> {
    let mut stack = libc::stack_t {
        ss_sp: core::ptr::null_mut(),
        ss_flags: libc::SS_DISABLE,
        ss_size: 0,
    };
    // SAFETY: without a new stack, the call does nothing but fill the value.
    let result = unsafe { system_call(libc::SYS_sigaltstack, 0, &raw mut stack as u64) };
    let is_there = result == 0 && stack.ss_flags & libc::SS_DISABLE == 0;
    is_there.then_some((stack.ss_sp as u64, stack.ss_size as u64))
}

/// Makes a system call of two arguments, which does not change `errno`. From -4095 to -1 the result is
/// an error, negated.
///
/// # Safety
/// An argument that is a pointer must be good for what the call does with it.
unsafe fn system_call(number: i64, first: u64, second: u64) -> i64 {
    let result: i64;
    // SAFETY: the caller keeps to the rules of the call, which changes these registers, and memory as
    // the arguments say.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") first,
            in("rsi") second,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Ends the process where going on would jump to nowhere.
pub(crate) fn trap() -> ! {
    // SAFETY: the instruction raises SIGILL and does not return.
    unsafe { core::arch::asm!("ud2", options(noreturn)) }
}
