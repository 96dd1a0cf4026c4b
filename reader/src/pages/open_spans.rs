//! The content of OPEN_SPANS blocks: which spans each thread has open.
//!
//! Stacks are copied before the last pages of the same dump: a span that ends in between has a
//! record there, so none is missing in both.

use ringmark_format::codec::write;
use ringmark_format::open_span::{ENDED_SESSION, Frame, MOVING, OpenSpans};
use ringmark_format::slot::state;
use ringmark_ring::{Owner, SlotView, StackCopy, clock};
use zerocopy::FromBytes;
use zerocopy::IntoBytes;

use crate::pages::batch::fits;
use crate::sessions::session::Session;

/// OPEN_SPANS blocks of a session as it is now, ready to be written after its last pages; empty: no
/// thread of it has begun a span. `ended`: its process is dead, or has closed it.
#[must_use]
pub(crate) fn blocks(session: &Session, ended: bool) -> Vec<u8> {
    let ring = session.ring();
    let slots = (0..ring.slots_used()).filter_map(|index| Some((index, ring.slot(index)?)));
    let tick = match ended {
        true => ENDED_SESSION,
        false => clock::ticks(ring.geometry().clock),
    };
    let (mut out, mut is_used) = (Vec::new(), false);
    for (index, slot) in slots {
        let Some(stack) = ring.span_stack(slot) else {
            continue;
        };
        is_used |= StackCopy::is_used(stack);
        let Some((owner, copy)) = copy_of(&slot, || StackCopy::of(stack)) else {
            continue;
        };
        if !copy.frames().is_empty() || copy.over > 0 {
            block(session, (index, &owner), &copy, tick, &mut out);
        }
    }
    if out.is_empty() && is_used {
        let nothing = OpenSpans {
            ring_id: 0,
            tick,
            over: 0,
            tid: 0,
            slot: 0,
            thread_name: [0; 16],
            frames: 0,
            flags: 0,
            reserved: 0,
        };
        fits(write::open_spans(&mut out, session.uuid(), &nothing, &[]));
    }
    out
}

/// The copy of a slot's stack with its owner, who is the same before and after; `None`: the slot
/// has no thread, or changes hands.
fn copy_of(slot: &SlotView<'_>, copy: impl FnOnce() -> StackCopy) -> Option<(Owner, StackCopy)> {
    if !matches!(slot.state(), state::ACTIVE | state::ABANDONED) {
        return None;
    }
    let owner = slot.owner()?;
    let copy = copy();
    (slot.owner() == Some(owner)).then_some((owner, copy))
}

fn block(
    session: &Session,
    (index, owner): (u32, &Owner),
    copy: &StackCopy,
    tick: u64,
    out: &mut Vec<u8>,
) {
    let frames = copy.frames().iter();
    let frames = frames.filter_map(|words| Frame::read_from_bytes(words.as_bytes()).ok());
    let mut frames: Vec<Frame> = frames.collect();
    // A span may have got a frame below that of the one around it.
    frames.sort_by_key(|frame| frame.tick);
    let header = OpenSpans {
        ring_id: owner.ring_id.0,
        tick,
        over: copy.over,
        tid: owner.tid,
        slot: index,
        thread_name: owner.thread_name,
        frames: frames.len() as u32,
        flags: if copy.moving { MOVING } else { 0 },
        reserved: 0,
    };
    fits(write::open_spans(out, session.uuid(), &header, &frames));
}
