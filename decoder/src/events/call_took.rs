//! How long a call took that has a record for its entry and one for its exit.

use std::collections::HashMap;

use ringmark_format::Uuid;

use crate::events::event::Event;
use crate::trace_file::function_words::FunctionWords;
use crate::trace_file::functions::FunctionUse;

/// Deepest nesting of calls that is followed in a ring; calls on other stacks that are followed.
const DEPTH_MAX: usize = 1 << 16;

/// The open calls of every ring, as little as their durations need.
///
/// It borrows nothing, so it serves a [`crate::Follower`] from piece to piece. [`crate::Calls`]
/// knows more of each call.
#[derive(Debug, Default)]
pub struct CallTook {
    /// Function and tick of entry, by session and ring, the innermost last.
    open: HashMap<(Uuid, u64), Vec<(u32, u64)>>,
    /// The same of calls on other stacks, by session and slot.
    elsewhere: HashMap<(Uuid, u64), (u32, u64)>,
}

impl CallTook {
    /// Takes the next event in the order of time. Returns its duration in ns if it is a finished
    /// span, a whole call, or the end of a call whose entry came before.
    pub fn take(&mut self, event: &Event<'_>) -> Option<u64> {
        let Some(meaning) = event.ty.function.filter(|meaning| !meaning.timed) else {
            return event.duration_ns();
        };
        if meaning.has_slot {
            return self.take_elsewhere(event, meaning);
        }
        let key = (event.session.uuid, event.ring().0);
        let open = self.open.entry(key).or_default();
        if !meaning.exit {
            if !meaning.loose && open.len() < DEPTH_MAX {
                open.push((meaning.function, event.tick));
            }
            return None;
        }
        let place = open.iter().rposition(|call| call.0 == meaning.function)?;
        // The ends of the calls inside it were not recorded.
        let (_, tick) = open.drain(place..).next()?;
        let entered_ns = event.session.clock.t_ns(tick);
        Some(event.t_ns.saturating_sub(entered_ns))
    }

    /// The same of a call on another stack than its thread's own.
    fn take_elsewhere(&mut self, event: &Event<'_>, meaning: FunctionUse) -> Option<u64> {
        let slot = FunctionWords::read(meaning, &event.payload).slot?;
        let key = (event.session.uuid, slot);
        if !meaning.exit {
            if self.elsewhere.len() < DEPTH_MAX {
                self.elsewhere.insert(key, (meaning.function, event.tick));
            }
            return None;
        }
        let (_, tick) = self
            .elsewhere
            .remove(&key)
            .filter(|call| call.0 == meaning.function)?;
        let entered_ns = event.session.clock.t_ns(tick);
        Some(event.t_ns.saturating_sub(entered_ns))
    }
}
