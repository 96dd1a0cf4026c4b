//! Which functions a thread is in for certain.
//!
//! A call inside a call of the same function counts no time of its own in the function's total. So it is
//! asked of each call, on stacks that may be deep: calls whose ends were not recorded stay.

use std::collections::hash_map::Entry;

use crate::trace_file::functions::Function;
use crate::trace_file::session::Session;
use crate::words::small_keys::SmallKeys;

/// Numbers of calls that are open for certain, by session and place of the function in it. A stack
/// may be deep, so it is not looked through for them.
#[derive(Debug, Default)]
pub(super) struct Certain(SmallKeys<(usize, usize), u32>);

impl Certain {
    /// Adds a call; returns whether one of this function was there.
    pub(super) fn add(&mut self, session: &Session, function: &Function) -> bool {
        let calls = self.0.entry((session.number, function.place));
        let calls = calls.or_default();
        *calls += 1;
        *calls > 1
    }

    pub(super) fn remove(&mut self, session: &Session, function: &Function) {
        if let Entry::Occupied(mut calls) = self.0.entry((session.number, function.place)) {
            match calls.get() {
                0 | 1 => drop(calls.remove()),
                _ => *calls.get_mut() -= 1,
            }
        }
    }

    pub(super) fn has(&self, session: &Session, function: &Function) -> bool {
        self.0.contains_key(&(session.number, function.place))
    }
}
