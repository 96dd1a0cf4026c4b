//! The records of a span's life, the same for the subscriber and for the layer.

use tracing_core::span::{Attributes, Record};

use super::site::{Site, What};
use super::thread;
use crate::description::Now;
use crate::event::{span, span_records};
use crate::ring::SpanPlace;
use crate::session;

/// A span was made. Its parent: `explicit`, or what this thread has entered. Returns when.
#[inline]
pub(super) fn new(
    site: &'static Site,
    id: u64,
    explicit: Option<u64>,
    attributes: &Attributes<'_>,
) -> u64 {
    let parent = explicit.unwrap_or_else(span_records::current);
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
pub(super) fn enter(site: Option<&'static Site>, id: u64, ticks: u64) {
    span_records::enter_at(ticks, id);
    let place = match site.map_or(0, Site::span_type) {
        0 => SpanPlace::NONE,
        type_id => span::push_entered(type_id, ticks, id),
    };
    thread::push(id, place);
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

/// This thread leaves a span that is disabled, perhaps since it was entered: there is no record of
/// it.
pub(super) fn leave_disabled(id: u64) {
    if thread::is_in(id) {
        span::pop(thread::pop(id));
    }
}
