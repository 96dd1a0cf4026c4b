//! The content of OPEN_SPANS blocks: which spans each thread has open, and what it is called now.
//!
//! Stacks are copied before the last pages of the same dump: a span that ends in between has a
//! record there, so none is missing in both.

use std::collections::BTreeSet;

use ringmark_format::codec::write;
use ringmark_format::open_span::{ENDED_SESSION, Frame, MOVING, OpenSpans, RING_WAIT_NS};
use ringmark_format::slot::state;
use ringmark_ring::{Owner, SlotView, StackCopy, clock};
use zerocopy::FromBytes;
use zerocopy::IntoBytes;

use crate::pages::batch::fits;
use crate::pages::drain::SessionDrain;
use crate::sessions::session::Session;

/// OPEN_SPANS blocks of a session as it is now, ready to be written after its last pages: of the threads
/// that have spans open, another name than when they came, or waited long for their ring. Empty: there is none, and no thread has
/// begun a span. `ended`: its process is dead, or has closed it.
#[must_use]
pub(crate) fn blocks(drain: &mut SessionDrain, ended: bool) -> Vec<u8> {
    if !ended {
        drain.look_at_names();
    }
    let session = drain.session();
    let tick = match ended {
        true => ENDED_SESSION,
        false => clock::ticks(session.ring().geometry().clock),
    };
    let mut out = Vec::new();
    let (mut written, is_used) = open_stacks(drain, tick, &mut out);
    let nothing = StackCopy::empty();
    let ring = session.ring();
    for (index, owner) in drain.names().renamed().chain(long_waits(drain)) {
        let slot = ring.slot(index).filter(|_| written.insert(owner.ring_id.0));
        if let Some(slot) = slot {
            block(session, (index, &slot, &owner), &nothing, tick, &mut out);
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
            ring_wait_ns: 0,
        };
        fits(write::open_spans(&mut out, session.uuid(), &nothing, &[]));
    }
    out
}

/// Writes the stacks on which spans are open. Returns their rings, and whether a thread has begun a span.
fn open_stacks(drain: &SessionDrain, tick: u64, out: &mut Vec<u8>) -> (BTreeSet<u64>, bool) {
    let session = drain.session();
    let ring = session.ring();
    let slots = (0..ring.slots_used()).filter_map(|index| Some((index, ring.slot(index)?)));
    let (mut with_open, mut is_used) = (BTreeSet::new(), false);
    for (index, slot) in slots {
        let Some(stack) = ring.span_stack(slot) else {
            continue;
        };
        is_used |= StackCopy::is_used(stack);
        let Some((owner, copy)) = copy_of(&slot, || StackCopy::of(stack)) else {
            continue;
        };
        if !copy.frames().is_empty() || copy.over > 0 {
            let owner = Owner {
                thread_name: drain.names().of(&owner),
                ..owner
            };
            block(session, (index, &slot, &owner), &copy, tick, out);
            with_open.insert(owner.ring_id.0);
        }
    }
    (with_open, is_used)
}

/// The rings that an owner waited long for, with the present or last one.
fn long_waits(drain: &SessionDrain) -> impl Iterator<Item = (u32, Owner)> {
    let ring = drain.session().ring();
    let slots = (0..ring.slots_used()).filter_map(|index| Some((index, ring.slot(index)?)));
    let long = slots.filter(|(_, slot)| slot.ring_wait_ns() >= RING_WAIT_NS);
    long.filter_map(|(index, slot)| {
        let owner = slot.owner()?;
        let thread_name = drain.names().of(&owner);
        Some((
            index,
            Owner {
                thread_name,
                ..owner
            },
        ))
    })
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
    (index, slot, owner): (u32, &SlotView<'_>, &Owner),
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
        ring_wait_ns: slot.ring_wait_ns(),
    };
    fits(write::open_spans(out, session.uuid(), &header, &frames));
}
