//! The records of calls that the slow way writes, on whatever stack the calls are.

use ringmark::__private::foreign::{does_own_work, reserve_words_from};
use ringmark::client::Now;
use ringmark_format::TypeId;
use ringmark_format::function::{EXIT_BIT, LAST_NUMBER, SLOT_BIT};

use super::call_plan::CallPlan;
use super::open_calls::block;
use super::unwritten;

/// Bit in an open call's type word, above the type's 24 bits: its end is no plain record.
pub(crate) const ANY_END: u32 = 1 << 30;

/// Bit in an open call's type word, above the type's 24 bits: its exits are sites, and its return
/// address was not replaced.
pub(crate) const SLEDS: u32 = 1 << 29;

/// Bit with `ANY_END`: the end of the call is counted for one tracer, and nothing else.
pub(crate) const PROFILED: u32 = 1 << 28;

/// Bit in an open call's type word, above the type's 24 bits: it led to a function whose callers are wanted.
pub(super) const LEADS: u32 = 1 << 31;

/// Bit with `ANY_END`: all that is to be done at the end is a record, if the call took long or [`LEADS`].
pub(super) const TIMED: u32 = 1 << 27;

/// Bit with [`TIMED`]: there is a record only if the call [`LEADS`].
pub(super) const LEADING: u32 = 1 << 26;

/// The bits of a type.
const TYPE_MASK: u32 = (1 << 24) - 1;

/// Writes one record, for a stub whose frame is at `frame`.
pub(super) fn record(frame: u64, type_id: u32, payload: &[u64]) {
    record_at(frame, type_id, payload, Now::Clock);
}

/// Writes one record with the time of `now`, or counts the call as unwritten. Of what a thread calls to get its ring, or to
/// start its session after a fork, there is no record: the program did not call it.
pub(super) fn record_at(frame: u64, type_id: u32, payload: &[u64], now: Now) {
    if does_own_work() {
        return;
    }
    let words = payload.len() as u64;
    let type_id = TypeId(type_id & TYPE_MASK);
    let stack = block().stack_around(frame);
    if let Some(mut reservation) = reserve_words_from(stack, type_id, words, now) {
        for (place, word) in payload.iter().enumerate() {
            reservation.set_word(place, *word);
        }
        reservation.commit();
    } else if type_id.0 & EXIT_BIT == 0 {
        unwritten::add(type_id.0 & LAST_NUMBER);
    }
}

/// A call at its entry, and its plan.
pub(super) struct Entered<'p> {
    pub(super) type_word: u32,
    pub(super) plan: &'p CallPlan,
    /// The true return address.
    pub(super) caller: u64,
    /// Tick of the entry; 0: the end is not timed.
    pub(super) tick: u64,
}

/// The end of a call.
pub(super) struct Ended {
    /// An address in the frame that ended.
    pub(super) slot: u64,
    /// With [`LOOSE_BIT`] if the call did not return, with [`SLOT_BIT`] if it was on another stack.
    pub(super) type_word: u32,
    /// Tick of the entry.
    pub(super) entered: u64,
    pub(super) now: Now,
    /// The return value, where it is known.
    pub(super) result: Option<u64>,
}

/// The payload of a record: at most the slot, the caller and six arguments.
#[derive(Default)]
pub(super) struct Words {
    words: [u64; 8],
    count: usize,
}

impl Words {
    /// Begins with the slot, where the type says so.
    pub(super) fn of(type_word: u32, slot: u64) -> Self {
        let mut words = Self::default();
        if type_word & SLOT_BIT != 0 {
            words.add(&[slot]);
        }
        words
    }

    pub(super) fn add(&mut self, more: &[u64]) {
        let free = &mut self.words[self.count..];
        let count = more.len().min(free.len());
        free[..count].copy_from_slice(&more[..count]);
        self.count += count;
    }

    pub(super) fn all(&self) -> &[u64] {
        &self.words[..self.count]
    }
}

/// Writes the record of an end, as the plan of the call's type says, and runs its triggers.
pub(super) fn end(plan: &CallPlan, call: &Ended) {
    let is_wanted = !plan.leading || call.type_word & LEADS != 0;
    if plan.record && plan.exit && is_wanted {
        record_end(plan, call);
    }
    plan.on_exit.run();
}

fn record_end(plan: &CallPlan, call: &Ended) {
    let mut words = Words::of(call.type_word, call.slot);
    if let Some(min) = plan.min_ticks {
        let took = ringmark::ticks().saturating_sub(call.entered);
        if took < min {
            return;
        }
        words.add(&[took]);
    } else if let Some(result) = call.result.filter(|_| plan.result) {
        words.add(&[result]);
    }
    let now = match plan.min_ticks {
        Some(_) => Now::Clock,
        None => call.now,
    };
    record_at(call.slot, call.type_word | EXIT_BIT, words.all(), now);
}

impl CallPlan {
    /// The time of a call's record; where the call is counted, the same tick as in the count.
    pub(super) fn now(&self, tick: u64) -> Now {
        match self.profile {
            true => Now::At(tick),
            false => Now::Clock,
        }
    }
}
