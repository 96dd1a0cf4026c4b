//! Counts events per type and per ring.

use std::collections::HashMap;

use ringmark_format::{RingId, Uuid};

use crate::events::event::{Event, Output};
use crate::trace_file::schema::EventType;
use crate::trace_file::session::Session;

/// Counts of one event type.
#[derive(Debug, Clone, Copy)]
pub struct TypeCount<'a> {
    /// The session that the type belongs to.
    pub session: &'a Session,
    /// The event type.
    pub ty: &'a EventType,
    /// Number of events.
    pub events: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Sum of the durations of finished spans, in ns; stays at the largest number that fits.
    pub duration_ns: u64,
    /// Longest duration, in ns; 0: no event has one.
    pub duration_ns_max: u64,
}

/// Counts of one ring.
#[derive(Debug, Clone, Copy)]
pub struct RingCount<'a> {
    /// The session that the ring belongs to.
    pub session: &'a Session,
    /// The ring: one claim of a slot by one thread.
    pub ring: RingId,
    /// Id of the thread that owned the ring.
    pub tid: u32,
    /// Name of that thread when it attached.
    pub comm: &'a [u8],
    /// Events.
    pub events: u64,
    /// Lost, overwritten and missing events of the ring.
    pub lost: u64,
    /// Time of the first event, in ns since the session's start.
    pub first_ns: u64,
    /// Time of the last event, in ns since the session's start.
    pub last_ns: u64,
}

/// Counts per type and per ring, each in the order of first appearance.
#[derive(Debug, Default)]
pub struct Stats<'a> {
    /// Per type.
    pub types: Vec<TypeCount<'a>>,
    /// Per ring.
    pub rings: Vec<RingCount<'a>>,
    type_places: HashMap<(Uuid, u32), usize>,
    ring_places: HashMap<(Uuid, u64), usize>,
}

impl<'a> Stats<'a> {
    /// Counts all of `items`, usually [`crate::Dump::events`].
    pub fn collect(items: impl IntoIterator<Item = Output<'a>>) -> Self {
        let mut stats = Self::default();
        items.into_iter().for_each(|item| stats.add(&item));
        stats
    }

    /// Counts one event.
    pub fn add_event(&mut self, event: &Event<'a>) {
        self.add_type(event);
        self.add_ring(event);
    }

    /// Counts one item. A loss counts for its ring if the ring had an event before.
    pub fn add(&mut self, item: &Output<'a>) {
        match item {
            Output::Event(event) => self.add_event(event),
            Output::Lost(lost) => {
                let key = (lost.session.uuid, lost.ring.map_or(0, |r| r.0));
                if let Some(place) = self.ring_places.get(&key) {
                    let ring = &mut self.rings[*place];
                    ring.lost = ring.lost.saturating_add(lost.loss.count);
                }
            }
        }
    }

    fn add_type(&mut self, event: &Event<'a>) {
        let key = (event.session.uuid, event.ty.id.0);
        let place = *self.type_places.entry(key).or_insert_with(|| {
            self.types.push(TypeCount {
                session: event.session,
                ty: event.ty,
                events: 0,
                payload_bytes: 0,
                duration_ns: 0,
                duration_ns_max: 0,
            });
            self.types.len() - 1
        });
        let count = &mut self.types[place];
        count.events += 1;
        count.payload_bytes += event.payload.len() as u64;
        if let Some(ns) = event.duration_ns() {
            count.duration_ns = count.duration_ns.saturating_add(ns);
            count.duration_ns_max = count.duration_ns_max.max(ns);
        }
    }

    fn add_ring(&mut self, event: &Event<'a>) {
        let key = (event.session.uuid, event.ring().0);
        let place = *self.ring_places.entry(key).or_insert_with(|| {
            self.rings.push(RingCount {
                session: event.session,
                ring: event.ring(),
                tid: event.tid(),
                comm: event.comm(),
                events: 0,
                lost: 0,
                first_ns: event.t_ns,
                last_ns: event.t_ns,
            });
            self.rings.len() - 1
        });
        let count = &mut self.rings[place];
        count.events += 1;
        count.first_ns = count.first_ns.min(event.t_ns);
        count.last_ns = count.last_ns.max(event.t_ns);
    }
}
