//! Blocks in a buffer that grows as a connection delivers them.
//!
//! A header is checked as soon as it is there, before any memory is taken for the content that it
//! announces.

use ringmark_format::block::BlockHeader;
use ringmark_format::block_at::{self, BlockAt, BlockFault};
use ringmark_format::stream;

/// Largest content of a message from a streamer, in bytes.
const MESSAGE_BYTES_MAX: u32 = 64 << 10;

/// The first bytes of a TLS handshake.
const TLS: [u8; 2] = [0x16, 3];

/// Why received bytes are no block that may be taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotABlock {
    /// The other side speaks TLS to a plain port.
    #[error("TLS came, expected tcp:// and not tls:// for this port")]
    Tls,
    /// The header contradicts itself, or announces too large a block.
    #[error(transparent)]
    Block(#[from] BlockFault),
}

/// The checked header at the front of `buffer`; `None`: not all of it is there.
///
/// # Errors
/// The bytes are no header, or announce more than a block or message may have.
pub(crate) fn header(buffer: &[u8]) -> Result<Option<BlockHeader>, NotABlock> {
    if buffer.starts_with(&TLS) {
        return Err(NotABlock::Tls);
    }
    let header = block_at::header(buffer)?;
    if let Some(header) = &header
        && header.kind >= stream::kind::HELLO
    {
        block_at::check_size(header, MESSAGE_BYTES_MAX)?;
    }
    Ok(header)
}

/// The block at the front of `buffer`, whose header [`header`] returned; all of it must be there.
pub(crate) fn whole<'a>(header: &BlockHeader, buffer: &'a [u8]) -> BlockAt<'a> {
    let bytes = &buffer[..header.whole_bytes()];
    BlockAt {
        header: *header,
        bytes,
    }
}

#[cfg(test)]
mod tests {
    use ringmark_format::block::{BLOCK_MAGIC, CONTENT_BYTES_MAX, kind};
    use ringmark_format::codec::header_crc;
    use zerocopy::{FromZeros, IntoBytes};

    use super::*;

    #[test]
    fn tls_on_a_plain_port_is_named() {
        assert_eq!(header(&[0x16, 3, 1, 0]).err(), Some(NotABlock::Tls));
        let magic = BlockFault::Magic {
            found: b"GET ".to_vec(),
        };
        assert_eq!(
            header(b"GET / HTTP/1.1").err(),
            Some(NotABlock::Block(magic))
        );
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
                block.header_crc = header_crc(&block);
                header(block.as_bytes())
            };
            assert!(of(most).is_ok());
            for found in [most + 1, u32::MAX] {
                let most = if found == u32::MAX {
                    CONTENT_BYTES_MAX
                } else {
                    most
                };
                let too_large = BlockFault::TooLarge { kind, found, most };
                assert_eq!(of(found).err(), Some(NotABlock::Block(too_large)));
            }
        }
    }
}
