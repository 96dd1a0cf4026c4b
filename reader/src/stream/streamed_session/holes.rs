//! Pages of a session that a drain found gone.

use crate::pages::drain::SessionDrain;
use crate::stream::gone::overwritten;
use crate::stream::ledger::Ledger;
use crate::stream::spill::Spill;

/// Takes note of pages that a drain found gone: collectors are told, and so is the next streamer where
/// pages wait on disk.
pub(super) fn note_holes(drain: &mut SessionDrain, ledger: &mut Ledger, spill: Option<&mut Spill>) {
    let holes = drain.take_holes().into_iter();
    let ranges: Vec<_> = holes.map(|(slot, hole)| overwritten(slot, hole)).collect();
    ledger.gone.add(&ranges);
    if let Some(spill) = spill {
        spill.note_gone(&ranges);
    }
}
