//! What triggers do where a function is entered or left, and which tracers pause. This takes a few
//! loads and stores; a snapshot is only requested here and taken later.
//!
//! A tracer that pauses keeps its sites enabled, so that starting it again costs one store. While
//! some of its tracers pause, a call has another type, which names the others only. These types are
//! made before the sites are enabled, one for each set of tracers that may pause.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::function::TRACERS_MAX;

use super::by_type::ByType;

/// One flag for each function tracer, by its number.
type Flags = [AtomicBool; TRACERS_MAX as usize];

/// Tracers that are on but record nothing until a trigger starts them.
static PAUSED: Flags = [const { AtomicBool::new(false) }; TRACERS_MAX as usize];
/// Tracers with a trigger that requested a snapshot which was not taken yet.
static SNAPSHOT: Flags = [const { AtomicBool::new(false) }; TRACERS_MAX as usize];

/// What triggers do at one moment of a call; bits are tracers' numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Actions {
    /// Tracers that record calls from now on.
    pub(crate) start: u64,
    /// Tracers that pause from now on; prevails over `start`.
    pub(crate) stop: u64,
    /// Tracers that request a snapshot unless they pause.
    pub(crate) snapshot: u64,
}

/// Calls `work` with each number of a tracer in `tracers`.
fn each(tracers: u64, mut work: impl FnMut(usize)) {
    let mut rest = tracers;
    while rest != 0 {
        work(rest.trailing_zeros() as usize);
        rest &= rest - 1;
    }
}

/// Stores `value` unless it is there, so that an unchanged cache line stays in every processor's
/// cache.
fn set(flag: &AtomicBool, value: bool) {
    if flag.load(Relaxed) != value {
        flag.store(value, Relaxed);
    }
}

impl Actions {
    pub(crate) const NONE: Self = Self {
        start: 0,
        stop: 0,
        snapshot: 0,
    };

    /// What both do together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            start: self.start | other.start,
            stop: self.stop | other.stop,
            snapshot: self.snapshot | other.snapshot,
        }
    }

    /// Does the actions.
    pub(super) fn run(self) {
        if self == Self::NONE {
            return;
        }
        each(self.start & !self.stop, |tracer| {
            set(&PAUSED[tracer], false);
        });
        each(self.snapshot, |tracer| {
            if !PAUSED[tracer].load(Relaxed) {
                set(&SNAPSHOT[tracer], true);
            }
        });
        each(self.stop, |tracer| set(&PAUSED[tracer], true));
    }
}

/// Sets whether a tracer pauses.
pub(crate) fn pause(tracer: u32, pauses: bool) {
    PAUSED[tracer as usize % PAUSED.len()].store(pauses, Relaxed);
}

/// Whether a tracer pauses.
pub(crate) fn is_paused(tracer: u32) -> bool {
    PAUSED[tracer as usize % PAUSED.len()].load(Relaxed)
}

/// Whether a trigger of the tracer requested a snapshot since the last call.
pub(crate) fn take_snapshot(tracer: u32) -> bool {
    SNAPSHOT[tracer as usize % SNAPSHOT.len()].swap(false, Relaxed)
}

/// Whether a trigger of the tracer requested a snapshot, which stays requested.
pub(crate) fn wants_snapshot(tracer: u32) -> bool {
    SNAPSHOT[tracer as usize % SNAPSHOT.len()].load(Relaxed)
}

/// Types that replace a type while some of its tracers pause. Bit n of the index: the n-th of them
/// pauses.
#[derive(Debug, PartialEq, Eq)]
struct Paused(Vec<Option<u32>>);

static PAUSED_TYPES: ByType<Paused> = ByType::new();

/// Sets the types that replace type `number`, from "no tracer pauses" (itself) to "all pause".
/// Called by the control path only.
pub(crate) fn set_types(number: u32, types: Vec<Option<u32>>) {
    let types = Paused(types);
    if PAUSED_TYPES.get(number) != Some(&types) {
        PAUSED_TYPES.set(number, Box::leak(Box::new(types)));
    }
}

/// The type that a call of type `number` has now, where `tracers` may pause. `None`: no tracer
/// wants the call.
pub(super) fn type_now(number: u32, tracers: u64) -> Option<u32> {
    let (mut index, mut bit) = (0, 1);
    each(tracers, |tracer| {
        if PAUSED[tracer].load(Relaxed) {
            index |= bit;
        }
        bit <<= 1;
    });
    let types = PAUSED_TYPES.get(number)?;
    types.0.get(index).copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_is_stronger_than_start() {
        let both = Actions {
            start: 1 << 60 | 1 << 61,
            stop: 1 << 61,
            snapshot: 1 << 62,
        };
        pause(60, true);
        both.run();
        assert!(!is_paused(60) && is_paused(61) && !is_paused(62));
        assert!(!take_snapshot(61) && wants_snapshot(62));
        assert!(take_snapshot(62) && !take_snapshot(62));
        let last = Actions {
            stop: 1 << 62,
            ..both
        };
        last.run();
        assert!(
            is_paused(62) && take_snapshot(62),
            "what was recorded is of interest"
        );
        last.run();
        assert!(!take_snapshot(62), "nothing was recorded since");
    }

    #[test]
    fn a_type_for_each_set_of_tracers_that_pause() {
        let tracers = 1 << 50 | 1 << 53;
        assert_eq!(type_now(7, tracers), None);
        set_types(7, vec![Some(7), Some(8), Some(9), None]);
        assert_eq!(type_now(7, tracers), Some(7));
        pause(53, true);
        assert_eq!(type_now(7, tracers), Some(9));
        pause(50, true);
        assert_eq!(type_now(7, tracers), None);
        pause(53, false);
        assert_eq!(type_now(7, tracers), Some(8));
    }
}
