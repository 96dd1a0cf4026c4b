//! The records of a span's life, the same for the subscriber and for the layer.

use tracing_core::span::{Attributes, Record};

use super::site::{Site, What};
use super::thread;
use crate::event::Now;
use crate::event::span_records;
use crate::session;

/// A span was made. Its parent: `explicit`, or what this thread has entered.
#[inline]
pub(super) fn new(
    site: &'static Site,
    id: u64,
    explicit: Option<u64>,
    attributes: &Attributes<'_>,
) {
    let parent = explicit.unwrap_or_else(span_records::current);
    let ticks = session::now();
    site.record(What::SpanNew, Now::At(ticks), [id, parent], |visitor| {
        attributes.record(visitor);
    });
    thread::set_last(id, ticks);
}

/// Late values of a span.
pub(super) fn record(site: &'static Site, id: u64, values: &Record<'_>) {
    site.record(What::SpanRecord, Now::Clock, [id], |visitor| {
        values.record(visitor);
    });
}

/// This thread enters a span.
#[inline]
pub(super) fn enter(id: u64) {
    span_records::enter_at(thread::ticks_after(id), id);
    thread::push(id);
}

/// This thread leaves a span.
#[inline]
pub(super) fn exit(id: u64) {
    thread::pop(id);
    let ticks = session::now();
    span_records::exit_at(ticks, id);
    thread::set_last(id, ticks);
}

/// A span ends for ever.
#[inline]
pub(super) fn close(id: u64) {
    span_records::close_at(thread::ticks_after(id), id);
}
