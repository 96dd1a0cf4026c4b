//! What a session keeps out of its rings while the collector is away or slow: on disk.

use std::time::Duration;

use super::{Stage, Track};
use crate::error::ReaderError;
use crate::pages::batch::Batch;
use crate::pages::drain::Fill;

/// What of the fullest ring may wait for a slow collector before it goes to the spill, in 1/1024.
const SLOW: u32 = 512;
/// As [`SLOW`], while the collector has just gone.
const GONE: u32 = 256;
/// After this long without a collector everything that is sealed goes to the spill: threads that
/// come and go need the memory of their rings.
const AWAY: Duration = Duration::from_secs(1);

/// What became of moving pages to the spill.
#[derive(Debug, Default)]
pub(in crate::stream) struct Held {
    /// How much of the fullest ring was found sealed, in 1/1024, if it may go there.
    pub(in crate::stream) fill: u32,
    /// Pages that are in it now.
    pub(in crate::stream) pages: u64,
    /// Not all of them are: they stay in their rings.
    pub(in crate::stream) full: bool,
    /// Why, if not for want of room.
    pub(in crate::stream) error: Option<ReaderError>,
}

impl Track {
    /// Moves sealed pages to the spill, if they should not wait in their rings any longer. `away`:
    /// since when there is no collector; `None`: it is there, and slow. Pages that are under way
    /// are taken again: they must be there when they are released.
    pub(in crate::stream) fn hold(
        &mut self,
        away: Option<Duration>,
        batch: &mut Batch,
    ) -> Result<Held, ReaderError> {
        let ending = matches!(self.stage, Stage::Ending | Stage::Sent);
        let Some(ring) = self.ring.as_mut().filter(|_| !ending) else {
            return Ok(Held::default());
        };
        ring.drain.session().check_size()?;
        // Also has rings mapped in that are there before the connection is.
        let held = ring.drain.held_1024();
        let Some(spill) = &mut self.spill else {
            return Ok(Held::default());
        };
        let least = match away {
            None => SLOW,
            Some(away) if away < AWAY => GONE,
            Some(_) => 1,
        };
        let mut all = Held {
            fill: held,
            ..Held::default()
        };
        if held < least {
            return Ok(all);
        }
        ring.drain.rewind();
        ring.rewound = true;
        loop {
            batch.clear(spill.room());
            let filled = ring.drain.fill(batch)?;
            if batch.is_empty() {
                all.full = filled == Fill::BatchFull;
                break;
            }
            match spill.append(&ring.drain, batch.bytes()) {
                Ok(true) => {
                    ring.drain.release();
                    all.pages += batch.pages();
                }
                Ok(false) => all.full = true,
                Err(error) => (all.full, all.error) = (true, Some(error)),
            }
            if all.full || filled == Fill::PassDone {
                break;
            }
        }
        if all.full {
            ring.drain.rewind();
        }
        Ok(all)
    }
}
