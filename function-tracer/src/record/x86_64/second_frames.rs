//! A second frame for each return address that was replaced, in programs with libunwind.
//!
//! libunwind takes the end of a frame for its caller's stack pointer, and passes over a rule for `rsp`. The
//! entries for `ringmark_return` and for pads need both apart by one: libgcc tells frames by their ends, and these
//! have the stack pointer of their caller. So in a program with libunwind they lead to a frame
//! more, whose entry sets right what either takes from the one before: it ends
//! at the stack pointer for who finds it one too high, and two higher, with a rule for `rsp`, for who does not.
//! Its code is never run.
//!
//! A throw takes 1.7 times as long by it, so other programs go without. Decided once: frames of one throw must
//! not change.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use crate::record::elsewhere::{self, PAD_BYTES, PADS_PER_PAGE, UNWOUND_TO};
use crate::record::true_returns::{
    self, COPY_PART, COPY_SHIFT, NONE_AT, SECOND_UNITS_AT, UNIT_BITS,
};

/// Where libunwind is, by the name that its programs are linked to.
const LIBUNWIND: &core::ffi::CStr = c"libunwind.so.8";

/// Whether it was decided.
static IS_DECIDED: AtomicBool = AtomicBool::new(false);

core::arch::global_asm!(
    ".pushsection .text.ringmark_second_frames,\"ax\",@progbits",
    ".globl ringmark_second_return, ringmark_second_pad",
    ".hidden ringmark_second_return, ringmark_second_pad",
    ".type ringmark_second_return,@function",
    ".type ringmark_second_pad,@function",
    // An unwinder looks for the entry one byte before the address that it was given.
    "ringmark_second_return:",
    ".byte 0xcc, 0xcc",
    "ringmark_second_pad:",
    ".byte 0xcc, 0xcc",
    ".size ringmark_second_return, 2",
    ".size ringmark_second_pad, 2",
    ".popsection",
    //
    ".pushsection .eh_frame,\"a\",@unwind",
    "1:",
    ".long 3f - 2f",
    "2:",
    ".long 0",
    ".byte 1",
    ".asciz \"zR\"",
    ".uleb128 1",
    ".sleb128 -1",
    ".uleb128 16",
    ".uleb128 1",
    ".byte 0x1b",                // addresses: relative, 4 bytes
    ".byte 0x0f, 8, 0x77, 0",    // CFA = rsp: x, which is even, or odd in libunwind
    ".byte 0x32, 0x14, 0x31",    // 2 over 1: x, 2, x, 1
    ".byte 0x1a, 0x1c, 0x27",    // and minus xor: x + 2, or x - 1
    ".byte 0x14, 7, 2",          // rsp = CFA - 2
    ".balign 8",
    "3:",
    ".long 5f - 4f",
    "4:",
    ".long 4b - 1b",
    ".long ringmark_second_return - .",
    ".long 2",
    ".uleb128 0",
    ".byte 0x10, 16", // return address is at
    ".uleb128 9f - 6f",
    "6:", // CFA: slot + 8, or slot + 10
    ".byte 0x09, 0xf8, 0x1a", // and -8: slot + 8
    ".byte 0x23",
    ".uleb128 {copy_shift} - 8", // plus: place
    ".byte 0x12, 0x08, {unit_bits}, 0x25", // dup, constant, shift: place, unit
    ".byte 0x23",
    ".uleb128 {units_at}", // plus: place, state's address
    ".byte 0x94, 1", // deref of a byte: place, state
    ".byte 0x28",
    ".short 7f - (. + 2)",
    ".byte 0x0e",
    ".quad {none}", // there is 0: the stack ends here
    ".byte 0x2f",
    ".short 8f - (. + 2)",
    "7:",
    ".byte 0x0e", // constant: place, part
    ".quad {copy_part}",
    ".byte 0x27", // xor: the copy's address
    "8:",
    "9:",
    ".balign 8",
    "5:",
    ".long 5f - 4f",
    "4:",
    ".long 4b - 1b",
    ".long ringmark_second_pad - .",
    ".long 2",
    ".uleb128 0",
    ".byte 0x10, 16", // return address is at
    ".uleb128 9f - 6f",
    "6:",
    ".byte 0x09, 0xf8, 0x1a", // as above: slot + 8
    ".byte 0x38, 0x1c", // - 8: slot
    ".byte 0x06, 0x12", // from here on as in the entry for pads
    ".byte 0x0a",
    ".short 4095",
    ".byte 0x1a",
    ".byte 0x38, 0x1e",
    ".byte 0x16, 0x0b",
    ".short -4096",
    ".byte 0x1a",
    ".byte 0x12, 0x06",
    ".byte 0x22, 0x22",
    ".byte 0x23",
    ".uleb128 {unwound_to}",
    "9:",
    ".balign 8",
    "5:",
    ".popsection",
    copy_shift = const COPY_SHIFT,
    unit_bits = const UNIT_BITS,
    units_at = const SECOND_UNITS_AT,
    none = const NONE_AT,
    copy_part = const COPY_PART,
    unwound_to = const UNWOUND_TO,
);

// As the second entry has it.
const _: () = assert!(PADS_PER_PAGE as u64 * PAD_BYTES == 4096);

unsafe extern "C" {
    fn ringmark_second_return();
    fn ringmark_second_pad();
}

/// Decides by whether libunwind is here now. Called before the first return address is replaced. Waits for the loader's
/// lock, so the caller must hold none.
pub(super) fn decide() {
    if IS_DECIDED.swap(true, Relaxed) {
        return;
    }
    // SAFETY: the name is a text; nothing is loaded.
    let library = unsafe { libc::dlopen(LIBUNWIND.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if library.is_null() {
        return;
    }
    // SAFETY: the handle is that of above.
    unsafe { libc::dlclose(library) };
    true_returns::have_second_frames(ringmark_second_return as *const () as u64 + 1);
    elsewhere::have_second_frames(ringmark_second_pad as *const () as u64 + 1);
}
