//! A schema stream, with records of its types whose payload is the stream itself.

use ringmark_format::block::PageState;
use ringmark_format::codec::write;
use ringmark_format::page::PageHeader;
use ringmark_format::record::pack;
use ringmark_format::session::{Clock, Mode, RING_FILE_MAGIC, SessionHeader};
use ringmark_format::{ENDIAN_MARK, PageNumber, RingId, TypeId, Uuid, VERSION_MAJOR};
use zerocopy::{FromZeros, IntoBytes};

use crate::dump_blocks;

const SESSION: Uuid = Uuid([7; 16]);
const PAGE_BYTES: u32 = 4096;
/// Types that have records: those that programs use first.
const TYPES: u32 = 16;
/// Payload words of the records; the rest of the page stays empty.
const PAYLOADS: [usize; 4] = [0, 1, 3, 12];

/// Reads the input as a schema stream, in one piece and in two that overlap.
pub fn run(input: &[u8]) {
    for cut in [0, input.len() / 2] {
        if let Some(dump) = dump(input, cut) {
            dump_blocks::decode(&dump);
        }
    }
}

fn dump(stream: &[u8], cut: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    write::session(&mut out, SESSION, header().as_bytes()).ok()?;
    write::schema(&mut out, SESSION, cut as u64, &stream[cut..]).ok()?;
    if cut > 0 {
        let end = (cut + 8).min(stream.len());
        write::schema(&mut out, SESSION, 0, &stream[..end]).ok()?;
    }
    let page = page(stream);
    let extent = page.len() as u32;
    let about = write::page_header(
        SESSION,
        RingId(1),
        PageNumber(0),
        extent,
        PAGE_BYTES,
        PageState::Open,
    );
    write::block(&mut out, about, &page).ok()?;
    Some(out)
}

fn header() -> SessionHeader {
    let mut header = SessionHeader::new_zeroed();
    header.magic = RING_FILE_MAGIC;
    header.version_major = VERSION_MAJOR;
    header.endian = ENDIAN_MARK;
    header.mode = Mode::Discard as u32;
    header.clock = Clock::Monotonic as u32;
    header.session = SESSION.0;
    header.tick_mult = 1;
    header
}

fn page(stream: &[u8]) -> Vec<u8> {
    let mut header = PageHeader::new_zeroed();
    header.generation = 1;
    header.ring_id = 1;
    let mut page = header.as_bytes().to_vec();
    let mut payload = stream.iter().copied().cycle();
    for number in 0..TYPES * PAYLOADS.len() as u32 {
        let words = PAYLOADS[(number / TYPES) as usize];
        let head = pack(number, TypeId(16 + number % TYPES), words as u64);
        page.extend_from_slice(&head.to_le_bytes());
        page.extend((0..8 * words).map(|_| payload.next().unwrap_or(0)));
    }
    page
}
