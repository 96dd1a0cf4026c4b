//! The blocks of a session in a piece.

use std::collections::BTreeMap;
use std::ops::Range;

use ringmark_format::attribute::{self, tag};
use ringmark_format::block::{CONTENT_BYTES_MAX, codec};
use ringmark_format::clock::Sample;
use ringmark_format::codec::write;
use ringmark_format::counters::{CAUSES, CountersHeader, FINAL, SlotCounters};
use ringmark_format::open_span::{Frame, OpenSpans};
use ringmark_format::samples::{self, HAS_KERNEL, Samples};
use ringmark_format::schema::EntryHeader;
use ringmark_format::seen_waits::SeenWait;
use ringmark_format::switches::SLACK_NS;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::pages::CutPage;
use super::session::CutSession;
use crate::trace_file::open_spans::OpenStack;
use crate::trace_file::session::Session;

/// Pages that are packed together, at most.
pub(super) const PAGES_TOGETHER: usize = 16;

/// What stands before the pages: the session, its window, its schema, and what a collector measured of
/// its host's clocks.
pub(super) fn begin(cut: &CutSession<'_>) -> Vec<u8> {
    let (session, uuid) = (cut.session, cut.session.uuid);
    let mut out = Vec::new();
    if let Some(content) = session_content(session) {
        fits(write::session(&mut out, uuid, &content));
    }
    if cut.bounds.from_mono_ns > 0 {
        fits(write::window(&mut out, uuid, cut.bounds.from_mono_ns));
    }
    let (stream, mut offset) = (session.schema_stream.bytes(), 0);
    while let Some(rest) = stream.get(offset..).filter(|r| !r.is_empty()) {
        let entries = whole_entries(rest);
        fits(write::schema(&mut out, uuid, offset as u64, entries));
        offset += entries.len();
    }
    // The sessions of a process share them.
    if session.clock_of == session.number {
        for measured in &session.clock.measurements {
            fits(write::host_clock(&mut out, uuid, measured));
        }
    }
    out
}

/// The switches of the threads of a session's process, and what these were seen waiting for, of the time that is in the piece, with what reaches into it.
pub(super) fn switches(cut: &CutSession<'_>, all: &[CutSession<'_>]) -> Vec<u8> {
    let session = cut.session;
    let mut out = Vec::new();
    let of_process = all
        .iter()
        .filter(|one| one.session.process == session.process);
    let pages = of_process.flat_map(|one| one.pages.iter().map(|page| (&one.session.clock, page)));
    let times = pages.flat_map(|(clock, page)| {
        let mono = |tick| clock.mono_zero_ns.saturating_add(clock.t_ns(tick));
        let ticks = page.ticks.iter();
        ticks.map(move |(low, high)| (mono(*low), mono(*high)))
    });
    let whole = times.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
    let Some((from, to)) = whole else { return out };
    let part = from.saturating_sub(2 * SLACK_NS)..to.saturating_add(2 * SLACK_NS);
    for (head, switches) in session.switched.piece(part.clone()) {
        fits(write::switches(&mut out, session.uuid, &head, &switches));
    }
    let waits = session.switched.waits_piece(&part);
    let waits = waits
        .into_iter()
        .map(|(tid, from_mono_ns, to_mono_ns, text)| {
            let wait = SeenWait {
                from_mono_ns,
                to_mono_ns,
                tid,
                text: 0,
                text_bytes: 0,
                reserved: 0,
            };
            (wait, text)
        });
    fits(write::seen_waits(&mut out, session.uuid, waits));
    stack_samples(cut, &part, &mut out);
    out
}

/// Where the threads of a session's process ran in a part of the time. How many samples had no room belongs to its end.
fn stack_samples(cut: &CutSession<'_>, part: &Range<u64>, out: &mut Vec<u8>) {
    let all = &cut.session.switched.samples;
    let mut by_period: BTreeMap<u64, Vec<(samples::Sample, &[u8])>> = BTreeMap::new();
    for found in all.piece(part) {
        let sample = samples::Sample {
            mono_ns: found.mono_ns,
            tid: found.tid,
            text: 0,
            text_bytes: 0,
            reserved: 0,
        };
        let same = by_period.entry(found.ns).or_default();
        same.push((sample, found.stack.0));
    }
    let mut lost = if cut.bounds.has_end { all.lost } else { 0 };
    for (period_ns, samples) in by_period {
        let head = Samples {
            period_ns,
            lost: std::mem::take(&mut lost),
            flags: if all.has_kernel { HAS_KERNEL } else { 0 },
            ..Samples::new_zeroed()
        };
        fits(write::samples(out, cut.session.uuid, &head, samples));
    }
}

/// The session's header with its attributes, under the name of the host that a store holds it by.
pub(crate) fn session_content(session: &Session) -> Option<Vec<u8>> {
    let mut header = session.header?;
    let mut attributes = Vec::new();
    let stored = session.stored_host.as_deref();
    let found = session.attributes.iter();
    for (tag, value) in found.filter(|(tag, _)| stored.is_none() || *tag != tag::HOST) {
        attribute::push(&mut attributes, *tag, value);
    }
    if let Some(host) = stored {
        attribute::push(&mut attributes, tag::HOST, host);
    }
    header.attributes_bytes = attributes.len() as u32;
    Some([header.as_bytes(), &attributes].concat())
}

/// As many whole entries of a schema stream as a block holds, at least one.
fn whole_entries(stream: &[u8]) -> &[u8] {
    let mut end = 0;
    while let Some(rest) = stream.get(end..).filter(|rest| !rest.is_empty()) {
        let entry = EntryHeader::read_from_prefix(rest).map_or(rest.len(), |(entry, _)| {
            (entry.bytes as usize).clamp(EntryHeader::BYTES, rest.len())
        });
        if end > 0 && end + entry > CONTENT_BYTES_MAX as usize {
            break;
        }
        end += entry;
    }
    let end = end.min(CONTENT_BYTES_MAX as usize);
    &stream[..end.min(stream.len())]
}

/// Some pages, packed, each under its window. `from_mono_ns` is the window that holds, and is changed
/// with it.
pub(super) fn pages(
    cut: &CutSession<'_>,
    pages: &[CutPage<'_>],
    from_mono_ns: &mut u64,
) -> Vec<u8> {
    let uuid = cut.session.uuid;
    let (mut raw, mut out) = (Vec::new(), Vec::new());
    for CutPage {
        page, bytes, state, ..
    } in pages
    {
        let from = cut.bounds.from_mono_ns.max(page.from_mono_ns);
        if from != *from_mono_ns {
            fits(write::window(&mut raw, uuid, from));
            *from_mono_ns = from;
        }
        let extent = bytes.len() as u32;
        let (ring, number) = (page.ring, page.number);
        let header = write::page_header(uuid, ring, number, extent, page.page_bytes, *state);
        fits(write::block(&mut raw, header, bytes));
    }
    if write::container(&mut out, uuid, codec::LZ4, &raw).is_err() {
        return raw;
    }
    out
}

/// What stands after the pages: the end of the session, if it is in the piece, and counters.
pub(super) fn end(cut: &CutSession<'_>) -> Vec<u8> {
    let (session, uuid) = (cut.session, cut.session.uuid);
    let mut out = Vec::new();
    for stack in &session.open_stacks {
        let (header, frames) = open_stack(stack, cut.bounds.has_end);
        fits(write::open_spans(&mut out, uuid, &header, frames));
    }
    if let Some(ending) = session.ending.filter(|_| cut.bounds.has_end) {
        fits(write::ending(&mut out, uuid, ending, session.dead_tick));
    }
    counters(cut, &mut out);
    out
}

/// A stack as the piece has it: what its thread is called, and what was open if the end is in the piece.
fn open_stack(stack: &OpenStack, has_end: bool) -> (OpenSpans, &[Frame]) {
    if has_end {
        return (stack.header, &stack.frames);
    }
    let header = OpenSpans {
        over: 0,
        frames: 0,
        flags: 0,
        ..stack.header
    };
    (header, &[])
}

/// The counters as they were at the end of the piece, once for each sample of the clock that no page
/// here has.
fn counters(cut: &CutSession<'_>, out: &mut Vec<u8>) {
    let mut header = match &cut.session.counters {
        Some(counters) => counters.header,
        None => CountersHeader::new_zeroed(),
    };
    let mut samples = samples(cut);
    let latest = samples
        .last()
        .copied()
        .filter(|_| cut.session.clock.is_sampled);
    samples.retain(|sample| !is_here(cut, sample));
    if !cut.bounds.has_end {
        header.flags &= !FINAL;
        header.lost = [0; CAUSES];
        header.sample_real_ns = 0;
        let latest = latest.or_else(|| samples.pop());
        (header.sample_tick, header.sample_mono_ns) =
            latest.map_or((0, 0), |s| (s.tick, s.mono_ns));
    }
    if cut.session.counters.is_none() && header.sample_mono_ns == 0 {
        return;
    }
    let slots = slots(cut);
    header.slots = slots.len() as u32;
    let slots = slots.as_bytes();
    for Sample { tick, mono_ns } in samples {
        let mut other = header;
        (other.sample_tick, other.sample_mono_ns) = (tick, mono_ns);
        (other.sample_real_ns, other.flags) = (0, header.flags & !FINAL);
        let content = [other.as_bytes(), slots].concat();
        fits(write::counters(out, cut.session.uuid, &content));
    }
    let content = [header.as_bytes(), slots].concat();
    fits(write::counters(out, cut.session.uuid, &content));
}

/// Whether the session's header or a page in the piece has this sample.
fn is_here(cut: &CutSession<'_>, sample: &Sample) -> bool {
    let header = cut.session.header.iter();
    let mut zero = header.map(|header| (header.tick_zero, header.mono_zero_ns));
    let pages = cut.pages.iter().map(|cut| &cut.page.header);
    let mut pages = pages.map(|header| (header.tick_base, header.mono_base_ns));
    let wanted = (sample.tick, sample.mono_ns);
    zero.any(|found| found == wanted) || pages.any(|found| found == wanted)
}

/// The samples of the clock that times in the piece depend on, by time. None, if that would say that a
/// collector sampled this clock, and it sampled another.
fn samples(cut: &CutSession<'_>) -> Vec<Sample> {
    let CutSession {
        session, bounds, ..
    } = cut;
    let clock = &session.clock;
    if !clock.is_sampled && !clock.measurements.is_empty() {
        return Vec::new();
    }
    let mut ticks: Vec<_> = cut
        .pages
        .iter()
        .flat_map(|page| &page.ticks)
        .copied()
        .collect();
    let stacks = session.open_stacks.iter().filter(|_| bounds.has_end);
    let frames = stacks.flat_map(|stack| &stack.frames);
    let counted = session.counters.iter().filter(|_| bounds.has_end);
    let single = session.header.iter().map(|header| header.tick_zero);
    let single = single.chain(frames.map(|frame| frame.tick));
    let single = single.chain(counted.map(|counters| counters.header.sample_tick));
    ticks.extend(single.map(|tick| (tick, tick)));
    clock.samples_for(&ticks)
}

/// The counters of the slots in the piece.
fn slots(cut: &CutSession<'_>) -> Vec<SlotCounters> {
    let counted = cut
        .session
        .counters
        .iter()
        .flat_map(|all| all.slots.values());
    counted.filter_map(|slot| of_slot(cut, *slot)).collect()
}

/// The counters of one slot: as they are if its end is in the piece, else as its last page here has
/// them. `None`: nothing of the slot is here.
fn of_slot(cut: &CutSession<'_>, mut slot: SlotCounters) -> Option<SlotCounters> {
    let slots = &cut.session.slots;
    if slots.iter().all(|of| of.index.0 != slot.slot) {
        return cut.bounds.has_end.then_some(slot);
    }
    let pages = cut.pages.iter();
    let mut pages = pages.filter(|cut| cut.page.header.slot == slot.slot);
    let lost = pages.clone().map(|cut| cut.page.header.lost_before).max()?;
    let last = pages.next_back()?;
    if last.is_end {
        return Some(slot);
    }
    slot.events = slot.events.min(last.after);
    slot.produced = slot.produced.min(last.page.number.0.saturating_add(1));
    slot.consumed = slot.consumed.min(slot.produced);
    // In the order in which causes are given to the losses before pages.
    let mut left = lost;
    for count in &mut slot.lost {
        *count = (*count).min(left);
        left -= *count;
    }
    Some(slot)
}

/// What is written was read from blocks, so it fits blocks.
fn fits<E>(written: Result<(), E>) {
    debug_assert!(written.is_ok());
}
