//! Saves and restores the registers beyond the general ones that the slow way may change: all
//! vector and mask registers of the processor, and MXCSR.
//!
//! Plain moves do it, because XSAVE and XRSTOR take many times as long. Upper parts that are all
//! zero become zero without a load: after a load the processor takes them for in use, which slows
//! down code that knows SSE only.

use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;

/// Bytes of the area for all registers, at an address divisible by 64.
pub(super) const VECTORS_BYTES: usize = 2176;
/// Distances in the area, after 32 registers of 64 bytes each.
const MASKS: usize = 2048;
const MXCSR: usize = MASKS + 8 * 8;
const UPPER: usize = MXCSR + 4;

/// The registers to save: a [`Width`].
static WIDTH: AtomicU8 = AtomicU8::new(Width::Xmm as u8);

/// Vector registers that the processor has and the system preserves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Width {
    Xmm = 0,
    Ymm = 1,
    /// 32 registers, masks of 16 bits.
    Zmm = 2,
    /// 32 registers, masks of 64 bits.
    ZmmLongMasks = 3,
}

impl Width {
    fn of_this_processor() -> Self {
        if is_x86_feature_detected!("avx512bw") {
            Self::ZmmLongMasks
        } else if is_x86_feature_detected!("avx512f") {
            Self::Zmm
        } else if is_x86_feature_detected!("avx") {
            Self::Ymm
        } else {
            Self::Xmm
        }
    }
}

/// Finds which registers to save. Called before the first stub can be entered.
pub(super) fn prepare() {
    WIDTH.store(Width::of_this_processor() as u8, Relaxed);
}

core::arch::global_asm!(
    ".macro ringmark_low of, name, width",
    ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "\\of \\name\\i, \\width ptr [rsi + 64 * \\i]",
    ".endr",
    ".endm",
    ".macro ringmark_put_low of, name, width",
    ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "\\of \\width ptr [rsi + 64 * \\i], \\name\\i",
    ".endr",
    ".endm",
    ".macro ringmark_begins_vectors name",
    ".pushsection .text.\\name,\"ax\",@progbits",
    ".balign 64",
    ".globl \\name",
    ".hidden \\name",
    ".type \\name,@function",
    "\\name:",
    ".cfi_startproc",
    ".endm",
    ".macro ringmark_ends_vectors name",
    ".cfi_endproc",
    ".size \\name, .-\\name",
    ".popsection",
    ".endm",
    // Saves to the area at rsi. Changes rax and the registers that it has saved.
    "ringmark_begins_vectors ringmark_save_vectors",
    "stmxcsr dword ptr [rsi + {mxcsr}]",
    "movzx eax, byte ptr [rip + {width}]",
    "cmp eax, {ymm}",
    "ja 3f",
    "je 2f",
    "ringmark_put_low movups, xmm, xmmword",
    "ret",
    "2:",
    "ringmark_put_low vmovups, ymm, ymmword",
    ".irp i, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "vorps ymm0, ymm0, ymm\\i",
    ".endr",
    "vextractf128 xmm0, ymm0, 1",
    "xor eax, eax",
    "vptest xmm0, xmm0",
    "setnz al",
    "shl eax, 2",
    "jmp 5f",
    "3:",
    "ringmark_put_low vmovups, zmm, zmmword",
    ".irp i, 16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
    "vmovups zmmword ptr [rsi + 64 * \\i], zmm\\i",
    ".endr",
    "cmp eax, {long_masks}",
    "jb 4f",
    ".irp i, 0,1,2,3,4,5,6,7",
    "kmovq qword ptr [rsi + {masks} + 8 * \\i], k\\i",
    ".endr",
    "jmp 6f",
    "4:",
    ".irp i, 0,1,2,3,4,5,6,7",
    "kmovw word ptr [rsi + {masks} + 8 * \\i], k\\i",
    ".endr",
    "6:",
    ".irp i, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "vporq zmm0, zmm0, zmm\\i",
    ".endr",
    "vptestmq k1, zmm0, zmm0", // a bit for each 8 bytes
    "kmovw eax, k1",
    "and eax, 0xFC", // the first two are xmm's
    "5:",
    "mov byte ptr [rsi + {upper}], al",
    "vzeroupper",
    "ret",
    "ringmark_ends_vectors ringmark_save_vectors",
    // Loads from the area at rsi. Changes rax.
    "ringmark_begins_vectors ringmark_load_vectors",
    "ldmxcsr dword ptr [rsi + {mxcsr}]",
    "movzx eax, byte ptr [rip + {width}]",
    "cmp eax, {ymm}",
    "ja 3f",
    "je 2f",
    "ringmark_low movups, xmm, xmmword",
    "ret",
    "3:",
    ".irp i, 16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
    "vmovups zmm\\i, zmmword ptr [rsi + 64 * \\i]",
    ".endr",
    "cmp eax, {long_masks}",
    "jb 4f",
    ".irp i, 0,1,2,3,4,5,6,7",
    "kmovq k\\i, qword ptr [rsi + {masks} + 8 * \\i]",
    ".endr",
    "jmp 2f",
    "4:",
    ".irp i, 0,1,2,3,4,5,6,7",
    "kmovw k\\i, word ptr [rsi + {masks} + 8 * \\i]",
    ".endr",
    "2:",
    "movzx eax, byte ptr [rsi + {upper}]",
    "test eax, 0xF0",
    "jz 5f",
    "ringmark_low vmovups, zmm, zmmword",
    "ret",
    "5:", // shorter loads make what lies above zero
    "vzeroupper",
    "test eax, eax",
    "jz 6f",
    "ringmark_low vmovups, ymm, ymmword",
    "ret",
    "6:",
    "ringmark_low vmovups, xmm, xmmword",
    "ret",
    "ringmark_ends_vectors ringmark_load_vectors",
    width = sym WIDTH,
    ymm = const Width::Ymm as u8,
    long_masks = const Width::ZmmLongMasks as u8,
    masks = const MASKS,
    mxcsr = const MXCSR,
    upper = const UPPER,
);

#[cfg(test)]
mod tests {
    use core::arch::x86_64::__cpuid_count;

    use super::*;

    /// The area of XSAVE and XRSTOR, with which the test fills and reads registers.
    #[repr(C, align(64))]
    #[derive(Clone)]
    struct Area([u8; 4096]);

    const SSE: u64 = 1 << 1;
    const AVX: u64 = 1 << 2;
    const MASK_REGISTERS: u64 = 1 << 5;
    const UPPER_ZMM: u64 = 1 << 6;
    const AVX512: u64 = MASK_REGISTERS | UPPER_ZMM | 1 << 7;

    // Fills registers from rdi, calls the function in rcx with r8 by the slow way, puts registers
    // to rsi; edx says which. Without a function it puts them there at once. Returns which are in
    // use.
    core::arch::global_asm!(
        ".pushsection .text.ringmark_test_vectors,\"ax\",@progbits",
        ".globl ringmark_test_vectors", // the test may be in another object file
        ".hidden ringmark_test_vectors",
        "ringmark_test_vectors:",
        "push rbx",
        "push r12",
        "sub rsp, 8",
        "stmxcsr dword ptr [rsp]",
        "mov r12, rsi",
        "mov ebx, edx",
        "mov r9, rcx",
        "mov eax, edx",
        "xor edx, edx",
        "xrstor64 [rdi]",
        "test r9, r9",
        "jz 1f",
        "mov rdi, r8",
        "mov rax, r9",
        "call ringmark_slow",
        "1:",
        "mov eax, ebx",
        "xor edx, edx",
        "xsave64 [r12]",
        "mov ecx, 1",
        "xgetbv",
        "vzeroupper",
        "ldmxcsr dword ptr [rsp]",
        "add rsp, 8",
        "pop r12",
        "pop rbx",
        "ret",
        // What the slow way calls: fills the registers of the given mask from the area after it.
        ".globl ringmark_test_clobber",
        ".hidden ringmark_test_clobber",
        "ringmark_test_clobber:",
        "mov eax, dword ptr [rdi]",
        "xor edx, edx",
        "xrstor64 [rdi + 64]",
        "ret",
        ".popsection",
    );

    unsafe extern "C" {
        fn ringmark_test_vectors(
            from: *const Area,
            to: *mut Area,
            which: u64,
            function: Option<unsafe extern "C" fn()>,
            argument: *const Clobber,
        ) -> u64;
        fn ringmark_test_clobber();
    }

    #[repr(C, align(64))]
    struct Clobber {
        which: u64,
        from: Area,
    }

    /// Any bytes for the registers of `which`.
    fn filled(seed: u64, which: u64, mxcsr: u32) -> Area {
        let mut area = Area([0; 4096]);
        let mut state = seed;
        for byte in &mut area.0 {
            state = state.wrapping_mul(6_364_136_223_846_793_005) + 1;
            *byte = (state >> 56) as u8;
        }
        area.0[..160].fill(0);
        area.0[24..28].copy_from_slice(&mxcsr.to_le_bytes());
        area.0[512..576].fill(0);
        area.0[512..520].copy_from_slice(&which.to_le_bytes());
        area
    }

    fn only_short_masks(area: &mut Area) {
        let at = __cpuid_count(0xD, 5).ebx as usize;
        for mask in area.0[at..at + 64].chunks_exact_mut(8) {
            mask[2..].fill(0);
        }
    }

    fn run(from: &Area, which: u64, clobber: Option<&Clobber>) -> (Area, u64) {
        let mut to = Area([0; 4096]);
        let function: Option<unsafe extern "C" fn()> = clobber.map(|_| ringmark_test_clobber as _);
        let argument = clobber.map_or(core::ptr::null(), core::ptr::from_ref);
        // SAFETY: areas of the right size and alignment; the callee may change vector registers.
        let in_use = unsafe { ringmark_test_vectors(from, &raw mut to, which, function, argument) };
        (to, in_use)
    }

    /// Registers of each width, up to this processor's.
    fn widths() -> Vec<(Width, u64)> {
        let all = [
            (Width::Xmm, SSE),
            (Width::Ymm, SSE | AVX),
            (Width::Zmm, SSE | AVX | AVX512),
            (Width::ZmmLongMasks, SSE | AVX | AVX512),
        ];
        let here = Width::of_this_processor();
        all.into_iter()
            .filter(|(width, _)| *width <= here)
            .collect()
    }

    /// A single test, because the width belongs to the process.
    #[test]
    fn every_register_is_what_it_was() {
        for (width, which) in widths() {
            WIDTH.store(width as u8, Relaxed);
            for seed in 1..20 {
                let clobber = Clobber {
                    which,
                    from: filled(seed + 1000, which, 0x9F80),
                };
                // With some registers all zero, too.
                for given in [which, which & SSE, which & (SSE | AVX), which & !AVX] {
                    let mut from = filled(seed, given, 0x1FA1);
                    if width == Width::Zmm {
                        only_short_masks(&mut from);
                    }
                    let (expected, before) = run(&from, which, None);
                    let (found, after) = run(&from, which, Some(&clobber));
                    let differ = (0..4096).find(|at| found.0[*at] != expected.0[*at]);
                    // Which of them are in use stands at 512, and may be less than before.
                    let differ = differ.filter(|at| !(512..520).contains(at));
                    assert_eq!(differ, None, "{width:?}, {given:#x}");
                    // Code that uses the whole of a register uses its middle, too.
                    let allowed = if before & UPPER_ZMM == 0 { before } else { !0 };
                    let more = after & !allowed & (AVX | UPPER_ZMM);
                    assert_eq!(more, 0, "{width:?}, {given:#x}: in use, which costs");
                }
            }
        }
        prepare();
        println!("{:?}", Width::of_this_processor());
    }
}
