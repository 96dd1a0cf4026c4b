//! Makes checksums right again, so that mutations reach what they protect.

use ringmark_format::align8;
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::codec::{crc32, decode, encode, header_crc};
use zerocopy::{FromBytes, IntoBytes};

/// The same blocks with right checksums, as far as the lengths lead. With `inside`, containers
/// are taken apart, their blocks made right, and put together again.
pub fn repaired(bytes: &[u8], inside: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Ok((mut header, behind)) = BlockHeader::read_from_prefix(rest) {
        let stored = header.stored_bytes as usize;
        let Some(content) = behind.get(..stored) else {
            break;
        };
        let again = (inside && header.kind == kind::CONTAINER)
            .then(|| packed_again(&header, content))
            .flatten();
        if let Some((stored, raw_bytes)) = &again {
            header.stored_bytes = stored.len() as u32;
            header.raw_bytes = *raw_bytes;
        }
        let content = again.as_ref().map_or(content, |(stored, _)| stored);
        seal(&mut header, content);
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(content);
        out.resize(out.len() + align8(content.len()) - content.len(), 0);
        rest = behind.get(align8(stored)..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}

fn seal(header: &mut BlockHeader, content: &[u8]) {
    header.content_crc = crc32(content);
    header.header_crc = header_crc(header);
}

fn packed_again(header: &BlockHeader, content: &[u8]) -> Option<(Vec<u8>, u32)> {
    let raw = decode(header.codec, content, header.raw_bytes).ok()?;
    let raw = repaired(&raw, false);
    let mut stored = Vec::new();
    encode(header.codec, &raw, &mut stored).ok()?;
    Some((stored, raw.len() as u32))
}
