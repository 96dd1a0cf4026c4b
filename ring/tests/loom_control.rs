//! What threads of the producer hand to each other, over loom's atomics: the control path's lock,
//! the running session, a region of span ids.
#![cfg(loom)]

use crate::models;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use loom::thread;
use models::*;
use ringmark_ring::control_lock::ControlLock;
use ringmark_ring::lease::Lease;
use ringmark_ring::published_static::Published;
use ringmark_ring::sync::AtomicU64;
use ringmark_ring::withdrawal;

/// Each of two threads adds 1 under the lock, with a load and a store.
fn two_under_lock() {
    let add = |word: &AtomicU64| word.store(word.load(Relaxed) + 1, Relaxed);
    let lock = Arc::new(ControlLock::new(AtomicU64::new(0)));
    let other = lock.clone();
    let thread = thread::spawn(move || add(&other.lock()));
    add(&lock.lock());
    thread.join().unwrap();
    let sum = lock.lock().load(Relaxed);
    assert_eq!(sum, 2, "{VIOLATED}: changed at once");
}

/// A thread forks, which holds the lock across, while another one changes something.
fn lock_across_a_fork() {
    let lock = Arc::new(ControlLock::new(AtomicU64::new(0)));
    let forking = lock.clone();
    let thread = thread::spawn(move || {
        forking.before_fork();
        forking.after_fork();
        forking.lock().load(Relaxed)
    });
    let guard = lock.lock();
    guard.store(1, Relaxed);
    guard.store(2, Relaxed);
    drop(guard);
    assert_ne!(thread.join().unwrap(), 1, "{VIOLATED}: half a change");
}

/// A thread that finds the session finds it laid out; one that no longer finds the first may find
/// the second, laid out as well.
fn running_session() {
    let mut memory = Memory::default();
    let sessions = memory.words(2);
    let current = Arc::new(Published::<AtomicU64>::new());
    let seen = current.clone();
    let thread = thread::spawn(move || {
        if let Some(session) = seen.current() {
            assert_ne!(session.load(Relaxed), 0, "{VIOLATED}: session");
        }
    });
    sessions[0].store(1, Relaxed);
    current.publish(&sessions[0]);
    current.forget();
    sessions[1].store(1, Relaxed);
    current.publish(&sessions[1]);
    thread.join().unwrap();
    drop(memory);
}

/// Two threads make the same thing at once: both get the one that was published first, whole.
fn made_by_two() {
    let made = || {
        let word = AtomicU64::new(0);
        word.store(1, Relaxed);
        Box::new(word)
    };
    let place = Arc::new(Published::<AtomicU64>::new());
    let other = place.clone();
    let thread = thread::spawn(move || {
        let found = other.get_or_publish(made);
        assert_ne!(found.load(Relaxed), 0, "{VIOLATED}: half made");
        std::ptr::from_ref(found).addr()
    });
    let found = place.get_or_publish(made);
    assert_ne!(found.load(Relaxed), 0, "{VIOLATED}: half made");
    let there = thread.join().unwrap();
    assert_eq!(std::ptr::from_ref(found).addr(), there, "{VIOLATED}: two");
}

/// Two threads take a region of ids one after the other, or one finds it taken.
fn region_of_ids() {
    fn id(lease: &Lease) -> Option<u64> {
        let given = lease.take()? + 1;
        lease.give_back(given);
        Some(given)
    }
    let lease = Arc::new(Lease::new());
    let other = lease.clone();
    let thread = thread::spawn(move || id(&other));
    let here = id(&lease);
    let there = thread.join().unwrap();
    assert!(
        here.is_none() || here != there,
        "{VIOLATED}: {here:?} twice"
    );
    assert!(here.is_some() || there.is_some(), "{VIOLATED}: nobody's");
}

/// What the last owner of a region did to its cells is there for the next one.
fn cells_of_a_region() {
    let lease = Arc::new((Lease::new(), AtomicU64::new(0)));
    let other = lease.clone();
    let thread = thread::spawn(move || {
        if let Some(given) = other.0.take() {
            other.1.store(7, Relaxed);
            other.0.give_back(given + 1);
        }
    });
    if let Some(given) = lease.0.take() {
        let found = lease.1.load(Relaxed);
        assert_eq!(found, 7 * given, "{VIOLATED}: a cell of {given} spans");
        lease.0.give_back(given);
    }
    thread.join().unwrap();
}

#[test]
fn the_lock_has_one_holder() {
    holds("two under the lock", two_under_lock);
    holds("across a fork", lock_across_a_fork);
}

#[test]
fn a_session_is_found_laid_out() {
    holds("running session", running_session);
    holds("made by two", made_by_two);
}

/// A thread takes a writer's clock away, and its owner gives it back: then the owner has none.
fn clock_taken_away() {
    let (in_force, clock) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (own_in_force, own_clock) = (in_force.clone(), clock.clone());
    let owner = thread::spawn(move || {
        withdrawal::give_back(
            || own_clock.store(1, Relaxed),
            || own_in_force.load(Relaxed) == 1,
            || own_clock.store(0, Relaxed),
        );
    });
    withdrawal::withdraw(|| in_force.store(1, Relaxed), || clock.store(0, Relaxed));
    owner.join().unwrap();
    assert_eq!(clock.load(Relaxed), 0, "{VIOLATED}: a clock");
}

#[test]
fn what_is_taken_away_stays_away() {
    holds("clock taken away", clock_taken_away);
}

#[test]
fn weakened_g1_is_caught() {
    caught("G1", clock_taken_away);
}

#[test]
fn weakened_g2_is_caught() {
    caught("G2", clock_taken_away);
}

#[test]
fn a_region_has_one_owner() {
    holds("region of ids", region_of_ids);
    holds("cells of a region", cells_of_a_region);
}

#[test]
fn weakened_l1_is_caught() {
    caught("L1", two_under_lock);
    caught("L1", lock_across_a_fork);
}

#[test]
fn weakened_l2_is_caught() {
    caught("L2", two_under_lock);
    caught("L2", lock_across_a_fork);
}

#[test]
fn weakened_l3_is_caught() {
    caught("L3", running_session);
}

#[test]
fn weakened_l4_is_caught() {
    caught("L4", running_session);
}

#[test]
fn weakened_l5_is_caught() {
    caught("L5", region_of_ids);
    caught("L5", cells_of_a_region);
}

#[test]
fn weakened_l6_is_caught() {
    caught("L6", region_of_ids);
    caught("L6", cells_of_a_region);
}
