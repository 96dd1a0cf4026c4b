//! A counter in front of a subscriber: what `tracing` hands over, by target.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber, level_filters::LevelFilter};
use tracing_core::span::{Attributes, Current, Id, Record};

/// Events and spans of one target.
#[derive(Debug, Default)]
struct Count {
    events: AtomicU64,
    spans: AtomicU64,
}

/// Events and spans by target, spans that ended, and all other calls that make a record.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    targets: Mutex<BTreeMap<String, Arc<Count>>>,
    closed: AtomicU64,
    /// Spans entered and left, values recorded late, spans that follow others.
    others: AtomicU64,
}

impl Counts {
    fn of(&self, metadata: &Metadata<'_>) -> Arc<Count> {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = targets.get(metadata.target()) {
            return count.clone();
        }
        targets
            .entry(metadata.target().to_owned())
            .or_default()
            .clone()
    }

    pub(crate) fn to_json(&self) -> Value {
        let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        let by_target = |number: fn(&Count) -> &AtomicU64| {
            let counts = targets.iter();
            let counts =
                counts.map(|(target, count)| (target.clone(), number(count).load(Relaxed)));
            counts.filter(|(_, n)| *n > 0).collect::<BTreeMap<_, _>>()
        };
        json!({
            "events": by_target(|count| &count.events),
            "spans": by_target(|count| &count.spans),
            "closed": self.closed.load(Relaxed),
            "others": self.others.load(Relaxed),
        })
    }
}

/// Counts, then hands everything on.
pub(crate) struct Counting<S> {
    inner: S,
    counts: Arc<Counts>,
}

impl<S> Counting<S> {
    pub(crate) fn new(inner: S, counts: Arc<Counts>) -> Self {
        Self { inner, counts }
    }
}

impl<S: Subscriber> Subscriber for Counting<S> {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.inner.register_callsite(metadata)
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.inner.enabled(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.inner.max_level_hint()
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let count = self.counts.of(attributes.metadata());
        count.spans.fetch_add(1, Relaxed);
        self.inner.new_span(attributes)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.counts.others.fetch_add(1, Relaxed);
        self.inner.record(span, values);
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        self.counts.others.fetch_add(1, Relaxed);
        self.inner.record_follows_from(span, follows);
    }

    fn event(&self, event: &Event<'_>) {
        self.counts
            .of(event.metadata())
            .events
            .fetch_add(1, Relaxed);
        self.inner.event(event);
    }

    fn enter(&self, span: &Id) {
        self.counts.others.fetch_add(1, Relaxed);
        self.inner.enter(span);
    }

    fn exit(&self, span: &Id) {
        self.counts.others.fetch_add(1, Relaxed);
        self.inner.exit(span);
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.inner.clone_span(id)
    }

    fn try_close(&self, id: Id) -> bool {
        let closed = self.inner.try_close(id);
        self.counts.closed.fetch_add(u64::from(closed), Relaxed);
        closed
    }

    fn current_span(&self) -> Current {
        self.inner.current_span()
    }
}
