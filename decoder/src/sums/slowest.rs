//! The slowest spans and calls of a trace.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::events::span::Span;

/// The slowest spans of those that were offered; of two that took as long, the one that ended first.
#[derive(Debug)]
pub struct Slowest<'d> {
    wanted: usize,
    offered: u64,
    found: BTreeMap<(Reverse<u64>, u64), Box<Span<'d>>>,
}

impl<'d> Slowest<'d> {
    /// The `wanted` slowest ones, so far none.
    pub(crate) fn new(wanted: usize) -> Self {
        Self {
            wanted,
            offered: 0,
            found: BTreeMap::new(),
        }
    }

    /// Whether a span that took this long is one of the slowest so far.
    pub(crate) fn wants(&self, took_ns: u64) -> bool {
        let last = self.found.last_key_value();
        let least = last.map_or(0, |((Reverse(took_ns), _), _)| *took_ns);
        self.found.len() < self.wanted || self.wanted > 0 && took_ns > least
    }

    /// Keeps a span that took this long, if it is one of the slowest.
    pub(crate) fn offer(&mut self, took_ns: u64, span: impl FnOnce() -> Span<'d>) {
        if !self.wants(took_ns) {
            return;
        }
        let key = (Reverse(took_ns), self.offered);
        self.offered += 1;
        self.found.insert(key, Box::new(span()));
        if self.found.len() > self.wanted {
            let _ = self.found.pop_last();
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The spans, the slowest first.
    pub fn spans(&self) -> impl Iterator<Item = &Span<'d>> {
        self.found.values().map(AsRef::as_ref)
    }
}
