//! What a program asks for when it starts a session, and why it may get none. The same on every
//! system: a program that sets options compiles wherever Rust does.

pub(crate) mod error;
pub(crate) mod filter;
#[cfg(feature = "tracing")]
pub(crate) mod init_error;
pub(crate) mod keys;
mod options;
pub mod reference;
pub(crate) mod variables;

pub use error::StartError;
pub use options::{Fork, Keep, OptionError, Options};
