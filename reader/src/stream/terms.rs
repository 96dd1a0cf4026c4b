//! What a collector says in WELCOME about its acknowledgements: how much may be under way, and how
//! long they take.

use std::time::Duration;

use ringmark_format::attribute::{Attributes, tag};
use ringmark_format::stream::{END_MAX_MS, REFERENCES_WITHIN_MS};

/// The window of a collector that does not say it, in bytes.
const WINDOW: u64 = 8 << 20;
/// Least time for the last acknowledgements, and that of a collector that does not say it, in ms.
const END_WITHIN_MS: u32 = 10_000;

/// The terms of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Most bytes that the collector lets be under way.
    pub(super) window: u64,
    /// Within how many ms a block is acknowledged as a rule.
    ack_within_ms: u32,
    end_within_ms: u32,
}

impl Terms {
    /// Reads them from the attributes of WELCOME.
    #[must_use]
    pub fn read(attributes: &[u8]) -> Self {
        let find = |tag| {
            let mut all = Attributes::new(attributes);
            Iterator::find(&mut all, |found| found.tag == tag)
        };
        let number = |tag| find(tag)?.as_u32();
        let end_within = number(tag::END_WITHIN).unwrap_or(END_WITHIN_MS);
        Self {
            window: find(tag::WINDOW)
                .and_then(|window| window.as_u64())
                .unwrap_or(WINDOW),
            ack_within_ms: number(tag::ACK_WITHIN).unwrap_or(REFERENCES_WITHIN_MS),
            end_within_ms: end_within.clamp(END_WITHIN_MS, END_MAX_MS),
        }
    }

    /// Whether a batch may be begun for which `most` is enough, with `room` for it now. A little credit is left to
    /// grow, unless nothing is under way: then no more may come.
    #[must_use]
    pub fn has_room(&self, room: u64, most: u64, is_under_way: bool) -> bool {
        room >= most.min(self.window / 2) || (room > 0 && !is_under_way)
    }

    /// Within how long everything is acknowledged at the end.
    pub(super) fn end_within(&self) -> Duration {
        Duration::from_millis(self.end_within_ms.into())
    }

    /// Why no page is sent by reference: it would stay in its ring for so long. `None`: they may be.
    pub(super) fn against_references(&self) -> Option<String> {
        let (found, most) = (self.ack_within_ms, REFERENCES_WITHIN_MS);
        (found > most).then(|| {
            format!(
                "the collector acknowledges within {found} ms, --zero-copy expects at most {most}: pages are copied"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use ringmark_format::attribute::push;

    use super::*;

    #[test]
    fn what_is_not_said_is_as_before_and_what_is_said_is_bounded() {
        let said = Terms::read(&[]);
        assert_eq!(
            (said.window, said.end_within()),
            (8 << 20, Duration::from_secs(10))
        );
        assert_eq!(said.against_references(), None);
        let mut attributes = Vec::new();
        push(&mut attributes, tag::WINDOW, &1_000_u64.to_le_bytes());
        push(&mut attributes, tag::ACK_WITHIN, &5_000_u32.to_le_bytes());
        push(&mut attributes, tag::END_WITHIN, &u32::MAX.to_le_bytes());
        let said = Terms::read(&attributes);
        assert_eq!(
            (said.window, said.end_within()),
            (1_000, Duration::from_secs(120))
        );
        let why = said.against_references().unwrap();
        assert!(
            why.contains("5000 ms") && why.contains("at most 100"),
            "{why}"
        );
        // A value of another size is not read.
        let mut attributes = Vec::new();
        push(&mut attributes, tag::WINDOW, b"8");
        assert_eq!(Terms::read(&attributes), Terms::read(&[]));
    }
}
