//! The file of an object of code: a shared object whose only content is an unwind table for the code
//! that is put into it later. Its addresses are those that it is meant to be mapped at.

use std::ops::Range;

use super::PAGE_BYTES;
use crate::arch::{AS_AFTER_A_CALL, CodeFrames, RETURN_COLUMN};

/// Where the parts of the first page begin.
const HEADERS: usize = 64;
const TABLE: usize = 0x180;
const FRAMES: usize = 0x1a0;
const HASH: usize = 0x280;
const SYMBOLS: usize = 0x2a0;
const NAMES: usize = 0x2c0;
/// Bytes of a program header, and of an entry of the dynamic section.
const HEADER_BYTES: u16 = 56;
const ENTRY_BYTES: u64 = 16;

const NAME: &[u8] = b"\0libringmark_trampolines.so\0";

/// Flags of program headers.
const R: u32 = 4;
const RW: u32 = 6;
const RX: u32 = 5;

/// The range that the whole object takes for code at `code`: a page in front, and one after it.
pub(super) fn whole(code: &Range<u64>) -> Range<u64> {
    let page = PAGE_BYTES as u64;
    code.start - page..code.end + page
}

/// The file for code at `code` with these frames.
pub(super) fn contents(code: &Range<u64>, of: CodeFrames) -> Vec<u8> {
    let base = whole(code).start;
    let mut file = vec![0; 2 * PAGE_BYTES];
    put(&mut file, 0, &file_header());
    put(&mut file, HEADERS, &program_headers(code));
    put(&mut file, TABLE, &table(code, of));
    put(&mut file, FRAMES, &frames(code, of));
    // One bucket, one symbol, which is none.
    put(&mut file, HASH, &words(&[1, 1, 0, 0]));
    put(&mut file, NAMES, NAME);
    put(&mut file, PAGE_BYTES, &dynamic(base));
    file
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = file.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn file_header() -> Vec<u8> {
    const SHARED_OBJECT: u16 = 3;
    const X86_64: u16 = 62;
    let mut header = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    header.extend(
        [SHARED_OBJECT, X86_64]
            .iter()
            .flat_map(|half| half.to_le_bytes()),
    );
    header.extend(words(&[1]));
    let addresses = [0, HEADERS as u64, 0];
    header.extend(addresses.iter().flat_map(|address| address.to_le_bytes()));
    header.extend(words(&[0]));
    let sizes = [HEADERS as u16, HEADER_BYTES, 5, 64, 0, 0];
    header.extend(sizes.iter().flat_map(|size| size.to_le_bytes()));
    header
}

fn program_headers(code: &Range<u64>) -> Vec<u8> {
    use libc::{PT_DYNAMIC, PT_GNU_EH_FRAME, PT_GNU_STACK, PT_LOAD};
    let (page, base) = (PAGE_BYTES as u64, whole(code).start);
    let mut headers = Vec::new();
    let mut add = |kind: u32, flags: u32, offset: u64, address: u64, bytes: u64, align: u64| {
        headers.extend(words(&[kind, flags]));
        let rest = [offset, address, address, bytes, bytes, align];
        headers.extend(rest.iter().flat_map(|value| value.to_le_bytes()));
    };
    // What lies beyond the end of the file is never used as it is.
    add(PT_LOAD, RX, 0, base, code.end - base, page);
    add(PT_LOAD, RW, page, code.end, page, page);
    add(PT_DYNAMIC, RW, page, code.end, 7 * ENTRY_BYTES, 8);
    add(PT_GNU_EH_FRAME, R, TABLE as u64, base + TABLE as u64, 20, 4);
    // Without it, stacks would be made executable.
    add(PT_GNU_STACK, RW, 0, 0, 0, 16);
    headers
}

/// The sorted table of the entries, of which there is one.
fn table(code: &Range<u64>, of: CodeFrames) -> Vec<u8> {
    const RELATIVE: u8 = 0x1b;
    const COUNT: u8 = 0x03;
    const FROM_TABLE: u8 = 0x3b;
    let to_code = (PAGE_BYTES - TABLE) as u32;
    debug_assert!(code.end > code.start);
    let to_frames = (FRAMES - TABLE) as u32;
    let mut table = vec![1, RELATIVE, COUNT, FROM_TABLE];
    table.extend(words(&[
        to_frames - 4,
        1,
        to_code,
        to_frames + cie(of).len() as u32,
    ]));
    table
}

/// What all entries have in common.
fn cie(of: CodeFrames) -> Vec<u8> {
    const RELATIVE: u8 = 0x1b;
    const MINUS_EIGHT: u8 = 0x78;
    let mut body = words(&[0]);
    body.extend([1, b'z', b'R']);
    body.extend(of.is_interrupting.then_some(b'S'));
    body.extend([0, 1, MINUS_EIGHT, RETURN_COLUMN, 1, RELATIVE]);
    body.extend(AS_AFTER_A_CALL);
    with_length(body)
}

fn frames(code: &Range<u64>, of: CodeFrames) -> Vec<u8> {
    let mut frames = cie(of);
    let at = FRAMES + frames.len();
    let bytes = (code.end - code.start) as u32;
    let mut body = words(&[frames.len() as u32 + 4, (PAGE_BYTES - at - 8) as u32, bytes]);
    body.push(0);
    body.extend(of.rules);
    frames.extend(with_length(body));
    frames.extend(words(&[0])); // the end
    frames
}

/// An entry, filled up with instructions that do nothing.
fn with_length(mut body: Vec<u8>) -> Vec<u8> {
    body.resize(body.len().next_multiple_of(8) + 4, 0);
    let mut entry = words(&[body.len() as u32]);
    entry.append(&mut body);
    entry
}

fn dynamic(base: u64) -> Vec<u8> {
    const END: u64 = 0;
    const HASH_TABLE: u64 = 4;
    const STRINGS: u64 = 5;
    const SYMBOL_TABLE: u64 = 6;
    const STRING_BYTES: u64 = 10;
    const SYMBOL_BYTES: u64 = 11;
    const OWN_NAME: u64 = 14;
    let entries = [
        (HASH_TABLE, base + HASH as u64),
        (STRINGS, base + NAMES as u64),
        (SYMBOL_TABLE, base + SYMBOLS as u64),
        (STRING_BYTES, NAME.len() as u64),
        (SYMBOL_BYTES, 24),
        (OWN_NAME, 1),
        (END, 0),
    ];
    let all = entries.iter().flat_map(|(tag, value)| [tag, value]);
    all.flat_map(|value| value.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::{IN_HOPS, IN_MOVED, IN_TRAMPOLINES};
    use gimli::{BaseAddresses, EhFrame, EhFrameHdr, LittleEndian, UnwindContext, UnwindSection};
    use object::{Object, ObjectSegment};

    const CODE: Range<u64> = 0x1234_5600_1000..0x1234_5601_0000;

    /// By another reader of such files.
    #[test]
    fn the_table_leads_to_the_entry_that_covers_the_code() {
        for frame in [IN_HOPS, IN_TRAMPOLINES, IN_MOVED] {
            let file = contents(&CODE, frame);
            let read = object::File::parse(&*file).unwrap();
            let first = read.segments().next().unwrap();
            assert_eq!(
                first.address()..first.address() + first.size(),
                0x1234_5600_0000..CODE.end
            );
            let base = whole(&CODE).start;
            let bases = BaseAddresses::default()
                .set_eh_frame_hdr(base + TABLE as u64)
                .set_eh_frame(base + FRAMES as u64);
            let table = EhFrameHdr::new(&file[TABLE..FRAMES], LittleEndian)
                .parse(&bases, 8)
                .unwrap();
            let entries = EhFrame::new(&file[FRAMES..HASH], LittleEndian);
            for at in [CODE.start, CODE.start + 5, CODE.end - 1] {
                let found = table.table().unwrap().fde_for_address(
                    &entries,
                    &bases,
                    at,
                    EhFrame::cie_from_offset,
                );
                let found = found.unwrap();
                assert_eq!(
                    (found.initial_address(), found.len()),
                    (CODE.start, CODE.end - CODE.start)
                );
                let mut context = UnwindContext::new();
                let row = found.unwind_info_for_address(&entries, &bases, &mut context, at);
                let cfa = format!("{:?}", row.unwrap().cfa());
                assert_eq!(cfa.contains("Expression"), !frame.rules.is_empty(), "{cfa}");
            }
        }
    }
}
