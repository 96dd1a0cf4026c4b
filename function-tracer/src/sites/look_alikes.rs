//! Bytes that look like a jump by a pointer, and are a part of another instruction.

use std::ops::Range;

use object::{Object, ObjectSection, SectionKind};

/// Prefix of long NOPs. After [`INDIRECT`] also the second byte of a jump through a word.
pub(super) const NOP_PREFIX: u8 = 0x66;

/// Prefixes of instructions on 64-bit registers.
const WIDE: Range<u8> = 0x48..0x50;
/// Instructions on a register and a word in memory, with nothing after the word's place: add, and,
/// or, sub, xor, cmp, test, mov, lea, movsxd.
const ON_MEMORY: [u8; 17] = [
    0x01, 0x03, 0x09, 0x0b, 0x21, 0x23, 0x29, 0x2b, 0x31, 0x33, 0x39, 0x3b, 0x63, 0x85, 0x89, 0x8b,
    0x8d,
];

/// Whether the next byte is the last one of a thread-local variable's offset that is moved into a
/// register, as linkers write it into programs: each event in a program begins so. The more of
/// them a program has, the less the bytes of the offset say.
pub(super) fn ends_thread_offset(before: &[u8]) -> bool {
    matches!(
        before.last_chunk(),
        Some([0x48 | 0x49, 0xc7, 0xc0..=0xc7, _, _, _])
    )
}

/// Whether this is one of the NOPs that compilers put after a jump back to a loop.
pub(super) fn is_long_nop(bytes: &[u8]) -> bool {
    let at = bytes.iter().position(|byte| *byte != NOP_PREFIX);
    matches!(
        &bytes[at.unwrap_or(0)..],
        [0x2e, 0x0f, 0x1f, ..] | [0x0f, 0x1f, ..]
    )
}

/// Where a module has its data.
#[derive(Debug)]
pub(super) struct Data(Vec<Range<u64>>);

impl Data {
    /// The data of this module.
    pub(super) fn of<'a>(elf: &impl Object<'a>) -> Self {
        let loaded = elf.sections().filter(|section| section.address() != 0);
        let data = loaded.filter(|section| section.kind() != SectionKind::Text);
        let ranges = data.map(|section| {
            let end = section.address().saturating_add(section.size());
            section.address()..end
        });
        Self(ranges.collect())
    }

    #[cfg(test)]
    pub(super) fn at(range: Range<u64>) -> Self {
        Self(vec![range])
    }

    /// Whether the byte at `place` lies in the distance over which an instruction reaches data.
    /// `bytes` are the code at address `at`.
    pub(super) fn reached_over(&self, at: u64, bytes: &[u8], place: usize) -> bool {
        (0..4).any(|number| {
            let begin = place.checked_sub(3 + number);
            let instruction = begin.and_then(|begin| bytes.get(begin..begin + 7));
            let Some(&[prefix, code, how, a, b, c, d]) = instruction else {
                return false;
            };
            if !WIDE.contains(&prefix) || !ON_MEMORY.contains(&code) || how & 0xc7 != 5 {
                return false;
            }
            let end = at + (place - number + 4) as u64;
            let word = end.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into());
            self.0.iter().any(|data| data.contains(&word))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_to_data_is_no_jump_by_a_pointer() {
        let data = Data::at(0x30_0000..0x40_0000);
        let at = 0x10_0000;
        // mov 0x21ff24(%rip),%r12, which ends at 0x100008.
        let load = [0x90, 0x4c, 0x8b, 0x25, 0x24, 0xff, 0x21, 0x00, 0x90];
        assert!(data.reached_over(at, &load, 5));
        assert!(!data.reached_over(0x20_0000, &load, 5), "there is no data");
        // The same bytes after another instruction; and at both ends of the code.
        let other = [0x90, 0x4c, 0xe8, 0x25, 0x24, 0xff, 0x21, 0x00, 0x90];
        assert!(!data.reached_over(at, &other, 5));
        assert!(!data.reached_over(at, &load[..7], 5));
        assert!(!data.reached_over(at, &[0xff, 0x21], 0));
    }
}
