//! A jump in the place of several instructions, and what became of a list of them.

use std::time::Duration;

/// Bytes of a jump.
pub const JUMP_BYTES: usize = 5;

/// A jump that is to be put where instructions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jump {
    /// Address of the first instruction.
    pub at: u64,
    /// What stands there.
    pub expected: [u8; JUMP_BYTES],
    /// The jump.
    pub code: [u8; JUMP_BYTES],
}

/// What became of a list of jumps.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PutJumps {
    /// Those that were not put, and why.
    pub left: Vec<(u64, &'static str)>,
    /// How many were put.
    pub put: usize,
    /// How often all threads were stopped, and the longest that the first of them stood still.
    pub stops: u32,
    /// The longest of these stops.
    pub longest_stop: Duration,
}
