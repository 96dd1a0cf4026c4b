//! What only a processor's own instructions can do. A port is one file here, with the items used below.
//!
//! - [`replace`], [`increment`], [`increment_in`], [`decrement`] and [`add`] change a word of one thread, whole for
//!   its signal handlers: see [`crate::single_instruction`].
//! - [`zero`] and [`copy`] go over many words.
//! - [`counter`] reads the clock that events take; [`hertz`], [`bracket`], [`base_age`], [`SOURCE`] and [`is_invariant`] say
//!   what is known of it, in ticks.
//! - [`syscall`] enters the kernel; [`PAGE_BYTES`] is the size of a page of the system, or 0 where there are several.
//! - [`prepare`] looks once what the processor can do.
//!
//! `any` does the same with the compiler's atomics and the C library: under Miri, and on processors without a file.

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod aarch64;
#[cfg(any(test, miri, not(target_arch = "x86_64")))]
#[cfg_attr(
    all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(
        dead_code,
        reason = "tests, and what the file of this processor takes from it"
    )
)]
mod any;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64;

#[cfg(all(target_arch = "aarch64", not(miri)))]
use aarch64 as processor;
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
use any as processor;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use x86_64 as processor;

pub(crate) use processor::{
    PAGE_BYTES, SOURCE, add, base_age, bracket, copy, counter, decrement, hertz, increment,
    increment_in, is_invariant, prepare, replace, syscall, zero,
};
