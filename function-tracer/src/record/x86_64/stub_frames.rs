//! The stack as the stubs leave it for the slow way, lowest address first; and the address that
//! replaces return addresses.

use crate::arch::{MOVED_CALL, MOVED_SITE_FROM_CALL};

/// Bytes that `ringmark_slow` pushes below those of a stub: r9, r8, rbp, its return address.
pub(crate) const PUSHED_BELOW: usize = 32;

/// The stack at a function's entry.
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
    /// Address after the patch site.
    site: u64,
    /// The slot, at a site where the function has not begun.
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

    /// Address of the slot, the word that holds the return address.
    pub(crate) fn slot_address(&self) -> u64 {
        self.slot() as u64
    }

    /// The address in the slot, to which the function returns.
    pub(crate) fn return_address(&self) -> u64 {
        // SAFETY: record invariant 8. Where the function has not begun, the slot is the frame's
        // last word; else the function's unwind table gives its distance.
        unsafe { self.slot().read() }
    }

    /// Makes the function return to another address.
    pub(crate) fn set_return_address(&mut self, to: u64) {
        // SAFETY: as in `return_address`, and record invariant 7.
        unsafe { self.slot().write(to) };
    }

    /// The integer arguments, of which the function may have fewer.
    pub(crate) fn arguments(&self) -> [u64; 6] {
        [self.rdi, self.rsi, self.rdx, self.rcx, self.r8, self.r9]
    }

    /// An address in the function, at or after its patch site.
    pub(crate) fn function(&self) -> u64 {
        const CALL: usize = MOVED_CALL.len();
        // SAFETY: record invariant 8: a call ends at this address.
        let call = unsafe { ((self.site - CALL as u64) as *const [u8; CALL]).read() };
        if call != MOVED_CALL {
            return self.site;
        }
        let place = self.site + MOVED_SITE_FROM_CALL as u64;
        // SAFETY: such a call stands in a trampoline only, which has its site's address there, aligned.
        unsafe { (place as *const u64).read() }
    }

    /// The integer that the function returns, at a site in front of a return.
    pub(crate) fn result(&self) -> u64 {
        self.rax
    }
}

/// The stack at a site in the place of a return.
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
    /// The slot, with the address that the function returns to.
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

/// The stack at the return of a function whose return address was replaced.
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
    /// The slot, for the address that the function is to return to.
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

/// The address that replaces return addresses: that of the return stub.
pub(crate) fn return_address() -> u64 {
    let address: unsafe extern "C" fn() = ringmark_return;
    address as usize as u64
}
