//! Pages that go from the ring file to the socket without passing through this process.
//!
//! The kernel keeps references to them until the peer has read them, however long that takes:
//! whoever overwrites one before that sends other bytes. So a page goes this way only if it stays
//! as it is until the collector says that it is durable: sealed, of a lossless session, and not
//! released before. What a retransmission reads from it is then what was summed.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use ringmark_format::block::BlockHeader;
use ringmark_format::block_at::Blocks;
use rustix::fs::sendfile;
use rustix::net::{SendFlags, send};

use super::connection::Connection;
use super::spill::page_of;
use crate::drain::SessionDrain;

/// Releases pages when they are sent, not when they are durable: to see that the test of it fails.
#[cfg(planted)]
pub static RELEASE_WHEN_SENT: std::sync::atomic::AtomicBool =
    std::sync::atomic::AtomicBool::new(false);

/// Whether that is planted.
pub(super) fn releases_when_sent() -> bool {
    #[cfg(planted)]
    return RELEASE_WHEN_SENT.load(std::sync::atomic::Ordering::Relaxed);
    #[cfg(not(planted))]
    false
}

/// Bytes of a file on their way to a socket.
#[derive(Debug)]
pub(super) struct Reference {
    file: Arc<File>,
    at: u64,
    left: usize,
}

impl Reference {
    pub(super) fn bytes(&self) -> usize {
        self.left
    }

    /// Sends what the socket takes now. `true`: all of it is gone.
    pub(super) fn send(&mut self, to: BorrowedFd<'_>) -> io::Result<bool> {
        while self.left > 0 {
            match sendfile(to, &self.file, Some(&mut self.at), self.left) {
                // The file ends before the page does: it was truncated.
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => self.left -= sent.min(self.left),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}

/// Sends what the socket takes now of bytes behind which more will come at once.
pub(super) fn send_more(to: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let flags = SendFlags::MORE | SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    match send(to, bytes, flags) {
        Ok(sent) => Ok(sent),
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Sends the sealed pages of a batch: their headers from the batch, with the checksums of what was
/// copied there, and their contents from the ring.
pub(super) fn send_batch(
    batch: &[u8],
    drain: &SessionDrain,
    file: &Arc<File>,
    connection: &mut Connection,
) -> io::Result<()> {
    for block in Blocks::new(batch) {
        let (head, content) = block.bytes.split_at(BlockHeader::BYTES);
        let place = page_of(&block)
            .and_then(|(slot, page)| drain.page_offset(slot, page))
            .filter(|_| content.len() == block.header.page_bytes as usize);
        let Some(at) = place else {
            connection.send(block.bytes)?;
            continue;
        };
        let reference = Reference {
            file: file.clone(),
            at,
            left: content.len(),
        };
        connection.send_page(head, reference)?;
    }
    Ok(())
}
