//! The registers that a stack is unwound from.

/// Registers that unwinding begins with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registers {
    pub(crate) instruction: u64,
    pub(crate) stack_pointer: u64,
    /// `None`: it is not known.
    pub(crate) frame_pointer: Option<u64>,
    /// The register with the return address; `None`: it is not known, or there is no such register.
    #[cfg_attr(
        not(target_arch = "aarch64"),
        allow(dead_code, reason = "there is no such register")
    )]
    pub(crate) link: Option<u64>,
}

/// In place of a register that is not known: what needs it fails to read the stack there, and does not take it for
/// the end.
pub(crate) const UNKNOWN: u64 = 8;
