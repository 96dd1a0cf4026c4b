//! What triggers do where a function is entered or left, and which tracers pause. A few loads and
//! stores; a snapshot is only asked for here, and taken later.

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::function::TRACERS_MAX;

use super::by_type::ByType;

type Flags = [AtomicBool; TRACERS_MAX as usize];

/// Tracers that are on, but record nothing until a trigger starts them.
static PAUSED: Flags = [const { AtomicBool::new(false) }; TRACERS_MAX as usize];
/// Tracers whose triggers want a snapshot that was not fetched yet.
static SNAPSHOT: Flags = [const { AtomicBool::new(false) }; TRACERS_MAX as usize];

/// What is done at one moment of a call; bits are numbers of tracers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Actions {
    pub(crate) start: u64,
    /// Stronger than `start`.
    pub(crate) stop: u64,
    /// Unless the tracer pauses.
    pub(crate) snapshot: u64,
}

fn each(tracers: u64, mut work: impl FnMut(usize)) {
    let mut rest = tracers;
    while rest != 0 {
        work(rest.trailing_zeros() as usize);
        rest &= rest - 1;
    }
}

/// Stores what is not there yet: a line without changes stays in every processor's cache.
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

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            start: self.start | other.start,
            stop: self.stop | other.stop,
            snapshot: self.snapshot | other.snapshot,
        }
    }

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

/// Makes a tracer pause, or not, from now on.
pub(crate) fn pause(tracer: u32, pauses: bool) {
    PAUSED[tracer as usize % PAUSED.len()].store(pauses, Relaxed);
}

/// Whether a tracer pauses.
pub(crate) fn is_paused(tracer: u32) -> bool {
    PAUSED[tracer as usize % PAUSED.len()].load(Relaxed)
}

/// Whether a snapshot was wanted by a tracer's trigger since this was asked last.
pub(crate) fn take_snapshot(tracer: u32) -> bool {
    SNAPSHOT[tracer as usize % SNAPSHOT.len()].swap(false, Relaxed)
}

/// Whether a tracer's trigger wants a snapshot. It stays wanted.
pub(crate) fn wants_snapshot(tracer: u32) -> bool {
    SNAPSHOT[tracer as usize % SNAPSHOT.len()].load(Relaxed)
}

/// The types in place of one for which some tracers pause, by which of them do (bit n of the index:
/// the n-th of them).
#[derive(Debug, PartialEq, Eq)]
struct Paused(Vec<Option<u32>>);

static PAUSED_TYPES: ByType<Paused> = ByType::new();

/// Says which types stand in for `number`, from "none pauses" (itself) to "all do". Only the
/// control path comes here.
pub(crate) fn set_types(number: u32, types: Vec<Option<u32>>) {
    let types = Paused(types);
    if PAUSED_TYPES.get(number) != Some(&types) {
        PAUSED_TYPES.set(number, Box::leak(Box::new(types)));
    }
}

/// The type that a call of type `number` has now, where `tracers` may pause; `None`: no
/// tracer wants it.
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
