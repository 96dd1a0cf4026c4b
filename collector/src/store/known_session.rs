//! What the store says about a session to its streamer.

use ringmark_format::Uuid;
use ringmark_reader::SlotPosition;

use super::error::{SessionFault, StoreError};

/// Most bytes of a session's header and attributes together.
const SESSION_BYTES_MAX: usize = 256 << 10;

/// Checks that the content of a SESSION block is small enough to be remembered.
///
/// # Errors
/// It is too large.
pub(super) fn check_content(uuid: Uuid, content: &[u8]) -> Result<(), StoreError> {
    let found = content.len();
    if found <= SESSION_BYTES_MAX {
        return Ok(());
    }
    let most = SESSION_BYTES_MAX;
    Err(StoreError::Protocol {
        session: uuid,
        source: SessionFault::SessionSize { found, most },
    })
}

/// How far a session is stored: what RESUME says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KnownSession {
    /// Bytes of the schema stream that are stored.
    pub schema_bytes: u64,
    /// For each slot, the page after its last stored one, or the first page that damage may have
    /// destroyed.
    pub slots: Vec<SlotPosition>,
    /// Slots of which damage may have destroyed pages: those that are still there are wanted again.
    pub again: Vec<u32>,
    /// Schema that any collector of the store acknowledged is there.
    pub has_acked_schema: bool,
}

impl KnownSession {
    /// Whether nothing is stored that a streamer could go on after.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.slots.is_empty() && self.schema_bytes == 0
    }
}
