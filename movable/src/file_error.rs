//! Why a file cannot be looked at.

/// Why a file cannot be looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// It is no ELF file for x86-64.
    #[error("no ELF file for x86-64: {0}")]
    NotElf(String),
    /// Its functions cannot be traced so.
    #[error(
        "compiled by Go, whose functions move their stacks: return addresses and frames must stay"
    )]
    Go,
}
