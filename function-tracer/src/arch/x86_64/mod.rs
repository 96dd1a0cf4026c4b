//! x86-64. The basic idea is in [`form`]: a patch site is switched by changing its head only,
//! between instructions of the same length that are correct with any operand.

mod code_frames;
mod decode;
mod distance;
mod empty_function;
mod form;
#[cfg(target_arch = "x86_64")]
mod head_store;
mod moved;
mod nops;
#[cfg(target_arch = "x86_64")]
mod passing;
mod return_place;
mod trampoline_code;

pub(crate) use code_frames::{
    AS_AFTER_A_CALL, CodeFrames, IN_HOPS, IN_MOVED, IN_TRAMPOLINES, RETURN_COLUMN,
};
pub(crate) use decode::{Step, Steps, always_jumps, is_return, prepare_decoder};
pub(crate) use distance::safe_distances;
pub(crate) use empty_function::read_empty_function;
pub(crate) use form::{Form, lands_on_entry, read, read_moved, read_several};
#[cfg(target_arch = "x86_64")]
pub(crate) use head_store::store_head;
pub(crate) use moved::MovedCode;
#[cfg(target_arch = "x86_64")]
pub(crate) use passing::passing;
pub(crate) use return_place::ReturnPlace;
pub(crate) use trampoline_code::{
    HOP_BYTES, MOVED_ADDRESSES, MOVED_CALL, MOVED_ENTRY, MOVED_SITE_FROM_CALL,
    MOVED_TRAMPOLINE_BYTES, TRAMPOLINE_BYTES, write_hop, write_moved_trampoline, write_trampoline,
};

/// Bytes that a call reaches over, less a margin for the instruction itself and the trampoline.
pub(crate) const REACH_BYTES: u64 = (1 << 31) - (1 << 16);

/// Bytes of code that [`read`] needs at most.
pub(crate) const CODE_BYTES_MAX: usize = 32;
