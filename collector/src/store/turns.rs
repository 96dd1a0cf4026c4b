//! One thread at a time for what is done with a session as a whole, whatever another session's
//! thread waits for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use ringmark_format::Uuid;

use crate::mutex::lock;

/// Sessions after which those that no thread has are forgotten.
const MANY: usize = 1024;

/// The sessions with which a thread is at work.
#[derive(Debug, Default)]
pub(super) struct Turns {
    by_session: Mutex<HashMap<Uuid, Arc<Mutex<()>>>>,
}

impl Turns {
    /// Does this while no other thread does such a thing with the session.
    pub(super) fn alone<R>(&self, session: Uuid, call: impl FnOnce() -> R) -> R {
        let turn = self.of(session);
        let _turn = lock(&turn);
        call()
    }

    fn of(&self, session: Uuid) -> Arc<Mutex<()>> {
        let mut by_session = lock(&self.by_session);
        if by_session.len() >= MANY {
            by_session.retain(|_, turn| Arc::strong_count(turn) > 1);
        }
        by_session.entry(session).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_held_holds_no_other() {
        let turns = Turns::default();
        let (one, other) = (Uuid([1; 16]), Uuid([2; 16]));
        turns.alone(one, || {
            turns.alone(other, || ());
            assert!(turns.of(one).try_lock().is_err());
        });
        assert!(turns.of(one).try_lock().is_ok());
    }

    #[test]
    fn many_sessions_are_not_remembered_for_ever() {
        let turns = Turns::default();
        let held = turns.of(Uuid([255; 16]));
        for n in 0..10_000_u64 {
            let mut uuid = [0; 16];
            uuid[..8].copy_from_slice(&n.to_le_bytes());
            turns.alone(Uuid(uuid), || ());
        }
        assert!(lock(&turns.by_session).len() <= MANY);
        assert!(Arc::ptr_eq(&held, &turns.of(Uuid([255; 16]))));
    }
}
