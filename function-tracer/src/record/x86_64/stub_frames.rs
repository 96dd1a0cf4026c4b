//! The stack as the stubs leave it: what they have pushed when the slow way begins, lowest address
//! first, and what stands in the place of a replaced return address.

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
    /// The function type; in the upper half the distance from `site` to the slot.
    type_word: u64,
    /// Address after the site.
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
        // SAFETY: at the function's beginning it is the word after; inside, the unwind table of
        // the function says that it is there.
        unsafe { self.slot().read() }
    }

    /// Makes the function return to another address.
    pub(crate) fn set_return_address(&mut self, to: u64) {
        // SAFETY: as in `return_address`; the thread is in this function, no other writes there.
        unsafe { self.slot().write(to) };
    }

    /// The integer arguments.
    pub(crate) fn arguments(&self) -> [u64; 6] {
        [self.rdi, self.rsi, self.rdx, self.rcx, self.r8, self.r9]
    }

    /// An address in the function: after its site.
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

unsafe extern "C" {
    fn ringmark_return();
}

/// What stands in the place of a replaced return address.
pub(crate) fn return_address() -> u64 {
    let address: unsafe extern "C" fn() = ringmark_return;
    address as usize as u64
}
