//! What unwinding and sampling know of the processor. A port fills one file with the items used here.
//!
//! - [`Unwinder`], [`Cache`] and [`first_frame`] unwind a stack from registers.
//! - [`SAMPLED`] asks the kernel for registers, [`sampled`] takes them apart.
//! - [`follows_call`] tells what may be a return address.

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod registers;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub(crate) use registers::{Registers, UNKNOWN};

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{
    BEFORE_RETURN, Cache, SAMPLED, Unwinder, first_frame, follows_call, sampled,
};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{
    BEFORE_RETURN, Cache, SAMPLED, Unwinder, first_frame, follows_call, sampled,
};

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
compile_error!("ringmark-profile knows x86-64 and aarch64: fill a file of profile/src/arch");
