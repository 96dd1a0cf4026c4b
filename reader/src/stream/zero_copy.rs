//! Pages that go from the ring file to the socket without passing through this process.
//!
//! The kernel keeps references to them until the peer has read them, however long that takes: a page
//! that is overwritten before that is sent with other bytes. So a page goes this way only if it stays
//! as it is until the collector says that it is durable: sealed, of a discard session, and not
//! released before. What a retransmission reads from it is then what was summed.

use std::fs::File;
use std::io;
use std::sync::Arc;

use ringmark_format::block::BlockHeader;
use ringmark_format::block_at::Blocks;

use super::connection::Connection;
use super::positions::{SlotPage, page_of};
use super::socket::Reference;
use crate::pages::drain::SessionDrain;

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
            .and_then(|SlotPage { slot, page }| drain.page_offset(slot, page))
            .filter(|_| content.len() == block.header.page_bytes as usize);
        let Some(at) = place else {
            connection.send(block.bytes)?;
            continue;
        };
        let reference = Reference::new(file.clone(), at, content.len());
        connection.send_page(head, reference)?;
    }
    Ok(())
}
