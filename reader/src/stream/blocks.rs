//! Blocks in a buffer: whole and checked, one behind the other.

use ringmark_format::align8;
use ringmark_format::block::{BLOCK_MAGIC, BlockHeader};
use ringmark_format::codec::crc32;
use zerocopy::{FromBytes, IntoBytes};

/// Bytes of a whole block: header, content, padding.
pub(super) fn whole(header: &BlockHeader) -> usize {
    BlockHeader::BYTES + align8(header.stored_bytes as usize)
}

/// The header at the front of `bytes`; `None`: not all of it is there.
///
/// # Errors
/// What is wrong with it.
pub(super) fn header(bytes: &[u8], content_max: u32) -> Result<Option<BlockHeader>, String> {
    let Ok((header, _)) = BlockHeader::read_from_prefix(bytes) else {
        return Ok(None);
    };
    if header.magic != BLOCK_MAGIC {
        let found = header.magic.escape_ascii();
        return Err(format!(
            "a block starts with \"{found}\", expected \"RMKB\""
        ));
    }
    if header.header_crc != crc32(&header.as_bytes()[..BlockHeader::BYTES - 4]) {
        return Err("the checksum of a block's header is wrong".to_owned());
    }
    let found = header.stored_bytes;
    if found > content_max {
        return Err(format!(
            "a block of {found} bytes, expected at most {content_max}"
        ));
    }
    Ok(Some(header))
}

/// The block at the front of `bytes` and its content; `None`: not all of it is there.
///
/// # Errors
/// What is wrong with it.
pub(super) fn first(
    bytes: &[u8],
    content_max: u32,
) -> Result<Option<(BlockHeader, &[u8])>, String> {
    let Some(header) = header(bytes, content_max)? else {
        return Ok(None);
    };
    let Some(block) = bytes.get(BlockHeader::BYTES..whole(&header)) else {
        return Ok(None);
    };
    let content = &block[..header.stored_bytes as usize];
    if header.content_crc != crc32(content) {
        return Err("the checksum of a block's content is wrong".to_owned());
    }
    Ok(Some((header, content)))
}
