//! Writing blocks: header, content, padding, with both CRCs.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use zerocopy::{FromZeros, IntoBytes};

use super::{CodecError, crc32, encode, header_crc};
use crate::align::align8;
use crate::block::{BLOCK_MAGIC, BlockHeader, CONTENT_BYTES_MAX, PageState, Window, codec, kind};
use crate::ending::{Ending, EndingBlock};
use crate::ids::{PageNumber, RingId, Uuid};
use crate::open_span::{Frame, OpenSpans};
use crate::samples::{Sample, Samples};
use crate::seen_waits::{SeenWait, SeenWaits};
use crate::stream::{HostClock, HostClockSource};
use crate::switches::{Switch, Switches};

/// A header of `kind` for content that is stored as it is: magic and lengths set, CRCs of nothing.
#[must_use]
pub fn header(kind: u16, session: Uuid) -> BlockHeader {
    let mut header = BlockHeader::new_zeroed();
    header.magic = BLOCK_MAGIC;
    header.kind = kind;
    header.session = session.0;
    header
}

/// Fills in the lengths and both CRCs of a header whose content is stored as it is.
///
/// # Errors
/// [`CodecError::TooLarge`] for more than [`CONTENT_BYTES_MAX`] bytes.
pub fn seal_header(header: &mut BlockHeader, content: &[u8]) -> Result<(), CodecError> {
    let bytes = content.len() as u32;
    header.raw_bytes = bytes;
    seal_stored(header, content)
}

fn seal_stored(header: &mut BlockHeader, content: &[u8]) -> Result<(), CodecError> {
    if content.len() > CONTENT_BYTES_MAX as usize {
        let bytes = content.len() as u64;
        return Err(CodecError::TooLarge { bytes });
    }
    header.stored_bytes = content.len() as u32;
    header.content_crc = crc32(content);
    header.header_crc = header_crc(header);
    Ok(())
}

/// Bytes of zeros after content of `stored_bytes` bytes, 0 to 7.
#[must_use]
pub const fn padding_bytes(stored_bytes: usize) -> usize {
    align8(stored_bytes) - stored_bytes
}

/// Appends one block: `header` with lengths and CRCs filled in, the content, padding.
///
/// # Errors
/// [`CodecError::TooLarge`]; then nothing was appended.
pub fn block(out: &mut Vec<u8>, mut header: BlockHeader, content: &[u8]) -> Result<(), CodecError> {
    seal_header(&mut header, content)?;
    append(out, &header, content);
    Ok(())
}

fn append(out: &mut Vec<u8>, header: &BlockHeader, content: &[u8]) {
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(content);
    out.resize(out.len() + padding_bytes(content.len()), 0);
}

/// The header of a SESSION block is [`header`]; this is that of a PAGE block whose content is the
/// first `extent` bytes of a page of `page_bytes`.
#[must_use]
pub fn page_header(
    session: Uuid,
    ring: RingId,
    page: PageNumber,
    extent: u32,
    page_bytes: u32,
    state: PageState,
) -> BlockHeader {
    BlockHeader {
        flags: state.flags(),
        ring_id: ring.0,
        page_number: page.0,
        extent,
        page_bytes,
        ..header(kind::PAGE, session)
    }
}

/// Appends a SESSION block: the session header and its attributes, as in the ring file.
///
/// # Errors
/// [`CodecError::TooLarge`].
pub fn session(out: &mut Vec<u8>, session: Uuid, content: &[u8]) -> Result<(), CodecError> {
    block(out, header(kind::SESSION, session), content)
}

/// Appends a SCHEMA block: a piece of the schema stream that starts at `offset` in it.
///
/// # Errors
/// [`CodecError::TooLarge`].
pub fn schema(
    out: &mut Vec<u8>,
    session: Uuid,
    offset: u64,
    piece: &[u8],
) -> Result<(), CodecError> {
    let mut header = header(kind::SCHEMA, session);
    header.page_number = offset;
    block(out, header, piece)
}

/// Appends a COUNTERS block.
///
/// # Errors
/// [`CodecError::TooLarge`].
pub fn counters(out: &mut Vec<u8>, session: Uuid, content: &[u8]) -> Result<(), CodecError> {
    block(out, header(kind::COUNTERS, session), content)
}

/// Appends a WINDOW block: the pages of the session after it are shown from then on.
///
/// # Errors
/// [`CodecError::TooLarge`].
pub fn window(out: &mut Vec<u8>, session: Uuid, from_mono_ns: u64) -> Result<(), CodecError> {
    let reserved = 0;
    let window = Window {
        from_mono_ns,
        reserved,
    };
    block(out, header(kind::WINDOW, session), window.as_bytes())
}

/// Appends a HOST_CLOCK block. It names no collector: a reader writes it, with the error of the collector's own clock in
/// that of the measurement.
///
/// # Errors
/// [`CodecError::TooLarge`].
pub fn host_clock(
    out: &mut Vec<u8>,
    session: Uuid,
    measured: &HostClock,
) -> Result<(), CodecError> {
    let header = header(kind::HOST_CLOCK, session);
    let source = HostClockSource::new_zeroed();
    let content = [measured.as_bytes(), source.as_bytes()].concat();
    block(out, header, &content)
}

/// Appends an ENDING block: how the session ended, and the tick at which that was seen; 0: it was
/// not watched.
///
/// # Errors
/// [`CodecError::TooLarge`].
pub fn ending(
    out: &mut Vec<u8>,
    session: Uuid,
    ending: Ending,
    seen_tick: u64,
) -> Result<(), CodecError> {
    let content = EndingBlock {
        seen_tick,
        ..ending.block()
    };
    block(out, header(kind::ENDING, session), content.as_bytes())
}

/// Appends an OPEN_SPANS block: the stack of one thread, with its open frames.
///
/// # Errors
/// [`CodecError::TooLarge`].
pub fn open_spans(
    out: &mut Vec<u8>,
    session: Uuid,
    stack: &OpenSpans,
    frames: &[Frame],
) -> Result<(), CodecError> {
    let mut content = stack.as_bytes().to_vec();
    content.extend_from_slice(frames.as_bytes());
    block(out, header(kind::OPEN_SPANS, session), &content)
}

/// Most switches of one block, as long as they are of different moments.
const SWITCHES_MAX: usize = 1 << 16;

/// Appends SWITCHES blocks of the time in `head`, with these switches, which are in order: as many blocks as are needed.
///
/// # Errors
/// [`CodecError::TooLarge`]: more than 200,000 of one moment.
pub fn switches(
    out: &mut Vec<u8>,
    session: Uuid,
    head: &Switches,
    switches: &[Switch],
) -> Result<(), CodecError> {
    let (mut head, mut rest) = (*head, switches);
    while let Some(next) = rest.get(SWITCHES_MAX) {
        let to_mono_ns = next.mono_ns;
        // Those of one moment stay together.
        let (now, later) = rest.split_at(rest.partition_point(|one| one.mono_ns < to_mono_ns));
        if now.is_empty() {
            break;
        }
        switches_block(out, session, &Switches { to_mono_ns, ..head }, now)?;
        (head.from_mono_ns, head.lost, rest) = (to_mono_ns, 0, later);
    }
    switches_block(out, session, &head, rest)
}

fn switches_block(
    out: &mut Vec<u8>,
    session: Uuid,
    head: &Switches,
    switches: &[Switch],
) -> Result<(), CodecError> {
    let head = Switches {
        switches: switches.len() as u32,
        ..*head
    };
    let mut content = head.as_bytes().to_vec();
    content.extend_from_slice(switches.as_bytes());
    block(out, header(kind::SWITCHES, session), &content)
}

/// Most bytes of structs and texts of one block, but for the last one.
const TEXTS_BYTES: usize = 1 << 20;

/// Structs of a block with the texts that they point to, each text once.
#[derive(Default)]
struct WithTexts<'t> {
    fixed: Vec<u8>,
    texts: Vec<u8>,
    places: BTreeMap<&'t [u8], u32>,
}

impl<'t> WithTexts<'t> {
    /// Where a text stands.
    fn place(&mut self, text: &'t [u8]) -> u32 {
        let texts = &mut self.texts;
        *self.places.entry(text).or_insert_with(|| {
            texts.extend_from_slice(text);
            (texts.len() - text.len()) as u32
        })
    }

    const fn is_full(&self) -> bool {
        self.fixed.len() + self.texts.len() >= TEXTS_BYTES
    }

    /// Appends a block of them behind its head, and forgets them.
    fn append(
        &mut self,
        out: &mut Vec<u8>,
        header: BlockHeader,
        head: &[u8],
    ) -> Result<(), CodecError> {
        let content = [head, &self.fixed, &self.texts].concat();
        *self = Self::default();
        block(out, header, &content)
    }
}

/// Appends WAITS blocks with these waits: where their texts stand is filled in. As many blocks as are needed.
///
/// # Errors
/// [`CodecError::TooLarge`]: a text of 3 MiB.
pub fn seen_waits<'t>(
    out: &mut Vec<u8>,
    session: Uuid,
    waits: impl IntoIterator<Item = (SeenWait, &'t [u8])>,
) -> Result<(), CodecError> {
    let mut all = WithTexts::default();
    let append = |all: &mut WithTexts<'_>, out: &mut Vec<u8>| {
        let head = SeenWaits {
            waits: (all.fixed.len() / SeenWait::BYTES) as u32,
            texts_bytes: all.texts.len() as u32,
        };
        all.append(out, header(kind::WAITS, session), head.as_bytes())
    };
    for (wait, text) in waits {
        let wait = SeenWait {
            text: all.place(text),
            text_bytes: text.len() as u32,
            ..wait
        };
        all.fixed.extend_from_slice(wait.as_bytes());
        if all.is_full() {
            append(&mut all, out)?;
        }
    }
    match all.fixed.is_empty() {
        true => Ok(()),
        false => append(&mut all, out),
    }
}

/// Appends SAMPLES blocks with these samples: where their texts stand is filled in, and how many there are in `head`. As
/// many blocks as are needed, at least one if some are lost; the first one has the loss.
///
/// # Errors
/// [`CodecError::TooLarge`]: a text of 3 MiB.
pub fn samples<'t>(
    out: &mut Vec<u8>,
    session: Uuid,
    head: &Samples,
    samples: impl IntoIterator<Item = (Sample, &'t [u8])>,
) -> Result<(), CodecError> {
    let (mut all, mut lost) = (WithTexts::default(), head.lost);
    let mut append = |all: &mut WithTexts<'_>, out: &mut Vec<u8>| {
        let head = Samples {
            samples: (all.fixed.len() / Sample::BYTES) as u32,
            texts_bytes: all.texts.len() as u32,
            lost: core::mem::take(&mut lost),
            ..*head
        };
        all.append(out, header(kind::SAMPLES, session), head.as_bytes())
    };
    for (sample, text) in samples {
        let sample = Sample {
            text: all.place(text),
            text_bytes: text.len() as u32,
            ..sample
        };
        all.fixed.extend_from_slice(sample.as_bytes());
        if all.is_full() {
            append(&mut all, out)?;
        }
    }
    match all.fixed.is_empty() && head.lost == 0 {
        true => Ok(()),
        false => append(&mut all, out),
    }
}

/// Appends a CONTAINER block: the complete blocks in `raw` under `codec`.
///
/// # Errors
/// [`CodecError::TooLarge`] for `raw` or what it became (then nothing was appended),
/// [`CodecError::Unknown`].
pub fn container(
    out: &mut Vec<u8>,
    session: Uuid,
    codec: u8,
    raw: &[u8],
) -> Result<(), CodecError> {
    let mut stored = Vec::new();
    encode(codec, raw, &mut stored)?;
    let mut header = header(kind::CONTAINER, session);
    header.codec = codec;
    if stored.len() >= raw.len() && codec != codec::NONE {
        // Noise: stored as it is, so that the reader has one thing less to do.
        header.codec = codec::NONE;
        return block(out, header, raw);
    }
    header.raw_bytes = raw.len() as u32;
    seal_stored(&mut header, &stored)?;
    append(out, &header, &stored);
    Ok(())
}
