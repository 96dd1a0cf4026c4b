//! The records of a span's life, the same for the subscriber and for the layer.

use tracing_core::span::{Attributes, Record};

use super::site::{Site, What};
use super::thread;
use crate::description::Now;
use crate::event::span_records;
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

/// This thread enters a span at `ticks`.
#[inline]
pub(super) fn enter(id: u64, ticks: u64) {
    span_records::enter_at(ticks, id);
    thread::push(id);
}

/// This thread leaves a span; returns when.
#[inline]
pub(super) fn exit(id: u64) -> u64 {
    thread::pop(id);
    let ticks = session::now();
    span_records::exit_at(ticks, id);
    ticks
}
