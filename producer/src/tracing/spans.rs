//! The records of a span's life, the same for the subscriber and for the layer. A span that was on when it
//! was made is recorded until it ends, whatever is switched meanwhile; one that was off never is.

use ringmark_format::schema::NO_SPAN;
use tracing_core::span::{Attributes, Id, Record};

use super::site::{Site, What};
use super::thread::{self, Inside, Source};
use crate::description::Now;
use crate::event::{span, span_records};
use crate::ring::SpanPlace;
use crate::session;

/// The parent that the program names: 0 if it names none, [`NO_SPAN`] if it says that there is none. `own_id`
/// makes the recorded id of a span out of `tracing`'s.
#[inline(always)]
pub(super) fn stated_parent(
    is_contextual: bool,
    parent: Option<&Id>,
    own_id: impl FnOnce(&Id) -> Option<u64>,
) -> u64 {
    match is_contextual {
        true => 0,
        false => parent.and_then(own_id).unwrap_or(NO_SPAN),
    }
}

/// A span was made. Its parent: the stated one, or what this thread has entered in `source`. Returns when.
#[inline]
pub(super) fn new(
    source: Source,
    site: &'static Site,
    id: u64,
    stated: u64,
    attributes: &Attributes<'_>,
) -> u64 {
    let parent = match (stated, thread::inside(source)) {
        (0, Inside::Last) => span_records::current(),
        (0, Inside::Of(id)) => id,
        (stated, _) => stated,
    };
    let ticks = session::now();
    site.record(What::SpanNew, Now::At(ticks), [id, parent], |visitor| {
        attributes.record(visitor);
    });
    ticks
}

/// Late values of a span.
pub(super) fn record(site: &'static Site, id: u64, values: &Record<'_>) {
    site.record(What::SpanRecord, Now::Clock, [id], |visitor| {
        values.record(visitor);
    });
}

/// This thread enters a span at `ticks`. It stands among its open spans until it is left: under the
/// type of `site`, with its id.
#[inline]
pub(super) fn enter(source: Source, site: &'static Site, id: u64, ticks: u64) {
    span_records::enter_at(ticks, id);
    let place = match site.span_type() {
        0 => SpanPlace::NONE,
        type_id => span::push_entered(type_id, ticks, id),
    };
    thread::push(source, id, place);
}

/// This thread leaves a span; returns when.
#[inline]
pub(super) fn exit(id: u64) -> u64 {
    let place = thread::pop(id);
    let ticks = session::now();
    span_records::exit_at(ticks, id);
    span::pop(place);
    ticks
}
