//! What stands beside the pages of a session: blocks that the caller makes, such as switches of its threads.

use std::collections::VecDeque;
use std::fmt::Debug;

use crate::sessions::session::Session;

/// What makes blocks that a recorder writes beside the pages of its sessions. Recorders ask again some 100 times a second.
pub trait Beside: Debug {
    /// The whole blocks that are to be written now; `at_end`: with what there is, as the session is recorded no longer.
    fn blocks(&mut self, session: &Session, at_end: bool) -> Vec<Vec<u8>>;
}

/// Who makes the blocks, and those that are not written yet.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    pub(super) from: Option<Box<dyn Beside>>,
    pub(super) waiting: VecDeque<Vec<u8>>,
}
