//! What many events say together.
//!
//! [`calls`] pairs function records, [`function_times`] sums the calls of each function,
//! [`gathered`] reads what a profile summed in the program, and [`verify`] accounts for every
//! reservation.

pub(crate) mod calls;
pub(crate) mod function_times;
pub(crate) mod gathered;
pub(crate) mod verify;
