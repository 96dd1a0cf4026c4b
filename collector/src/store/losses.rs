//! What of a session never came: events that its program lost, and pages that were gone before they
//! could be sent. Both are counted for its host.

use ringmark_format::counters::{CountersHeader, SlotCounters};
use ringmark_format::session::{Mode, SessionHeader};
use zerocopy::FromBytes;

use crate::hosts::HostLosses;

/// The losses of a session.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Events that the program has lost, by the counters that said most.
    lost: u64,
    /// Where they are counted; `None`: no connection has announced the session.
    figures: Option<HostLosses>,
}

impl Losses {
    /// Counts losses for this host from now on.
    pub(super) fn count_in(&mut self, figures: HostLosses) {
        self.figures = Some(figures);
    }

    /// Takes note of counters that are stored already: what they say was counted.
    pub(super) fn have_counters(&mut self, content: &[u8]) {
        self.have_lost(total(content));
    }

    /// Takes note of events whose loss was counted.
    pub(super) fn have_lost(&mut self, events: u64) {
        self.lost = self.lost.max(events);
    }

    /// Counts what counters say that earlier ones did not.
    pub(super) fn add_counters(&mut self, content: &[u8]) {
        let all = total(content);
        let new = all.saturating_sub(self.lost);
        self.have_lost(all);
        if let Some(figures) = self.figures.as_ref().filter(|_| new > 0) {
            figures.lost(new);
        }
    }

    /// Counts pages that are missing between two of a slot, in a session with this content of
    /// SESSION.
    pub(super) fn skipped(&self, pages: u64, session: &[u8]) {
        if let Some(figures) = self.figures.as_ref().filter(|_| pages > 0) {
            match mode(session) {
                Some(Mode::Overwrite) => figures.overwritten(pages),
                _ => figures.missing(pages),
            }
        }
    }
}

fn mode(session: &[u8]) -> Option<Mode> {
    let (header, _) = SessionHeader::read_from_prefix(session).ok()?;
    Mode::from_u32(header.mode)
}

/// Events lost in a whole session, by the content of COUNTERS.
fn total(content: &[u8]) -> u64 {
    let Ok((header, mut rest)) = CountersHeader::read_from_prefix(content) else {
        return 0;
    };
    let sum = |lost: &[u64]| lost.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
    let mut all = sum(&header.lost);
    while let Ok((slot, after)) = SlotCounters::read_from_prefix(rest) {
        all = all.saturating_add(sum(&slot.lost));
        rest = after;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringmark_format::counters::CAUSES;
    use zerocopy::{FromZeros, IntoBytes};

    use crate::hosts::{Hosts, Proof};

    fn counters(of_session: u64, of_slot: u64) -> Vec<u8> {
        let mut header = CountersHeader::new_zeroed();
        header.lost[0] = of_session;
        let mut slot = SlotCounters::new_zeroed();
        slot.lost[CAUSES - 1] = of_slot;
        [header.as_bytes(), slot.as_bytes()].concat()
    }

    #[test]
    fn counters_are_counted_by_what_they_say_more() {
        let hosts = Hosts::default();
        let host = hosts.welcome("web-1", Proof::Proved);
        let mut losses = Losses::default();
        losses.have_counters(&counters(1, 2));
        losses.count_in(host.losses());
        for (of_session, of_slot, expected) in [(1, 2, 0), (1, 7, 5), (0, 4, 5), (3, 7, 7)] {
            losses.add_counters(&counters(of_session, of_slot));
            let text = hosts.text();
            let line = format!("lost_events_total{{host=\"web-1\"}} {expected}\n");
            assert!(text.contains(&line), "{line}{text}");
        }
        losses.add_counters(b"short");
        let mut session = SessionHeader::new_zeroed();
        for (mode, pages) in [(Mode::Overwrite, 3), (Mode::Discard, 4)] {
            session.mode = mode as u32;
            losses.skipped(pages, session.as_bytes());
        }
        let text = hosts.text();
        for line in [
            "overwritten_pages_total{host=\"web-1\"} 3\n",
            "missing_pages_total{host=\"web-1\"} 4\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }
}
