//! Which finished span an event lies in.
//!
//! A finished span is one record, written at its end. The events inside the span were written
//! before it, in the same ring. So each ring is walked from its end, with a stack of the spans that
//! are still open. A thread with rings in several sessions is walked likewise, in the order of
//! ticks.

use std::collections::HashMap;

use ringmark_format::RingId;
use ringmark_format::schema::Shape;

use crate::blocks::page::{Page, Record, Reservation};
use crate::trace_file::schema::{EventType, Schema};
use crate::trace_file::session::{Session, Slot};

/// Marks span ids that no program gave: they are made of slot and number, unique within a process
/// of up to 8 sessions of 4096 slots, and below 2^53.
const MADE: u64 = 1 << 52;
/// Bits of the number of a record in its slot. Three more say which session of its process it is of.
const SEQ_BITS: u32 = 37;

/// The id of a finished span: the value of its field with semantic SPAN_ID, or an id that is made
/// of the record's session, slot and number.
pub(crate) fn finished_id(ty: &EventType, payload: &[u8], page: &Page, index: u64) -> u64 {
    let given = ty
        .span_id
        .and_then(|f| ty.fields[f].number(payload))
        .filter(|id| *id != 0);
    given.unwrap_or_else(|| {
        let seq = page.header.first_event.wrapping_add(index);
        let member = u64::from(page.member & 7) << SEQ_BITS;
        MADE | u64::from(page.header.slot & 0xFFF) << 40 | member | (seq & ((1 << SEQ_BITS) - 1))
    })
}

/// The duration of a finished span in ticks, if the type has one.
#[inline]
pub(crate) fn duration_ticks(ty: &EventType, payload: &[u8]) -> Option<u64> {
    ty.fields[ty.duration?].number(payload)
}

struct OpenSpan {
    start: u64,
    id: u64,
}

/// Fills in [`Page::parents`] of all sessions: the id of the innermost finished span around each
/// record, 0 for none.
pub(crate) fn contain(sessions: &mut [Session]) {
    for session in sessions.iter_mut().filter(|s| s.schema.has(Shape::Span)) {
        let (slots, schema) = (&mut session.slots, &session.schema);
        slots.iter_mut().for_each(|slot| contain_slot(slot, schema));
    }
    for pages in shared_threads(sessions).values() {
        contain_thread(sessions, pages);
    }
}

/// Where a page is: session, slot, and place in the slot.
type PagePlace = (usize, usize, usize);

/// The pages of each thread that has rings in several sessions, one of which has finished spans.
fn shared_threads(sessions: &[Session]) -> HashMap<u32, Vec<PagePlace>> {
    let mut processes: HashMap<usize, (usize, bool)> = HashMap::new();
    for session in sessions {
        let (number, has_spans) = processes.entry(session.process).or_default();
        *number += 1;
        *has_spans |= session.schema.has(Shape::Span);
    }
    let mut threads: HashMap<u32, Vec<PagePlace>> = HashMap::new();
    for (number, session) in sessions.iter().enumerate() {
        if !matches!(processes.get(&session.process), Some((2.., true))) {
            continue;
        }
        for (slot, found) in session.slots.iter().enumerate() {
            for (place, page) in found.pages.iter().enumerate() {
                let pages = threads.entry(page.thread).or_default();
                pages.push((number, slot, place));
            }
        }
    }
    let several = |pages: &Vec<PagePlace>| pages.iter().any(|page| page.0 != pages[0].0);
    threads.retain(|_, pages| several(pages));
    threads
}

/// As [`contain_slot`], over the rings of one thread in several sessions. Records of functions are
/// left out.
fn contain_thread(sessions: &mut [Session], places: &[PagePlace]) {
    let mut found = Vec::new();
    let mut open = Vec::new();
    {
        let mut records = Vec::new();
        for at in places {
            let session = &sessions[at.0];
            let page = &session.slots[at.1].pages[at.2];
            let mut walk = page.walk();
            while let Some(step) = walk.step() {
                if let Reservation::Event(record) = step
                    && let ty = session.schema.find(record.type_id)
                    && ty.is_none_or(|ty| ty.function.is_none())
                {
                    records.push((at, page, &session.schema, record));
                }
            }
        }
        // Equal ticks of several sessions stay in the order of the sessions.
        records.sort_by_key(|(.., record)| record.tick);
        for (at, page, schema, record) in records.iter().rev() {
            let parent = parent_of(record, page, schema, &mut open);
            found.push((**at, record.index as usize, parent));
        }
    }
    for ((session, slot, place), index, parent) in found {
        let page = &mut sessions[session].slots[slot].pages[place];
        let reservations = page.summary.reservations() as usize;
        let size = reservations.max(page.parents.len());
        if parent != 0 {
            page.parents.resize(size, 0);
        }
        if let Some(kept) = page.parents.get_mut(index) {
            *kept = parent;
        }
    }
}

/// Fills in [`Page::parents`] of a slot. A ring ends where its claim ends.
fn contain_slot(slot: &mut Slot, schema: &Schema) {
    let mut open: Vec<OpenSpan> = Vec::new();
    let mut ring: Option<RingId> = None;
    for page in slot.pages.iter_mut().rev() {
        if ring.replace(page.ring) != Some(page.ring) {
            open.clear();
        }
        page.parents = parents_of(page, schema, &mut open);
    }
}

fn parents_of(page: &Page, schema: &Schema, open: &mut Vec<OpenSpan>) -> Vec<u64> {
    let mut walk = page.walk();
    let mut records = Vec::new();
    while let Some(step) = walk.step() {
        if let Reservation::Event(record) = step {
            records.push(record);
        }
    }
    let reservations = page.summary.reservations() as usize;
    let mut parents = Vec::new();
    for record in records.iter().rev() {
        let parent = parent_of(record, page, schema, open);
        if parent != 0 {
            parents.resize(reservations.max(parents.len()), 0);
            if let Some(place) = parents.get_mut(record.index as usize) {
                *place = parent;
            }
        }
    }
    parents
}

/// The innermost open span around the record; 0: there is none. A finished span is put on the
/// stack after that, so that it is not its own parent.
fn parent_of(record: &Record<'_>, page: &Page, schema: &Schema, open: &mut Vec<OpenSpan>) -> u64 {
    let finished = schema
        .find(record.type_id)
        .filter(|ty| ty.shape == Some(Shape::Span));
    let span = finished.and_then(|ty| Some((ty, duration_ticks(ty, record.payload)?)));
    let start = record.tick.saturating_sub(span.map_or(0, |(_, d)| d));
    // A span that began after this record ended before what is still to be met.
    drop_later(open, record.tick);
    if span.is_some() {
        drop_later(open, start);
    }
    let parent = open.last().map_or(0, |o| o.id);
    if let Some((ty, _)) = span {
        let id = finished_id(ty, record.payload, page, record.index);
        open.push(OpenSpan { start, id });
    }
    parent
}

/// Drops the innermost spans that began after `start`: they overlap without nesting.
fn drop_later(open: &mut Vec<OpenSpan>, start: u64) {
    while open.last().is_some_and(|o| o.start > start) {
        open.pop();
    }
}
