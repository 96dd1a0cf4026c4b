//! Spans while a filter by spans is in force: which of them meet a condition, and what is recorded inside them. Nothing
//! here is called without one.
//!
//! A watched span's cell says nothing to the subscriber and the layer, which look at cells of recorded spans only, and
//! come here for the others. A span may meet a condition by values that come late: it is recorded from then on.

use core::fmt;

use ringmark_format::schema::NO_SPAN;
use ringmark_format::span_condition::SpanValue;
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Record};

use super::ids::{self, SpanCell};
use super::site::{Site, What};
use super::thread::{self, Source};
use super::{sites, spans};
use crate::description::Now;
use crate::event::span_records;
use crate::event::text::Text;
use crate::ring::SpanPlace;
use crate::session;
use crate::session::span_gate::{self, Matching};

/// What the cell of a watched span has besides the bits of the conditions that are met inside it: that it is
/// watched, and that it is recorded.
const WATCHED: u32 = 1 << 31;
const RECORDED: u32 = 1 << 30;
const _: () = assert!(span_gate::CONDITIONS_MAX <= 30, "the bits are below these");

const fn bits(watch: u32) -> u32 {
    watch & !(WATCHED | RECORDED)
}

/// What a new span will be: what its cell has. `None`: nothing about it matters. `stated`: see [`spans::stated_parent`].
pub(super) fn judge(site: &Site, stated: u64, attributes: &Attributes<'_>) -> Option<u32> {
    let inherited = match stated {
        0 => span_gate::inside(),
        NO_SPAN => 0,
        parent => bits_of(parent),
    };
    let mut values = Values::of(site);
    attributes.record(&mut values);
    let (met, possible) = values.matching.met();
    let bits = inherited | met;
    if site.is_permitted_in(bits) {
        return Some(WATCHED | RECORDED | bits);
    }
    (bits | possible != 0).then_some(WATCHED | bits)
}

/// A span was made, of which this was judged.
pub(super) fn new(
    source: Source,
    site: &'static Site,
    (id, cell): (u64, &SpanCell),
    (watch, stated): (u32, u64),
    attributes: &Attributes<'_>,
) {
    cell.set_watch(watch);
    if watch & RECORDED != 0 {
        let stated = match stated {
            0 => parent_of_new(source),
            stated => stated,
        };
        spans::new(source, site, id, stated, attributes);
    }
}

/// The innermost recorded span that this thread is in.
fn parent_of_new(source: Source) -> u64 {
    let innermost = match thread::inside(source) {
        thread::Inside::Of(id) => id,
        thread::Inside::Last => span_records::current(),
    };
    if is_recorded(innermost) {
        return innermost;
    }
    let found = thread::innermost(|id| is_recorded(id).then_some(()));
    found.map_or(NO_SPAN, |(id, ())| id)
}

impl SpanCell {
    /// Whether it is that of a recorded span, watched or not.
    pub(super) fn is_recorded(&self) -> bool {
        self.site().is_some() || self.watch() & RECORDED != 0
    }
}

/// This thread enters a span that is not simply recorded.
#[cold]
pub(super) fn enter(source: Source, id: u64, cell: &SpanCell) {
    let watch = cell.watch();
    if watch == 0 {
        return;
    }
    span_gate::enter(bits(watch));
    match site_of(id).filter(|_| watch & RECORDED != 0) {
        Some(site) => spans::enter(source, site, id, session::now()),
        None => thread::push(source, id, SpanPlace::NONE),
    }
}

/// It leaves one.
#[cold]
pub(super) fn exit(id: u64, cell: &SpanCell) {
    let watch = cell.watch();
    if watch == 0 {
        return;
    }
    if watch & RECORDED != 0 {
        spans::exit(id);
    } else {
        thread::pop(id);
    }
    span_gate::leave(bits(watch));
}

/// Late values of one.
#[cold]
pub(super) fn record(id: u64, cell: &SpanCell, late: &Record<'_>) {
    let watch = cell.watch();
    let Some(site) = site_of(id).filter(|_| watch != 0) else {
        return;
    };
    let mut values = Values::of(site);
    late.record(&mut values);
    let (met, _) = values.matching.met();
    let now = watch | met;
    if watch & RECORDED != 0 {
        span_gate::as_if_inside(bits(now), || spans::record(site, id, late));
    }
    if met & !watch != 0 {
        meet(id, cell, (watch, now), late);
    }
}

/// Values that came late meet a condition: the span is recorded from now on, and this thread may be in it.
fn meet(id: u64, cell: &SpanCell, (before, now): (u32, u32), late: &Record<'_>) {
    let is_permitted = |site: &&Site| site.is_permitted_in(bits(now));
    let new = site_of(id)
        .filter(is_permitted)
        .filter(|_| before & RECORDED == 0);
    let is_new = new.is_some();
    cell.set_watch(now | if is_new { RECORDED } else { 0 });
    if let Some(site) = new {
        let ticks = session::now();
        site.record(What::SpanNew, Now::At(ticks), [id, NO_SPAN], |visitor| {
            late.record(visitor);
        });
    }
    let is_inside = thread::innermost(|inner| (inner == id).then_some(())).is_some();
    if is_inside {
        span_gate::enter(bits(now & !before));
        if is_new {
            span_records::enter_at(session::now(), id);
        }
    }
}

/// One handle less of a span that is not simply recorded. `true`: it was the last one.
#[cold]
pub(super) fn close(id: u64, cell: &SpanCell) -> bool {
    let is_recorded = cell.watch() & RECORDED != 0;
    let last = cell.remove_watched_handle();
    if last && is_recorded {
        span_records::close(id);
    }
    last
}

/// The bits of the spans that an event of a watched site is in; `None`: it is not wanted there. `stated`: see
/// [`spans::stated_parent`].
#[cold]
pub(super) fn inside(site: &Site, stated: u64) -> Option<u32> {
    let inside = match stated {
        0 => span_gate::inside(),
        stated => bits_of(stated),
    };
    site.is_permitted_in(inside).then_some(inside)
}

fn site_of(id: u64) -> Option<&'static Site> {
    ids::metadata(id).and_then(sites::site_of)
}

/// The bits of a span.
fn bits_of(id: u64) -> u32 {
    ids::cell(id).map_or(0, |cell| bits(cell.watch()))
}

/// Whether a span is recorded: one of ours, watched or not, or a native one.
pub(super) fn is_recorded(id: u64) -> bool {
    ids::cell(id).map_or(id % 2 == 1, SpanCell::is_recorded)
}

/// Compares the values of a span with the conditions of the filter.
struct Values {
    matching: Matching,
}

impl Values {
    fn of(site: &Site) -> Self {
        Self {
            matching: Matching::of_span(site.facts.name, site.fields().iter().copied()),
        }
    }

    fn see(&mut self, field: &Field, value: SpanValue<'_>) {
        self.matching.see(field.name(), value);
    }
}

impl Visit for Values {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.see(field, SpanValue::U64(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.see(field, SpanValue::I64(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.see(field, SpanValue::F64(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.see(field, SpanValue::Bool(value));
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.see(field, SpanValue::U128(value));
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.see(field, SpanValue::I128(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.see(field, SpanValue::Text(value.as_bytes()));
    }

    fn record_bytes(&mut self, field: &Field, value: &[u8]) {
        self.see(field, SpanValue::Text(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if self.matching.asks_for(field.name()) {
            let text = Text::debug(value);
            self.see(field, SpanValue::Text(text.as_bytes()));
        }
    }
}
