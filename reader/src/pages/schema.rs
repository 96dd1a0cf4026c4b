//! The schema of a session, read from its ring file piece by piece.

use crate::sessions::session::Session;

/// Most schema bytes that are taken from one session: a hostile program could publish for ever.
const SCHEMA_BYTES_MAX: u64 = 64 << 20;
/// Most schema bytes in one piece, and so in one SCHEMA block.
const PIECE_BYTES_MAX: u64 = 1 << 20;

/// A piece of the schema stream of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaPiece {
    /// Offset of its first byte in the stream.
    pub offset: u64,
    /// The bytes, at least one and at most 1 MiB.
    pub bytes: Vec<u8>,
}

/// The published schema bytes from `offset` on; `None`: there are none.
pub(crate) fn piece_at(session: &Session, offset: u64) -> Option<SchemaPiece> {
    let left = SCHEMA_BYTES_MAX.saturating_sub(offset);
    let log = session.ring().schema_log();
    let bytes = log.read_at_most(offset, left.min(PIECE_BYTES_MAX));
    (!bytes.is_empty()).then_some(SchemaPiece { offset, bytes })
}
