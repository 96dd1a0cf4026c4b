//! What the stubs have pushed when the slow way begins, lowest address first.

use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;

/// Bytes of the words that `ringmark_slow` pushes below a stub's: r9, r8, rbp, its return address.
pub(crate) const PUSHED_BELOW: usize = 32;

/// At a function's entry.
#[repr(C)]
pub(crate) struct EntryFrame {
    r9: u64,
    r8: u64,
    rbp: u64,
    stub: u64,
    rdi: u64,
    rsi: u64,
    rdx: u64,
    rcx: u64,
    rax: u64,
    /// The function type; in the upper half how far the slot is behind `site`.
    type_word: u64,
    /// Behind the site.
    site: u64,
    /// The slot, if the function has not begun.
    first: u64,
}

impl EntryFrame {
    /// The function type.
    pub(crate) fn type_word(&self) -> u32 {
        self.type_word as u32
    }

    fn slot(&self) -> *mut u64 {
        let distance = (self.type_word >> 32) as usize;
        core::ptr::from_ref(&self.first)
            .wrapping_byte_add(distance)
            .cast_mut()
    }

    /// Address of the slot.
    pub(crate) fn slot_address(&self) -> u64 {
        self.slot() as u64
    }

    /// What the slot holds: where the function returns to.
    pub(crate) fn return_address(&self) -> u64 {
        // SAFETY: at the function's beginning it is the word behind; inside, the unwind table of
        // the function says that it is there.
        unsafe { self.slot().read() }
    }

    /// Makes the function return to another address.
    pub(crate) fn set_return_address(&mut self, to: u64) {
        // SAFETY: as in `return_address`; the thread is in this function, nobody else writes there.
        unsafe { self.slot().write(to) };
    }

    /// The integer arguments.
    pub(crate) fn arguments(&self) -> [u64; 6] {
        [self.rdi, self.rsi, self.rdx, self.rcx, self.r8, self.r9]
    }

    /// An address in the function: behind its site.
    pub(crate) fn function(&self) -> u64 {
        self.site
    }

    /// At a site in front of a return: the integer that the function returns.
    pub(crate) fn result(&self) -> u64 {
        self.rax
    }
}

/// At a site in the place of a return.
#[repr(C)]
pub(crate) struct SledFrame {
    r9: u64,
    r8: u64,
    rbp: u64,
    stub: u64,
    rdi: u64,
    rsi: u64,
    rdx: u64,
    rcx: u64,
    rax: u64,
    /// The site's number.
    number: u64,
    /// The slot: where the function returns to.
    return_address: u64,
}

impl SledFrame {
    /// Address of the slot.
    pub(crate) fn slot_address(&self) -> u64 {
        core::ptr::from_ref(&self.return_address) as u64
    }

    /// The integer that the function returns.
    pub(crate) fn result(&self) -> u64 {
        self.rax
    }
}

/// At the return of a function whose return address was replaced.
#[repr(C)]
pub(crate) struct ExitFrame {
    r9: u64,
    r8: u64,
    rbp: u64,
    stub: u64,
    rdi: u64,
    rsi: u64,
    rdx: u64,
    rcx: u64,
    rax: u64,
    /// The slot: where the function shall return to.
    pub(crate) return_address: u64,
}

impl ExitFrame {
    /// Address of the slot.
    pub(crate) fn slot_address(&self) -> u64 {
        core::ptr::from_ref(&self.return_address) as u64
    }

    /// The integer that the function returns.
    pub(crate) fn result(&self) -> u64 {
        self.rax
    }
}

/// Number of the CPU that this thread runs on now.
pub(crate) fn current_cpu() -> u64 {
    let mut aux = 0;
    // SAFETY: reads the counter and the CPU's number.
    unsafe { core::arch::x86_64::__rdtscp(&raw mut aux) };
    u64::from(aux & 0xFFF)
}

/// Whether the processor compares return addresses with copies of its own (CET). The loader switches
/// that on before the program runs; asked once, and without touching `errno`.
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
    // SAFETY: the call writes a word, or fails where the kernel does not know it.
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
    // SAFETY: an instruction that raises SIGILL.
    unsafe { core::arch::asm!("ud2", options(noreturn)) }
}
