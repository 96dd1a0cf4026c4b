//! Blocks in a buffer that grows as a connection delivers them.

use ringmark_format::align8;
use ringmark_format::block::{BLOCK_MAGIC, BlockHeader, CONTENT_BYTES_MAX, codec, kind};
use ringmark_format::codec::crc32;
use ringmark_format::stream;
use zerocopy::{FromBytes, IntoBytes};

/// Largest content of a message from a streamer.
const MESSAGE_BYTES_MAX: u32 = 64 << 10;

/// How a TLS handshake begins.
const TLS: [u8; 2] = [0x16, 3];

/// The header at the front of `buffer`; `None`: not all of it is there.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn header(buffer: &[u8]) -> Result<Option<BlockHeader>, String> {
    let there = buffer.len().min(BLOCK_MAGIC.len());
    if buffer.starts_with(&TLS) {
        return Err("TLS came, expected tcp:// and not tls:// for this port".to_owned());
    }
    if buffer[..there] != BLOCK_MAGIC[..there] {
        let found = buffer[..there].escape_ascii();
        return Err(format!(
            "a block starts with \"{found}\", expected \"RMKB\""
        ));
    }
    let Ok((header, _)) = BlockHeader::read_from_prefix(buffer) else {
        return Ok(None);
    };
    let computed = crc32(&header.as_bytes()[..BlockHeader::BYTES - 4]);
    if header.header_crc != computed {
        let found = header.header_crc;
        return Err(format!(
            "checksum of a header is {found:#x}, expected {computed:#x}"
        ));
    }
    let most = match header.kind {
        stream::kind::HELLO.. => MESSAGE_BYTES_MAX,
        _ => CONTENT_BYTES_MAX,
    };
    let found = header.stored_bytes.max(header.raw_bytes);
    if found > most {
        let kind = header.kind;
        return Err(format!(
            "a block of kind {kind} with {found} bytes, expected at most {most}"
        ));
    }
    if header.codec != codec::NONE && header.kind != kind::CONTAINER {
        return Err(format!(
            "a block of kind {} with a codec, expected none",
            header.kind
        ));
    }
    if header.codec == codec::NONE && header.raw_bytes != header.stored_bytes {
        return Err(format!(
            "a block of kind {} without a codec, {} bytes of {} in it",
            header.kind, header.stored_bytes, header.raw_bytes
        ));
    }
    Ok(Some(header))
}

/// Bytes of the whole block: header, content, padding.
pub(crate) fn whole(header: &BlockHeader) -> usize {
    BlockHeader::BYTES + align8(header.stored_bytes as usize)
}

/// The checked content of the whole block `block`.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn content<'a>(header: &BlockHeader, block: &'a [u8]) -> Result<&'a [u8], String> {
    let content = block.get(BlockHeader::BYTES..).unwrap_or_default();
    let content = content
        .get(..header.stored_bytes as usize)
        .unwrap_or_default();
    let computed = crc32(content);
    if header.content_crc != computed {
        let found = header.content_crc;
        return Err(format!(
            "checksum of a content is {found:#x}, expected {computed:#x}"
        ));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    #[test]
    fn sizes_that_contradict_each_other_are_refused() {
        let mut block = BlockHeader {
            magic: BLOCK_MAGIC,
            stored_bytes: 256,
            raw_bytes: 256,
            ..BlockHeader::new_zeroed()
        };
        let sealed = |mut block: BlockHeader| {
            block.header_crc = crc32(&block.as_bytes()[..BlockHeader::BYTES - 4]);
            header(block.as_bytes())
        };
        assert!(sealed(block).is_ok_and(|found| found.is_some()));
        block.raw_bytes = 4105;
        assert!(sealed(block).is_err_and(|why| why.contains("256 bytes of 4105")));
    }

    #[test]
    fn more_than_the_largest_block_is_refused() {
        for (kind, most) in [
            (kind::PAGE, CONTENT_BYTES_MAX),
            (stream::kind::HELLO, MESSAGE_BYTES_MAX),
        ] {
            let of = |bytes| {
                let mut block = BlockHeader {
                    magic: BLOCK_MAGIC,
                    kind,
                    stored_bytes: bytes,
                    raw_bytes: bytes,
                    ..BlockHeader::new_zeroed()
                };
                block.header_crc = crc32(&block.as_bytes()[..BlockHeader::BYTES - 4]);
                header(block.as_bytes())
            };
            assert!(of(most).is_ok());
            for bytes in [most + 1, u32::MAX] {
                assert!(of(bytes).is_err_and(|why| why.contains("expected at most")));
            }
        }
    }
}
