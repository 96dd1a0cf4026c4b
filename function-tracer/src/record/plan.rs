//! What is done with the calls of each function type. Written before a site is switched on, found
//! by the slow way with one load.

use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Release};

use ringmark_format::function::LAST_NUMBER;

/// What is done with the calls of a function type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Records are written.
    pub(crate) record: bool,
    /// Its return is recorded.
    pub(crate) exit: bool,
    /// By sites at all its exits; else its return address is replaced.
    pub(crate) sleds: bool,
    /// Its entry carries the caller and the CPU.
    pub(crate) caller: bool,
    /// So many integer arguments are recorded, at most six; behind the caller.
    pub(crate) arguments: u8,
    /// Its return value is recorded.
    pub(crate) result: bool,
    /// Only calls that took so many ticks are recorded, each as one record at its end.
    pub(crate) min_ticks: Option<u64>,
    /// Called at each entry.
    pub(crate) callback: Option<Callback>,
}

/// The function of a callback tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Callback(usize);

impl Callback {
    /// `function` gets an address in the function that was called, and the return address of the
    /// call. It runs on the thread that called, on a small stack of ours, at every entry; entries
    /// inside it are recorded, but call no callback.
    #[must_use]
    pub fn new(function: extern "C" fn(function: u64, caller: u64)) -> Self {
        Self(function as usize)
    }

    pub(crate) fn call(self, function: u64, caller: u64) {
        // SAFETY: made of such a function by `new`.
        let callback: extern "C" fn(u64, u64) = unsafe { core::mem::transmute(self.0) };
        callback(function, caller);
    }
}

impl Plan {
    /// Nothing but entry and exit: what one straight line does.
    pub(crate) const CALLS: Self = Self {
        record: true,
        exit: true,
        sleds: false,
        caller: false,
        arguments: 0,
        result: false,
        min_ticks: None,
        callback: None,
    };

    /// The same where all exits are sites.
    pub(crate) const CALLS_WITH_SLEDS: Self = Self {
        sleds: true,
        ..Self::CALLS
    };

    /// Entry with its caller, no exit: what the other straight line does.
    pub(crate) const CALLERS: Self = Self {
        exit: false,
        caller: true,
        ..Self::CALLS
    };

    /// What can be had of it at a site inside a function, where registers do not hold arguments.
    pub(crate) fn inside(self) -> Self {
        Self {
            arguments: 0,
            ..self
        }
    }

    /// What both want. Calls below a duration are left out only if both leave them out; of two
    /// callbacks the first counts.
    pub(crate) fn and(self, other: Self) -> Self {
        let recording = |plan: Self| plan.record.then_some(plan.min_ticks);
        let min_ticks = match (recording(self), recording(other)) {
            (Some(a), Some(b)) => a.zip(b).map(|(a, b)| a.min(b)),
            (a, b) => a.or(b).flatten(),
        };
        Self {
            record: self.record || other.record,
            exit: self.exit || other.exit,
            sleds: self.sleds || other.sleds,
            caller: self.caller || other.caller,
            arguments: self.arguments.max(other.arguments),
            result: self.result || other.result,
            min_ticks,
            callback: self.callback.or(other.callback),
        }
    }
}

/// Plans in chunks, so that few types take little memory.
const CHUNK: usize = 4096;
const CHUNKS: usize = (LAST_NUMBER as usize + 1) / CHUNK;

struct Chunk([AtomicPtr<Plan>; CHUNK]);

static CHUNK_POINTERS: [AtomicPtr<Chunk>; CHUNKS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS];

/// The plan of the function type with this number. A type is switched on after its plan was set;
/// should none be found, entry and exit are recorded.
pub(crate) fn of(number: u32) -> Plan {
    let place = (number & LAST_NUMBER) as usize;
    let chunk = CHUNK_POINTERS[place / CHUNK].load(Acquire);
    // SAFETY: null, or a chunk that was leaked.
    let Some(chunk) = (unsafe { chunk.as_ref() }) else {
        return Plan::CALLS;
    };
    let plan = chunk.0[place % CHUNK].load(Acquire);
    // SAFETY: null, or a plan that was leaked.
    unsafe { plan.as_ref() }.copied().unwrap_or(Plan::CALLS)
}

/// Sets a type's plan, once. Only the control path comes here, one thread at a time.
pub(crate) fn set(number: u32, plan: &'static Plan) {
    let place = (number & LAST_NUMBER) as usize;
    let pointer = &CHUNK_POINTERS[place / CHUNK];
    if pointer.load(Acquire).is_null() {
        let fresh = Chunk([const { AtomicPtr::new(ptr::null_mut()) }; CHUNK]);
        pointer.store(Box::into_raw(Box::new(fresh)), Release);
    }
    // SAFETY: set above or before, and never freed.
    if let Some(chunk) = unsafe { pointer.load(Acquire).as_ref() } {
        chunk.0[place % CHUNK].store(ptr::from_ref(plan).cast_mut(), Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tracers_get_what_both_want() {
        let long = Plan {
            min_ticks: Some(100),
            ..Plan::CALLS
        };
        let longer = Plan {
            min_ticks: Some(200),
            ..Plan::CALLS
        };
        assert_eq!(long.and(longer), long);
        assert_eq!(long.and(Plan::CALLS), Plan::CALLS);
        let both = Plan::CALLS.and(Plan::CALLERS);
        assert!(both.exit && both.caller && both.record);
        let callback = Plan {
            record: false,
            exit: false,
            ..Plan::CALLS
        };
        assert_eq!(long.and(callback).min_ticks, Some(100));
    }

    #[test]
    fn types_have_their_own_plans() {
        static CALLERS: Plan = Plan::CALLERS;
        assert_eq!(of(5), Plan::CALLS);
        set(5, &CALLERS);
        set(LAST_NUMBER, &CALLERS);
        assert_eq!(of(5), Plan::CALLERS);
        assert_eq!(of(LAST_NUMBER), Plan::CALLERS);
        assert_eq!(of(6), Plan::CALLS);
    }
}
