//! The blocks of a session in a piece.

use ringmark_format::attribute::{self, tag};
use ringmark_format::block::{CONTENT_BYTES_MAX, PageState, codec};
use ringmark_format::codec::write;
use zerocopy::IntoBytes;

use super::pages::CutPage;
use crate::blocks::page::{HIDDEN_FROM, NO_LOSSES_FROM};
use crate::events::filter::Filter;
use crate::trace_file::session::Session;

/// From when to when events are shown, on the session's `CLOCK_MONOTONIC` in ns; `u64::MAX`: to the
/// session's end.
pub(super) type Bounds = (u64, u64);

/// Time of the session's last event since its start, in ns.
pub(super) fn last_t_ns(session: &Session) -> u64 {
    let pages = session.slots.iter().flat_map(|slot| &slot.pages);
    let last = pages
        .filter_map(|page| page.summary.ticks)
        .map(|ticks| ticks.1);
    last.max().map_or(0, |tick| session.clock.t_ns(tick))
}

/// What stands before the pages: the session under the name of its host, the window with the samples
/// of its clock that `times` need, the schema, and the measurements of the host's clock.
pub(super) fn begin(session: &Session, bounds: Bounds, times: &[(u64, u64)], out: &mut Vec<u8>) {
    let uuid = session.uuid;
    if let Some(mut header) = session.header {
        let mut attributes = Vec::new();
        for (tag, value) in session
            .attributes
            .iter()
            .filter(|(tag, _)| *tag != tag::HOST)
        {
            attribute::push(&mut attributes, *tag, value);
        }
        attribute::push(&mut attributes, tag::HOST, session.host());
        header.attributes_bytes = attributes.len() as u32;
        fits(write::session(
            out,
            uuid,
            &[header.as_bytes(), &attributes].concat(),
        ));
    }
    let samples = session.clock.samples_for(times);
    // More samples than a block holds are there for more pages than it is worth cutting out.
    let most = (CONTENT_BYTES_MAX as usize - 64) / 16;
    fits(write::piece(
        out,
        uuid,
        bounds,
        &samples[..samples.len().min(most)],
    ));
    let mut offset = 0;
    for piece in session.schema_stream.chunks(CONTENT_BYTES_MAX as usize) {
        fits(write::schema(out, uuid, offset, piece));
        offset += piece.len() as u64;
    }
    for measured in &session.measured {
        fits(write::host_clock(out, uuid, measured));
    }
}

/// One page, packed, under the window that says whether losses before it are told.
pub(super) fn page(session: &Session, bounds: Bounds, cut: &CutPage<'_>, out: &mut Vec<u8>) {
    let (bytes, sealed) = cut.bytes();
    let state = match sealed {
        true => PageState::Sealed,
        false => PageState::Open,
    };
    let from = match (cut.is_hidden, cut.hides_losses) {
        (true, _) => HIDDEN_FROM,
        (false, true) => NO_LOSSES_FROM,
        (false, false) => bounds.0,
    };
    let mut raw = Vec::new();
    fits(write::piece(&mut raw, session.uuid, (from, bounds.1), &[]));
    let page = cut.page;
    let header = write::page_header(
        session.uuid,
        page.ring,
        page.number,
        bytes.len() as u32,
        page.page_bytes,
        state,
    );
    fits(write::block(&mut raw, header, &bytes));
    if write::container(out, session.uuid, codec::LZ4, &raw).is_err() {
        out.extend_from_slice(&raw);
    }
}

/// What stands after the pages: how the session ended, its counters, and the spans that were open, if
/// the piece reaches its end.
pub(super) fn end(session: &Session, bounds: Bounds, filter: &Filter, out: &mut Vec<u8>) {
    let uuid = session.uuid;
    let stacks = session.open_stacks.iter().filter(|_| bounds.1 == u64::MAX);
    for stack in stacks.filter(|stack| filter.thread_passes(stack.header.tid)) {
        fits(write::open_spans(out, uuid, &stack.header, &stack.frames));
    }
    if let Some(ending) = session.ending {
        fits(write::ending(out, uuid, ending));
    }
    if let Some(counters) = &session.counters {
        let mut content = counters.header.as_bytes().to_vec();
        let slots = counters.slots.values();
        slots.for_each(|slot| content.extend_from_slice(slot.as_bytes()));
        fits(write::counters(out, uuid, &content));
    }
}

/// What is written was read from blocks, so it fits blocks.
fn fits<E>(written: Result<(), E>) {
    debug_assert!(written.is_ok());
}
