//! The place of a function's return address when one of its patch sites is reached.

/// Bytes from the stack pointer up to the return address, or [`AFTER_FRAME_POINTER`]. The stubs of
/// sites inside functions read it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReturnPlace(u32);

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
        match register {
            RSP if place % 8 == 0 => u32::try_from(place)
                .ok()
                .filter(|place| *place < AFTER_FRAME_POINTER)
                .map(Self),
            RBP if place == 8 => Some(Self(AFTER_FRAME_POINTER)),
            _ => None,
        }
    }

    /// The word that the stub reads.
    pub(crate) fn word(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_stub_can_find() {
        assert_eq!(ReturnPlace::of(RSP, 8), Some(ReturnPlace(0)));
        assert_eq!(ReturnPlace::of(RSP, 64), Some(ReturnPlace(56)));
        assert_eq!(ReturnPlace::of(RBP, 16), Some(ReturnPlace(1 << 31)));
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
