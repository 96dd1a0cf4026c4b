//! The frame pointer of a thread that waits, which the kernel does not tell.
//!
//! Code that was built without frame pointers needs none: its tables say where each frame is by the stack pointer. In
//! code that was built with them a frame begins with a return address, and the caller's frame pointer below it. Such
//! pairs are looked for in the copy of the stack; the right one is that from which the stack can be unwound.

use crate::arch::{self, BEFORE_RETURN};
use crate::target::Target;

/// Bytes of the stack in which the first such frame is looked for.
const WITHIN: usize = 4 << 10;
/// Pairs that are tried.
const TRIED: usize = 8;
/// The farthest that a caller's frame is, in bytes.
const FARTHEST: u64 = 8 << 20;

/// What may be the frame pointer, the most likely first. `copy`: the stack from the stack pointer on; `is_code` says
/// whether an address is in the code of the process.
pub(crate) fn candidates(
    stack_pointer: u64,
    copy: &[u8],
    target: &Target,
    is_code: impl Fn(u64) -> bool,
) -> Vec<u64> {
    let words: Vec<u64> = copy
        .chunks_exact(8)
        .take(WITHIN / 8)
        .filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)))
        .collect();
    let pairs = words.windows(2).zip((stack_pointer..).step_by(8));
    pairs
        .filter(|(pair, at)| {
            is_frame(pair[0], *at) && is_code(pair[1]) && follows_call(pair[1], target)
        })
        .map(|(_, at)| at)
        .take(TRIED)
        .collect()
}

/// Whether a word at `at` may be the frame pointer of a caller.
const fn is_frame(word: u64, at: u64) -> bool {
    word == 0 || (word > at && word - at < FARTHEST && word.is_multiple_of(8))
}

/// Whether the instruction before an address is a call, so that it may be a return address.
fn follows_call(address: u64, target: &Target) -> bool {
    let mut code = [0; BEFORE_RETURN];
    let came = target.read_memory(address.wrapping_sub(BEFORE_RETURN as u64), &mut code);
    came == code.len() && arch::follows_call(code)
}
