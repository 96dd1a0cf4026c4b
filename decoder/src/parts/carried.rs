//! What a later part needs of a session: the records of what is open, in their pages, and what its host
//! and its collector said about it.

use std::collections::BTreeMap;

use ringmark_format::block::{PageState, codec, kind};
use ringmark_format::codec::{CodecError, write};
use ringmark_format::counters::CountersHeader;
use zerocopy::{FromZeros, IntoBytes};

use super::CoveredSession;
use super::together::Waiting;
use crate::blocks::page::Page;
use crate::blocks::walk::{Record, Shown};
use crate::cut::blocks::session_content;
use crate::cut::pages::blank;
use crate::trace_file::loss;
use crate::trace_file::session::Session;
use crate::trace_file::window::{self, Inside};

/// Pages that are packed together, at most.
const PAGES_TOGETHER: usize = 16;
/// Measurements of a host's clocks that are kept.
const CLOCKS: usize = 16;

/// The open records of a page, by place of the slot in its session and of the page in the slot.
pub(super) struct OpenRecords {
    pub(super) slot: usize,
    pub(super) page: usize,
    /// Numbers of the records in the page, ascending.
    pub(super) indices: Vec<u64>,
}

/// The pages of a session that hold records of what is open.
pub(super) fn open_records(session: &Session) -> Vec<OpenRecords> {
    let mut types = session.schema.types().iter();
    let may_open = types.any(|ty| {
        let is_part = ty.shape.is_some_and(|shape| shape.is_part_of_span());
        ty.occurs && (is_part || ty.function.is_some())
    });
    if !may_open {
        return Vec::new();
    }
    let all = |_: &Page| u64::MAX;
    let places = window::reaching(&session.slots, &session.schema, all, Inside::Ends);
    let mut pages: BTreeMap<(usize, usize), Vec<u64>> = BTreeMap::new();
    for (slot, page, index) in places {
        pages.entry((slot, page)).or_default().push(index);
    }
    let pages = pages.into_iter().map(|((slot, page), mut indices)| {
        indices.sort_unstable();
        OpenRecords {
            slot,
            page,
            indices,
        }
    });
    pages.collect()
}

/// Notes what is open in a session that goes on, and what its host said about it.
pub(super) fn carry(session: &Session, waiting: &[Waiting], of: &mut CoveredSession) {
    let mut open = open_records(session);
    for Waiting { slot, page, .. } in waiting {
        let place = open.binary_search_by_key(&(*slot, *page), |open| (open.slot, open.page));
        if let Err(place) = place {
            open.insert(
                place,
                OpenRecords {
                    slot: *slot,
                    page: *page,
                    indices: Vec::new(),
                },
            );
        }
    }
    note_losses(session, &open, of);
    let mut ticks = Vec::new();
    let mut out = begin(session);
    for some in open.chunks(PAGES_TOGETHER) {
        let mut raw = Vec::new();
        for open in some {
            let page = &session.slots[open.slot].pages[open.page];
            ticks.extend(page.summary.ticks);
            let later = waiting
                .iter()
                .find(|w| (w.slot, w.page) == (open.slot, open.page));
            ticks.extend(later.map(|later| later.ticks));
            put_page(session, page, (&open.indices, later), &mut raw);
        }
        if write::container(&mut out, session.uuid, codec::LZ4, &raw).is_err() {
            out.extend_from_slice(&raw);
        }
    }
    let next = |slot| of.slots.get(&slot).map_or(0, |slot| slot.next_page);
    put_controls(session, &ticks, next, &mut out);
    of.blocks = out;
}

/// The session's beginning, if no schema came yet: what a store keeps of the schema begins with it, too.
fn begin(session: &Session) -> Vec<u8> {
    let is_alone = session.schema_stream.is_empty();
    let mut out = Vec::new();
    if let Some(content) = is_alone.then(|| session_content(session)).flatten() {
        fits(write::session(&mut out, session.uuid, &content));
    }
    out
}

/// After which of the pages events were lost, before the next of them.
fn note_losses(session: &Session, open: &[OpenRecords], of: &mut CoveredSession) {
    for (place, slot) in session.slots.iter().enumerate() {
        let losses = loss::of_slot(session, slot).items;
        let pages: Vec<_> = open.iter().filter(|open| open.slot == place).collect();
        let mut after = Vec::new();
        for (at, open) in pages.iter().enumerate() {
            let next = pages.get(at + 1).map_or(usize::MAX, |next| next.page);
            if losses
                .iter()
                .any(|(before, _)| *before > open.page && *before <= next)
            {
                after.push(slot.pages[open.page].number.0);
            }
        }
        if let Some(known) = of.slots.get_mut(&slot.index.0) {
            known.losses_after = after;
        }
    }
}

/// Appends a page in which only these records are left, and those that wait. It ends after the last of them.
fn put_page(
    session: &Session,
    page: &Page,
    (indices, later): (&[u64], Option<&Waiting>),
    out: &mut Vec<u8>,
) {
    let mut bytes = later.map_or_else(|| page.load(), |later| later.bytes.clone());
    let sound = page.sound(&bytes).to_vec();
    let (mut walk, mut record) = (page.walk(), Record::NONE);
    let (mut at, mut index, mut end) = (walk.at(), 0, walk.at());
    while walk.step(&sound, Shown::default(), &mut record).is_some() {
        let waits = |later: &Waiting| record.index == index && record.tick > later.up_to;
        match indices.binary_search(&index).is_ok() || later.is_some_and(waits) {
            true => end = walk.at(),
            false => blank(&mut bytes[at..walk.at()]),
        }
        at = walk.at();
        index += 1;
    }
    bytes.truncate(end);
    let extent = bytes.len() as u32;
    let (ring, number) = (page.ring, page.number);
    let state = PageState::Open;
    let header = write::page_header(session.uuid, ring, number, extent, page.page_bytes, state);
    fits(write::block(out, header, &bytes));
}

/// Appends what host and collector said about the session. `ticks`: those that times depend on.
fn put_controls(
    session: &Session,
    ticks: &[(u64, u64)],
    next: impl Fn(u32) -> u64,
    out: &mut Vec<u8>,
) {
    let uuid = session.uuid;
    put_counters(session, ticks, out);
    if let Some(content) = session.progress.content(next) {
        fits(write::block(
            out,
            write::header(kind::PROGRESS, uuid),
            &content,
        ));
    }
    if let Some(ending) = session.ending {
        fits(write::ending(out, uuid, ending, session.dead_tick));
    }
    // The sessions of a process share them.
    if session.clock_of == session.number {
        let measured = &session.clock.measurements;
        let first = measured.len().saturating_sub(CLOCKS);
        for measured in &measured[first..] {
            fits(write::host_clock(out, uuid, measured));
        }
    }
}

/// Appends the latest counters, once for each sample of the clock that is needed.
fn put_counters(session: &Session, ticks: &[(u64, u64)], out: &mut Vec<u8>) {
    let (mut header, mut slots) = (CountersHeader::new_zeroed(), Vec::new());
    if let Some(counters) = &session.counters {
        header = counters.header;
        for slot in counters.slots.values() {
            slots.extend_from_slice(slot.as_bytes());
        }
        header.slots = counters.slots.len() as u32;
    }
    let mut put = |header: &CountersHeader| {
        let content = [header.as_bytes(), &slots].concat();
        fits(write::counters(out, session.uuid, &content));
    };
    if session.counters.is_some() {
        put(&header);
    }
    let latest = (session.last_tick(), u64::MAX);
    let needed = [ticks, &[latest]].concat();
    for sample in session.clock.samples_for(&needed) {
        if sample.tick != header.sample_tick {
            put(&CountersHeader {
                sample_tick: sample.tick,
                sample_mono_ns: sample.mono_ns,
                ..header
            });
        }
    }
}

/// No block here is larger than one that was read.
fn fits(written: Result<(), CodecError>) {
    debug_assert!(written.is_ok(), "{written:?}");
}
