//! One file of a spill, read back block by block.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::SystemTime;

use ringmark_format::block_at;

use crate::error::{ReaderError, io_at};
use crate::stream::positions::SpillPosition;

/// Bytes that are read at once.
const PIECE_BYTES: usize = 512 << 10;

/// One file.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    /// Bytes of whole blocks in it.
    pub(super) bytes: u64,
    /// When it was begun, or written last by an earlier process.
    pub(super) begun: SystemTime,
}

impl Part {
    /// The position after its last byte.
    pub(super) fn end(&self) -> SpillPosition {
        SpillPosition {
            part: self.number,
            byte: self.bytes,
        }
    }

    /// Reads a piece of whole checked blocks from offset `at` on. Empty: nothing follows.
    ///
    /// # Errors
    /// The file cannot be read, or no whole block lies at `at`.
    pub(super) fn read(&self, file: &File, at: u64) -> Result<Vec<u8>, ReaderError> {
        let left = self.bytes.saturating_sub(at);
        let mut piece = vec![0; left.min(PIECE_BYTES as u64) as usize];
        let failed = |e| io_at("read", &self.path)(e);
        file.read_exact_at(&mut piece, at).map_err(failed)?;
        let wrong = |what: &dyn Display| {
            let text = format!("at byte {at}: {what}; the rest of it is left out");
            io_at("read", &self.path)(io::Error::new(ErrorKind::InvalidData, text))
        };
        // A block larger than a piece is read as a whole.
        if let Ok(Some(header)) = block_at::header(&piece)
            && (header.whole_bytes() as u64) <= left
        {
            let read = piece.len();
            piece.resize(read.max(header.whole_bytes()), 0);
            file.read_exact_at(&mut piece[read..], at + read as u64)
                .map_err(failed)?;
        }
        let (mut whole, mut found) = (0, block_at::checked(&piece));
        while let Ok(Some(block)) = found {
            whole += block.bytes.len();
            found = block_at::checked(&piece[whole..]);
        }
        match found {
            Err(fault) if whole == 0 => Err(wrong(&fault)),
            Ok(_) if whole == 0 && left > 0 => Err(wrong(&"it ends within a block")),
            _ => {
                piece.truncate(whole);
                Ok(piece)
            }
        }
    }
}
