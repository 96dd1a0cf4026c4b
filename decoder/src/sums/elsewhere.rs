//! Open calls on stacks that are not their thread's own: of coroutines and fibers.
//!
//! Such calls end in any order and in any thread. A call is known by its slot, the address at which
//! its stack holds its return address, so the exit of a call finds its entry exactly. What lies
//! inside what is told by the slots, too: a stack grows downwards, and the call around another one is
//! the nearest further up. Stacks have no known bounds. One that begins less than [`REACH`] below an
//! open call of another stack looks like a part of it: durations are right then, own times and depths
//! may not be.
//!
//! | record | what it does |
//! | --- | --- |
//! | entry | opens a call at its slot, inside the nearest one above |
//! | entry at the slot of an open call | ends that call: it was left without a return |
//! | exit | ends the call at its slot, if that is of the same function |
//! | exit without such a call | is left to the caller: the entry is not here |

use std::collections::BTreeMap;

use crate::events::event::Event;
use crate::sums::call::{Call, Ended, OpenCall};
use crate::trace_file::session::Session;

/// Bytes of stack between a call and the call around it at most.
const REACH: u64 = 16 << 10;

/// Process of the trace and slot.
type Place = (usize, u64);

/// An open call, and where it is.
#[derive(Debug)]
struct Open<'a> {
    /// What its entry says.
    call: OpenCall<'a>,
    /// Open calls around it: those of its stack, and those of the thread that the stack began in.
    depth: u32,
    /// Slot and tick of entry of the call around it.
    around: Option<(u64, u64)>,
    /// The slot of the outermost call that it is in.
    outermost: u64,
    /// A call further out began later: it was left without a return.
    is_left: bool,
}

/// The open calls of all processes, by slot.
#[derive(Debug, Default)]
pub(super) struct Elsewhere<'a>(BTreeMap<Place, Open<'a>>);

impl<'a> Elsewhere<'a> {
    /// Opens a call; `depth`: open calls of its thread. Returns the call that had its slot: it was left
    /// without a return.
    pub(super) fn enter(
        &mut self,
        process: usize,
        slot: u64,
        call: OpenCall<'a>,
        depth: u32,
    ) -> Option<Call<'a>> {
        let left = self.close((process, slot), call.entered_ns, Ended::Unseen);
        let around = self.around(process, slot);
        let inside = around.map(|(place, open)| (place.1, open));
        let outermost = inside.map_or(slot, |(_, open)| open.outermost);
        let open = Open {
            call,
            depth: inside.map_or(depth, |(_, open)| open.depth + 1),
            around: inside.map(|(slot, open)| (slot, open.call.entered_tick)),
            outermost,
            is_left: false,
        };
        let inner = (process, slot.saturating_sub(REACH))..(process, slot);
        for (_, inner) in self.0.range_mut(inner) {
            inner.is_left |= inner.outermost == outermost;
        }
        self.0.insert((process, slot), open);
        left
    }

    /// Ends the call with this slot, if it is of the same function.
    pub(super) fn leave(
        &mut self,
        event: &Event<'a>,
        slot: u64,
        id: u32,
        ended: Ended,
    ) -> Option<Call<'a>> {
        let place = (event.session.process, slot);
        let open = self.0.get(&place)?;
        if !open.call.is_of(event.session, id) {
            return None;
        }
        self.close(place, event.t_ns, ended)
    }

    /// Takes a loss in a session: which of its calls have ended since is not known.
    pub(super) fn lose(&mut self, session: &Session) {
        let all = self.0.values_mut();
        let of_session = all.filter(|open| std::ptr::eq(open.call.session, session));
        of_session.for_each(|open| open.call.unsure = true);
    }

    /// The open calls around one that has ended, the innermost first.
    pub(super) fn around_ended(&self, call: &Call<'a>) -> impl Iterator<Item = &OpenCall<'a>> {
        let (process, mut next) = (call.session.process, call.around);
        std::iter::from_fn(move || {
            let open = self.of(process, next?)?;
            next = open.around;
            Some(&open.call)
        })
    }

    /// The open calls.
    pub(super) fn open(&self) -> impl Iterator<Item = &OpenCall<'a>> {
        self.0.values().map(|open| &open.call)
    }

    /// The nearest open call further up the stack.
    fn around(&self, process: usize, slot: u64) -> Option<(&Place, &Open<'a>)> {
        let reach = (process, slot + 1)..=(process, slot.saturating_add(REACH));
        self.0.range(reach).find(|(_, open)| !open.is_left)
    }

    /// Ends the call at this place: its time is in the call around it, and a function that is around
    /// itself is a recursion.
    fn close(&mut self, place: Place, now: u64, how: Ended) -> Option<Call<'a>> {
        let open = self.0.remove(&place)?;
        let call = open.call;
        if let Some((slot, tick)) = open.around
            && let Some(around) = self.0.get_mut(&(place.0, slot))
            && around.call.entered_tick == tick
        {
            let took = now.saturating_sub(call.entered_ns);
            around.call.children_ns = around.call.children_ns.saturating_add(took);
        }
        let mut ended = Call {
            session: call.session,
            function: call.function,
            id: call.id,
            entered_ns: Some(call.entered_ns),
            entered_tick: Some(call.entered_tick),
            left_ns: now,
            children_ns: call.children_ns,
            depth: open.depth,
            recursive: false,
            unsure: call.unsure,
            is_cut: call.is_cut,
            ended: how,
            entry: Some(call.entry.clone()),
            around: open.around,
        };
        let is_same = |outer: &OpenCall<'a>| !outer.unsure && outer.is_of(call.session, call.id);
        let recursive = self.around_ended(&ended).any(is_same);
        ended.recursive = recursive;
        Some(ended)
    }

    /// The open call with this slot that was entered at this tick.
    fn of(&self, process: usize, (slot, tick): (u64, u64)) -> Option<&Open<'a>> {
        let open = self.0.get(&(process, slot))?;
        (open.call.entered_tick == tick).then_some(open)
    }
}
