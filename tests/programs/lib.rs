//! What several of the traced programs share.
#![forbid(unsafe_code)]

#[path = "../src/random.rs"]
pub mod random;
