//! A span that was made and is not closed yet: its records so far, and who is in it.

use ringmark_format::{TypeId, Uuid};

use crate::events::event::Event;
use crate::events::payload::Payload;
use crate::events::span::{Entered, Span};
use crate::events::stay::Stay;
use crate::trace_file::thread_times::ThreadTimes;

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

/// A span between its first record and its close. There may be very many that nothing happened to yet.
#[derive(Debug)]
pub(super) struct OpenSpan {
    /// Type and fields of the record that made it; no fields: it was lost, or is earlier than the
    /// trace. Apart from each other they take less memory.
    made_type: TypeId,
    made: Option<Box<[u8]>>,
    /// The low half of the number of losses of the session that were met before it.
    losses: u32,
    /// Tick of its first record, which made it if `made` is there.
    pub(super) first_tick: u64,
    parent: u64,
    /// `None`: no more than its making.
    life: Option<Box<Life>>,
}

/// What happened to a span after it was made.
#[derive(Debug, Default)]
struct Life {
    /// Fields that were recorded later, by type, the latest last.
    later: Vec<Kept>,
    inside: Vec<Inside>,
    /// Tick from which on some thread was in it; counts while `inside` is not empty.
    covered_since: u64,
    covered_ns: u64,
    busy_ns: u64,
    /// What the threads did in `busy_ns`; `None`: it is not known.
    times: Option<ThreadTimes>,
    /// Time in which a thread in it was in a span or call inside it.
    nested_ns: u64,
    polls: u64,
    /// The threads that entered it; more than [`TIDS_MAX`] are not known.
    tids: Vec<u32>,
    /// When a thread was in it and was seen, running or waiting.
    seen: Vec<Stay>,
    /// An entry without an exit was met, or the other way round.
    is_torn: bool,
}

impl OpenSpan {
    /// The span of its first record, after `losses` losses in its session.
    pub(super) fn new(event: &Event<'_>, losses: u64) -> Self {
        Self {
            made_type: event.ty.id,
            made: None,
            losses: losses as u32,
            first_tick: event.tick,
            parent: event.parent.unwrap_or(0),
            life: None,
        }
    }

    /// What happened to it, from now on with a place in memory.
    fn life(&mut self) -> &mut Life {
        self.life.get_or_insert_default()
    }

    /// Fields that were recorded later, by type, the latest last.
    pub(super) fn later(&self) -> &[Kept] {
        self.life.as_ref().map_or(&[], |life| &life.later)
    }

    /// A thread in it was in something inside it for so long.
    pub(super) fn add_nested(&mut self, ns: u64) {
        let life = self.life();
        life.nested_ns = life.nested_ns.saturating_add(ns);
    }

    /// Takes the record that made it. Records of other threads at the same time may stand before.
    pub(super) fn make(&mut self, event: &Event<'_>) {
        (self.made_type, self.made) = (event.ty.id, Some(event.payload[..].into()));
        self.first_tick = event.tick;
        self.parent = event.parent.unwrap_or(0);
    }

    /// Id of the span around it, or 0.
    pub(super) const fn parent(&self) -> u64 {
        self.parent
    }

    /// Type and fields of the record that made it.
    pub(super) fn made(&self) -> Option<(TypeId, &[u8])> {
        Some((self.made_type, self.made.as_deref()?))
    }

    /// Bytes of the records that are kept.
    pub(super) fn bytes(&self) -> usize {
        let made = self.made.as_ref().map_or(0, |made| made.len());
        made + self.later().iter().map(Kept::bytes).sum::<usize>()
    }

    /// Takes fields that are recorded later. They replace those of the same type: each type has
    /// the same fields every time.
    pub(super) fn record(&mut self, event: &Event<'_>) {
        let later = &mut self.life().later;
        later.retain(|kept| kept.ty != event.ty.id);
        if later.len() == LATER_MAX {
            later.remove(0);
        }
        later.push(Kept::of(event));
    }

    /// A thread enters it.
    pub(super) fn enter(&mut self, event: &Event<'_>) {
        let (ring, tick, life) = (event.ring().0, event.tick, self.life());
        life.polls += 1;
        if life.tids.len() <= TIDS_MAX && !life.tids.contains(&event.tid()) {
            life.tids.push(event.tid());
        }
        if let Some(inside) = life.inside.iter_mut().find(|inside| inside.ring == ring) {
            inside.depth = inside.depth.saturating_add(1);
            return;
        }
        if life.inside.is_empty() {
            life.covered_since = tick;
        }
        life.inside.push(Inside {
            ring,
            since: tick,
            depth: 1,
        });
    }

    /// A thread leaves it. Returns the tick from which it was in it and how long, in ns, unless it still is.
    pub(super) fn exit(&mut self, event: &Event<'_>) -> Option<(u64, u64)> {
        let (ring, life) = (event.ring().0, self.life());
        let Some(place) = life.inside.iter().position(|inside| inside.ring == ring) else {
            life.is_torn = true;
            return None;
        };
        life.inside[place].depth -= 1;
        if life.inside[place].depth > 0 {
            return None;
        }
        let since = life.inside.swap_remove(place).since;
        let took = ns(event, since);
        let times = event.thread_times(took);
        life.times = match life.busy_ns {
            0 => times,
            _ => life.times.zip(times).map(|(sum, times)| sum.and(times)),
        };
        life.busy_ns = life.busy_ns.saturating_add(took);
        let stay = Stay::before(event, took);
        life.seen
            .extend(stay.is_seen(event.session).then_some(stay));
        if life.inside.is_empty() {
            let covered = ns(event, life.covered_since);
            life.covered_ns = life.covered_ns.saturating_add(covered);
        }
        Some((since, took))
    }

    /// The rings of the threads that are in it.
    pub(super) fn rings(&self) -> impl Iterator<Item = u64> {
        let life = self.life.iter();
        life.flat_map(|life| life.inside.iter().map(|inside| inside.ring))
    }

    /// Records of a ring are lost: whether its thread is still in the span is not known.
    pub(super) fn lose(&mut self, ring: u64) {
        let Some(life) = &mut self.life else { return };
        let before = life.inside.len();
        life.inside.retain(|inside| inside.ring != ring);
        life.is_torn |= life.inside.len() != before;
    }

    /// The span, closed by this event; `None`: it is not known how it began.
    pub(super) fn close<'a>(
        self,
        event: &Event<'a>,
        (losses, has_gap): (u64, impl FnOnce(Uuid, u64, u64) -> bool),
    ) -> Option<Span<'a>> {
        let made = Kept {
            ty: self.made_type,
            payload: self.made?,
        };
        let mut life = *self.life.unwrap_or_default();
        let session = event.session;
        let mut parts = Vec::with_capacity(1 + life.later.len());
        for kept in [made].into_iter().chain(life.later) {
            let ty = session.schema.find(kept.ty)?;
            parts.push((ty, Payload::copy(&kept.payload)));
        }
        let (ty, _) = *parts.first().map(|(ty, bytes)| (ty, bytes)).as_ref()?;
        let total_ns = ns(event, self.first_tick);
        if life.tids.len() > TIDS_MAX {
            life.tids.clear();
        }
        let is_whole = !life.is_torn
            && life.inside.is_empty()
            && self.losses == losses as u32
            && !has_gap(session.uuid, self.first_tick, event.tick);
        Some(Span {
            end: event.clone(),
            ty,
            name: &ty.name,
            target: &ty.origin.target,
            id: event.span,
            parent: Some(self.parent).filter(|id| *id != 0),
            start_ns: event.t_ns.saturating_sub(total_ns),
            total_ns,
            entered: Some(Entered {
                busy_ns: life.busy_ns,
                idle_ns: total_ns.saturating_sub(life.covered_ns),
                polls: life.polls,
                is_whole,
            }),
            self_ns: is_whole.then(|| life.busy_ns.saturating_sub(life.nested_ns)),
            times: life.times.filter(|_| is_whole),
            is_inner: false,
            tids: life.tids,
            seen: life.seen,
            words: [const { None }; 2],
            parts,
        })
    }
}

/// From a tick to an event, in ns.
fn ns(event: &Event<'_>, since: u64) -> u64 {
    event.t_ns.saturating_sub(event.session.clock.t_ns(since))
}
