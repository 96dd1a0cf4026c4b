//! What a host may say of a session, and what the store answers.

use ringmark_format::Uuid;
use ringmark_reader::SlotPosition;

use super::error::StoreError;

/// Most bytes of a session's header and attributes.
const SESSION_BYTES_MAX: usize = 256 << 10;

/// Checks that the content of a SESSION block can be remembered.
///
/// # Errors
/// It is too large.
pub(super) fn check_content(uuid: Uuid, content: &[u8]) -> Result<(), StoreError> {
    let found = content.len();
    if found <= SESSION_BYTES_MAX {
        return Ok(());
    }
    Err(StoreError::Protocol {
        session: uuid,
        what: format!("SESSION of {found} bytes, expected at most {SESSION_BYTES_MAX}"),
    })
}

/// What is there of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Known {
    /// Bytes of the schema stream.
    pub schema_bytes: u64,
    /// Each slot's position: after its last sealed page, or at the first one that damage may have
    /// cost.
    pub slots: Vec<SlotPosition>,
}
