//! A span that was made and is not closed yet: its records so far, and who is in it.

use ringmark_format::{TypeId, Uuid};

use crate::events::event::Event;
use crate::events::payload::Payload;
use crate::events::span::{Entered, Span};

/// Most records with fields of one span that are kept; a later one takes the place of the oldest.
const LATER_MAX: usize = 64;

/// Most threads that are named of one span.
const TIDS_MAX: usize = 16;

/// A thread in a span.
#[derive(Debug)]
struct Inside {
    ring: u64,
    /// Tick at which it entered.
    since: u64,
    /// How often it entered without leaving.
    depth: u32,
}

/// What is kept of a record with fields. It owns its bytes: a follower drops the piece they are in.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) ty: TypeId,
    payload: Box<[u8]>,
}

impl Kept {
    pub(super) fn of(event: &Event<'_>) -> Self {
        Self {
            ty: event.ty.id,
            payload: event.payload[..].into(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.payload.len()
    }
}

/// A span between its first record and its close.
#[derive(Debug)]
pub(super) struct OpenSpan {
    /// The record that made it; `None`: it was lost, or is earlier than the trace.
    pub(super) made: Option<Kept>,
    /// Fields that were recorded later, by type, the latest last.
    pub(super) later: Vec<Kept>,
    /// Tick of its first record, which made it if `made` is there.
    pub(super) first_tick: u64,
    parent: u64,
    inside: Vec<Inside>,
    /// Tick from which on some thread was in it; counts while `inside` is not empty.
    covered_since: u64,
    covered_ns: u64,
    busy_ns: u64,
    /// Time in which a thread in it was in another span inside it.
    pub(super) nested_ns: u64,
    polls: u64,
    /// The threads that entered it; more than [`TIDS_MAX`] are not known.
    tids: Vec<u32>,
    /// An entry without an exit was met, or the other way round.
    is_torn: bool,
    /// Losses of the session that were met before it.
    losses: u64,
}

impl OpenSpan {
    /// The span of its first record, after `losses` losses in its session.
    pub(super) fn new(event: &Event<'_>, losses: u64) -> Self {
        Self {
            made: None,
            later: Vec::new(),
            first_tick: event.tick,
            parent: event.parent.unwrap_or(0),
            inside: Vec::new(),
            covered_since: 0,
            covered_ns: 0,
            busy_ns: 0,
            nested_ns: 0,
            polls: 0,
            tids: Vec::new(),
            is_torn: false,
            losses,
        }
    }

    /// Takes the record that made it. Records of other threads at the same time may stand before.
    pub(super) fn make(&mut self, event: &Event<'_>) {
        self.made = Some(Kept::of(event));
        self.first_tick = event.tick;
        self.parent = event.parent.unwrap_or(0);
    }

    /// Bytes of the records that are kept.
    pub(super) fn bytes(&self) -> usize {
        self.made.iter().chain(&self.later).map(Kept::bytes).sum()
    }

    /// Takes fields that are recorded later. They replace those of the same type: each type has
    /// the same fields every time.
    pub(super) fn record(&mut self, event: &Event<'_>) {
        self.later.retain(|kept| kept.ty != event.ty.id);
        if self.later.len() == LATER_MAX {
            self.later.remove(0);
        }
        self.later.push(Kept::of(event));
    }

    /// A thread enters it.
    pub(super) fn enter(&mut self, event: &Event<'_>) {
        let (ring, tick) = (event.ring().0, event.tick);
        self.polls += 1;
        if self.tids.len() <= TIDS_MAX && !self.tids.contains(&event.tid()) {
            self.tids.push(event.tid());
        }
        if let Some(inside) = self.inside.iter_mut().find(|inside| inside.ring == ring) {
            inside.depth = inside.depth.saturating_add(1);
            return;
        }
        if self.inside.is_empty() {
            self.covered_since = tick;
        }
        self.inside.push(Inside {
            ring,
            since: tick,
            depth: 1,
        });
    }

    /// A thread leaves it. Returns how long it was in it, in ns, unless it still is.
    pub(super) fn exit(&mut self, event: &Event<'_>) -> Option<u64> {
        let ring = event.ring().0;
        let Some(place) = self.inside.iter().position(|inside| inside.ring == ring) else {
            self.is_torn = true;
            return None;
        };
        self.inside[place].depth -= 1;
        if self.inside[place].depth > 0 {
            return None;
        }
        let since = self.inside.swap_remove(place).since;
        let took = ns(event, since);
        self.busy_ns = self.busy_ns.saturating_add(took);
        if self.inside.is_empty() {
            let covered = ns(event, self.covered_since);
            self.covered_ns = self.covered_ns.saturating_add(covered);
        }
        Some(took)
    }

    /// The rings of the threads that are in it.
    pub(super) fn rings(&self) -> impl Iterator<Item = u64> {
        self.inside.iter().map(|inside| inside.ring)
    }

    /// Records of a ring are lost: whether its thread is still in the span is not known.
    pub(super) fn lose(&mut self, ring: u64) {
        let before = self.inside.len();
        self.inside.retain(|inside| inside.ring != ring);
        self.is_torn |= self.inside.len() != before;
    }

    /// The span, closed by this event; `None`: it is not known how it began.
    pub(super) fn close<'a>(
        mut self,
        event: &Event<'a>,
        (losses, has_gap): (u64, impl FnOnce(Uuid, u64, u64) -> bool),
    ) -> Option<Span<'a>> {
        let made = self.made?;
        let session = event.session;
        let mut parts = Vec::with_capacity(1 + self.later.len());
        for kept in [made].into_iter().chain(self.later) {
            let ty = session.schema.find(kept.ty)?;
            parts.push((ty, Payload::copy(&kept.payload)));
        }
        let (ty, _) = *parts.first().map(|(ty, bytes)| (ty, bytes)).as_ref()?;
        let total_ns = ns(event, self.first_tick);
        if self.tids.len() > TIDS_MAX {
            self.tids.clear();
        }
        let is_whole = !self.is_torn
            && self.inside.is_empty()
            && self.losses == losses
            && !has_gap(session.uuid, self.first_tick, event.tick);
        Some(Span {
            end: event.clone(),
            ty,
            name: &ty.name,
            target: &ty.target,
            id: event.span,
            parent: Some(self.parent).filter(|id| *id != 0),
            start_ns: event.t_ns.saturating_sub(total_ns),
            total_ns,
            entered: Some(Entered {
                busy_ns: self.busy_ns,
                idle_ns: total_ns.saturating_sub(self.covered_ns),
                polls: self.polls,
                is_whole,
            }),
            self_ns: is_whole.then(|| self.busy_ns.saturating_sub(self.nested_ns)),
            tids: self.tids,
            words: [const { None }; 2],
            parts,
        })
    }
}

/// From a tick to an event, in ns.
fn ns(event: &Event<'_>, since: u64) -> u64 {
    event.t_ns.saturating_sub(event.session.clock.t_ns(since))
}
