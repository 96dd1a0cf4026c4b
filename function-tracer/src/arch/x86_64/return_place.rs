//! The place of a function's return address when one of its patch sites is reached.

use core::num::NonZeroU32;

/// Bytes from the stack pointer up to the return address, or [`AFTER_FRAME_POINTER`]; a multiple of
/// 8, with the lowest bit set, so that `None` takes no room of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReturnPlace(NonZeroU32);

/// The word after the one that rbp points at.
const AFTER_FRAME_POINTER: u32 = 1 << 31;
/// Numbers of registers in unwind tables.
const RBP: u16 = 6;
const RSP: u16 = 7;
/// Bytes from the return address up to the frame's end, from which unwind tables count.
const BELOW_FRAME: i64 = 8;

impl ReturnPlace {
    /// The place according to an unwind table, for a frame that ends `offset` above `register`.
    pub(crate) fn of(register: u16, offset: i64) -> Option<Self> {
        let place = offset.checked_sub(BELOW_FRAME)?;
        let word = match register {
            RSP if place % 8 == 0 => {
                let place = u32::try_from(place).ok();
                place.filter(|place| *place < AFTER_FRAME_POINTER)
            }
            RBP if place == 8 => Some(AFTER_FRAME_POINTER),
            _ => None,
        };
        NonZeroU32::new(word? | 1).map(Self)
    }

    /// The word that the stubs of sites inside functions read.
    pub(crate) fn word(self) -> u32 {
        self.0.get() & !1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_stub_can_find() {
        let word = |register, offset| ReturnPlace::of(register, offset).map(ReturnPlace::word);
        assert_eq!(word(RSP, 8), Some(0));
        assert_eq!(word(RSP, 64), Some(56));
        assert_eq!(word(RBP, 16), Some(1 << 31));
        let others = [(RSP, 0), (RSP, 60), (RSP, 1 << 40), (RBP, 32), (3, 16)];
        for (register, offset) in others {
            assert_eq!(
                ReturnPlace::of(register, offset),
                None,
                "{register} {offset}"
            );
        }
        assert_eq!(ReturnPlace::of(RSP, i64::MIN), None);
    }
}
