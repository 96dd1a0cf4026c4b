//! Bytes between functions that nothing executes: room for jumps that reach farther than two bytes.

use std::collections::BTreeMap;
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

use crate::frames::Frames;
use crate::image::Image;
use crate::instructions::Passed;
use crate::leads::Leads;
use crate::starts::Starts;

/// Bytes of a jump that reaches everything near.
const JUMP_BYTES: u64 = 5;
/// Bytes of a jump that reaches 127 bytes.
const SHORT_JUMP_BYTES: u64 = 2;
/// What is longer than this is no padding.
const BYTES_MAX: u64 = 64;

/// Free padding: its bytes by where it begins.
#[derive(Debug, Default)]
pub(crate) struct Padding(BTreeMap<u64, u64>);

impl Padding {
    /// All NOPs and traps after code that never goes on, up to the next function, to which nothing leads.
    pub(crate) fn of(
        image: &Image<'_>,
        frames: &Frames<'_>,
        starts: &Starts,
        passed: &Passed,
        leads: &Leads,
    ) -> Self {
        let place = |end: &u64| {
            let section = image.code_around(*end)?;
            let next = starts.after(end.checked_sub(1)?).min(section.end());
            let range = *end..next;
            let is_free = (1..BYTES_MAX).contains(&next.checked_sub(*end)?)
                && frames.around(*end).is_none()
                && leads.into(range.clone()).is_empty()
                && is_padding(image, &range);
            is_free.then_some((range.start, range.end - range.start))
        };
        Self(passed.closed.iter().filter_map(place).collect())
    }

    /// Takes room for a jump that a short jump at `site` reaches.
    pub(crate) fn take(&mut self, site: u64) -> Option<u64> {
        let from = site.checked_add(SHORT_JUMP_BYTES)?;
        let reached = from.saturating_sub(128)..from.saturating_add(128);
        let first = reached.start.saturating_sub(BYTES_MAX);
        let room = |(at, bytes): (&u64, &u64)| {
            let (begin, end) = (*at, at + bytes);
            let place = begin.max(reached.start);
            (place + JUMP_BYTES <= end && place < reached.end).then_some((begin, end, place))
        };
        let (begin, end, place) = self.0.range(first..reached.end).find_map(room)?;
        self.cut(begin..end, place..place + JUMP_BYTES);
        Some(place)
    }

    /// Takes exactly these bytes; `false`: they are no padding, or taken.
    pub(crate) fn take_all(&mut self, bytes: Range<u64>) -> bool {
        let before = self.0.range(..=bytes.start).next_back();
        let around = before.map(|(at, length)| *at..at + length);
        match around.filter(|around| bytes.end <= around.end) {
            Some(around) => {
                self.cut(around, bytes);
                true
            }
            None => false,
        }
    }

    /// Takes `bytes` out of the piece of padding around them.
    fn cut(&mut self, piece: Range<u64>, bytes: Range<u64>) {
        self.0.remove(&piece.start);
        for rest in [piece.start..bytes.start, bytes.end..piece.end] {
            if !rest.is_empty() {
                self.0.insert(rest.start, rest.end - rest.start);
            }
        }
    }
}

/// Whether all of a range is NOPs and traps.
fn is_padding(image: &Image<'_>, range: &Range<u64>) -> bool {
    let code = image.code_in(range);
    let mut decoder = Decoder::with_ip(64, code, range.start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let is_nop = match instruction.mnemonic() {
            Mnemonic::Nop | Mnemonic::Int3 => true,
            // xchg ax, ax
            Mnemonic::Xchg => instruction.op0_register() == instruction.op1_register(),
            _ => false,
        };
        if !is_nop {
            return false;
        }
    }
    decoder.ip() == range.end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_taken_once() {
        let mut padding = Padding(BTreeMap::from([(0x1000, 9)]));
        assert!(!padding.take_all(0x0fff..0x1003) && !padding.take_all(0x1006..0x100a));
        assert!(padding.take_all(0x1000..0x1004));
        assert!(!padding.take_all(0x1003..0x1005));
        assert_eq!(padding.take(0x1010), Some(0x1004));
        assert_eq!(padding.take(0x1010), None);
    }

    #[test]
    fn room_is_taken_once_and_only_within_reach() {
        let mut padding = Padding(BTreeMap::from([(0x1000, 12)]));
        assert_eq!(padding.take(0x1100), None, "too far");
        assert_eq!(padding.take(0x1080), Some(0x1002), "its end is reached");
        assert_eq!(padding.take(0x1010), Some(0x1007));
        assert_eq!(padding.take(0x1010), None, "all is taken");
        let mut padding = Padding(BTreeMap::from([(0x1000, 5)]));
        assert_eq!(padding.take(0x1000 - 2 - 128), None);
        assert_eq!(padding.take(0x1000 - 2 - 127), Some(0x1000));
        assert_eq!(Padding::default().take(u64::MAX), None);
    }
}
