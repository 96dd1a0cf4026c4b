//! What may go wrong.

use std::io;

use thiserror::Error;

/// Why a process cannot be looked at.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// There is none of this number.
    #[error("pid {pid}: there is no such process: {error}")]
    NoProcess {
        /// Its number.
        pid: u32,
        /// What the kernel says.
        error: io::Error,
    },
}
