//! Moves the sealed pages of a session from its rings to disk, while the collector is away or slow.
//!
//! Rings are small and programs do not wait: what is not taken out of a full ring is lost. So pages
//! go to disk once the fullest ring has filled to some part, the earlier the less hope there is
//! that the collector takes them soon.

use std::time::Duration;

use super::holes::note_holes;
use crate::error::ReaderError;
use crate::pages::batch::Batch;
use crate::pages::drain::{Fill, SessionDrain};
use crate::share::Share1024;
use crate::stream::ledger::Ledger;
use crate::stream::spill::{Appended, Spill};

/// What keeps pages in their rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// The collector has them, and has not said that they are durable.
    UnderWay,
    /// The collector is there and slow.
    Slow,
    /// There has been no collector for so long.
    Away(Duration),
}

/// The part of the fullest ring that may be under way. A disk usually takes less time than a program
/// needs for the rest.
const UNDER_WAY: Share1024 = Share1024(640);
/// The part that may wait for a collector that is there and slow.
const SLOW: Share1024 = Share1024(512);
/// The same while the collector has just gone.
const GONE: Share1024 = Share1024(256);
/// The same after [`LONG_AWAY`]: nothing sealed waits in its ring, since threads that come and go
/// need the memory.
const AWAY: Share1024 = Share1024(1);
/// How long a collector is gone before it counts as away.
const LONG_AWAY: Duration = Duration::from_secs(1);

/// What became of moving pages to the spill.
#[derive(Debug, Default)]
pub(in crate::stream) struct Spilled {
    /// The part of the fullest ring that was sealed and not released, if the session has a spill.
    pub(in crate::stream) fullest: Share1024,
    /// Not all pages were moved: the others stay in their rings.
    pub(in crate::stream) is_full: bool,
    /// Why, unless the spill has its largest size.
    pub(in crate::stream) error: Option<ReaderError>,
}

/// Whether pages must not wait in their rings any longer.
#[must_use]
pub fn is_due(fullest: Share1024, waits: Waits) -> bool {
    let least = match waits {
        Waits::UnderWay => UNDER_WAY,
        Waits::Slow => SLOW,
        Waits::Away(away) if away < LONG_AWAY => GONE,
        Waits::Away(_) => AWAY,
    };
    fullest >= least
}

/// Moves what is sealed and not released to the spill, pages that are under way included: until
/// the collector has them for good, they must not be anywhere but in a ring or on disk.
pub(super) fn move_pages(
    drain: &mut SessionDrain,
    ledger: &mut Ledger,
    spill: &mut Spill,
    batch: &mut Batch,
) -> Result<Spilled, ReaderError> {
    let mut spilled = Spilled::default();
    drain.rewind();
    loop {
        batch.clear(spill.room());
        let filled = drain.fill(batch)?;
        if batch.is_empty() {
            spilled.is_full = filled == Fill::BatchFull;
            break;
        }
        note_holes(drain, ledger, Some(spill));
        match spill.append(drain, ledger, batch.bytes()) {
            Ok(Appended::All) => drain.release(),
            Ok(Appended::NoRoom) => spilled.is_full = true,
            Err(error) => (spilled.is_full, spilled.error) = (true, Some(error)),
        }
        if spilled.is_full || filled == Fill::PassDone {
            break;
        }
    }
    if spilled.is_full {
        drain.rewind();
    }
    Ok(spilled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_leave_their_rings_sooner_the_longer_the_collector_is_away() {
        let just_gone = Waits::Away(Duration::from_millis(10));
        let long_gone = Waits::Away(LONG_AWAY);
        let (under_way, slow) = (Waits::UnderWay, Waits::Slow);
        assert!(!is_due(Share1024(639), under_way) && is_due(Share1024(640), under_way));
        assert!(!is_due(Share1024(511), slow) && is_due(Share1024(512), slow));
        assert!(!is_due(Share1024(255), just_gone) && is_due(Share1024(256), just_gone));
        assert!(is_due(Share1024(1), long_gone));
        assert!(!is_due(Share1024(0), long_gone), "nothing is sealed");
    }
}
