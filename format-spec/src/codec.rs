//! Codecs of containers: LZ4, and LZ4 after a reversible filter of the records ([`filter`]);
//! CRCs; and the writing of whole blocks ([`write`](mod@write)).
//!
//! A container's content before its codec is a sequence of complete blocks. Stored content:
//! NONE: the same bytes. LZ4: one LZ4 block (no frame). DELTA_SHUFFLE_LZ4: u32 size of the
//! filtered bytes, then one LZ4 block of them.

mod error;
pub mod filter;
mod lane;
mod transpose;
pub mod write;

use alloc::{vec, vec::Vec};

use zerocopy::IntoBytes;

use crate::block::{BlockHeader, CONTENT_BYTES_MAX, codec};

pub use error::CodecError;

/// CRC-32 (IEEE) of `bytes`, as block headers hold it.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// CRC of a block's header, over everything before the field that holds it.
#[must_use]
pub fn header_crc(header: &BlockHeader) -> u32 {
    crc32(&header.as_bytes()[..BlockHeader::BYTES - 4])
}

/// Appends `raw` under `codec` to `out`.
///
/// # Errors
/// [`CodecError::TooLarge`] for more than [`CONTENT_BYTES_MAX`] bytes, [`CodecError::Unknown`].
pub fn encode(codec: u8, raw: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    if raw.len() > CONTENT_BYTES_MAX as usize {
        let bytes = raw.len() as u64;
        return Err(CodecError::TooLarge { bytes });
    }
    match codec {
        codec::NONE => out.extend_from_slice(raw),
        codec::LZ4 => compress(raw, out)?,
        codec::DELTA_SHUFFLE_LZ4 => {
            let filtered = filter::apply(raw);
            out.extend_from_slice(&(filtered.len() as u32).to_le_bytes());
            compress(&filtered, out)?;
        }
        codec => return Err(CodecError::Unknown { codec }),
    }
    Ok(())
}

/// The content that `stored` holds under `codec`, exactly `raw_bytes` bytes.
///
/// Allocates at most `raw_bytes` (bounded by [`CONTENT_BYTES_MAX`]) and twice that while filtering.
///
/// # Errors
/// Any [`CodecError`]; never panics on any input.
pub fn decode(codec: u8, stored: &[u8], raw_bytes: u32) -> Result<Vec<u8>, CodecError> {
    if raw_bytes > CONTENT_BYTES_MAX {
        let bytes = u64::from(raw_bytes);
        return Err(CodecError::TooLarge { bytes });
    }
    let raw_bytes = raw_bytes as usize;
    match codec {
        codec::NONE => sized(stored.to_vec(), raw_bytes),
        codec::LZ4 => decompress(stored, raw_bytes),
        codec::DELTA_SHUFFLE_LZ4 => {
            let (size, stored) = stored.split_first_chunk().ok_or(CodecError::Malformed)?;
            let size = u32::from_le_bytes(*size) as usize;
            if size > filter::filtered_bytes_max(raw_bytes) {
                return Err(CodecError::Filter);
            }
            filter::undo(&decompress(stored, size)?, raw_bytes)
        }
        codec => Err(CodecError::Unknown { codec }),
    }
}

fn compress(raw: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    let start = out.len();
    out.resize(
        start + lz4_flex::block::get_maximum_output_size(raw.len()),
        0,
    );
    let written = lz4_flex::block::compress_into(raw, &mut out[start..])
        .map_err(|_| CodecError::Malformed)?;
    out.truncate(start + written);
    Ok(())
}

fn decompress(stored: &[u8], bytes: usize) -> Result<Vec<u8>, CodecError> {
    // LZ4 expands at most 255-fold: a claim beyond that is refused before memory is taken.
    if bytes / 255 > stored.len() {
        return Err(CodecError::Malformed);
    }
    let mut raw = vec![0; bytes];
    let written = lz4_flex::block::decompress_into(stored, &mut raw);
    raw.truncate(written.map_err(|_| CodecError::Malformed)?);
    sized(raw, bytes)
}

fn sized(raw: Vec<u8>, expected: usize) -> Result<Vec<u8>, CodecError> {
    if raw.len() == expected {
        return Ok(raw);
    }
    Err(CodecError::Size {
        found: raw.len() as u64,
        expected: expected as u64,
    })
}
