//! Pages that go from the ring file to the socket without passing through this process.
//!
//! The kernel keeps references to the pages until the peer has read them. If a page is overwritten
//! before that, the peer gets other bytes than the checksum covers. So a page goes this way only if
//! it stays as it is until the collector says that it is durable. Such pages are sealed, belong to
//! a discard session, and are not released before. A retransmission then reads what was summed,
//! too.

use std::fs::File;
use std::io;
use std::sync::Arc;

use ringmark_format::block::BlockHeader;
use ringmark_format::block_at::Blocks;

use super::connection::Connection;
use super::positions::{SlotPage, page_of};
use super::socket::FileRange;
use crate::pages::drain::SessionDrain;

/// Sends the pages of a batch. A sealed page's header comes from the batch, with the checksum of
/// the copy there, and its content from the ring file. Other pages are sent as copied.
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
        let range = FileRange::new(file.clone(), at, content.len());
        connection.send_page(head, range)?;
    }
    Ok(())
}
