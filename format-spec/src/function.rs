//! Function records: the bits of their types, and the schema entries that say what they mean.
//!
//! A type with [`crate::record::FUNCTION_BIT`] set is a function type: bits `0..20` its number,
//! [`EXIT_BIT`], [`LOOSE_BIT`] and [`SLOT_BIT`] what happened. The payload of an entry is empty, or a
//! [`CallerWord`], then integer arguments; that of an exit is empty, or the return value. With
//! [`SLOT_BIT`] a word comes before.

use crate::record::FUNCTION_BIT;

/// Set: the function was left. Clear: it was entered.
pub const EXIT_BIT: u32 = 1 << 22;
/// On an entry: no exit of this call will be recorded. On an exit: the call did not return, it was
/// unwound (by an exception, a `longjmp`, the end of its thread), at the latest at this tick.
pub const LOOSE_BIT: u32 = 1 << 21;
/// The call is on a stack that is not the thread's own, such as a coroutine's. The first word of the
/// payload is its slot: the address at which that stack holds its return address. An exit ends the
/// call with the same slot, whichever thread records it.
pub const SLOT_BIT: u32 = 1 << 20;
/// Largest number of a function type.
pub const LAST_NUMBER: u32 = SLOT_BIT - 1;

/// Flag of [`FunctionTypesEntry::flags`]: one record per call, an exit, whose first payload word
/// is the call's duration in ticks; the return value may follow.
pub const TIMED: u32 = 1;

/// Flag of [`TracerEntry::flags`]: commands that name no tracer mean this one.
pub const DEFAULT: u8 = 1;

/// Tracers of a session. The number of a tracer is a bit of [`FunctionTypesEntry::tracers`].
pub const TRACERS_MAX: u32 = 64;

layout! {
    /// Fixed part of a MODULE entry. Its id counts modules from 0.
    pub struct ModuleEntry: 16 {
        /// Where it was loaded: add this to addresses of its file.
        0 base: u64,
        /// Size of its mapping in bytes.
        8 bytes: u64,
    }
}

layout! {
    /// Fixed part of a FUNCTION entry. Its id counts functions from 0.
    pub struct FunctionEntry: 16 {
        /// Address of its first instruction in the process.
        0 address: u64,
        /// Size in bytes; 0: not known.
        8 bytes: u32,
        /// Id of its module.
        12 module: u32,
    }
}

layout! {
    /// Fixed part of a FUNCTION_TYPES entry. Its id is a number n: the types with the numbers
    /// n .. n + `count` are those of `count` functions in order.
    pub struct FunctionTypesEntry: 24 {
        /// Bit t: tracer t wants these records.
        0 tracers: u64,
        /// Id of the first function.
        8 first_function: u32,
        /// Number of functions, at least 1.
        12 count: u32,
        /// Bit 0: [`TIMED`].
        16 flags: u32,
        /// Zero.
        20 reserved: u32,
    }
}

layout! {
    /// Fixed part of a TRACER entry. Its id is the tracer's number.
    pub struct TracerEntry: 8 {
        /// See [`TracerKind`].
        0 kind: u8,
        /// Bit 0: [`DEFAULT`].
        1 flags: u8,
        /// Zero.
        2 reserved: u16,
        /// Zero.
        4 reserved_word: u32,
    }
}

numbered! {
    /// What a function tracer does with the calls of its functions.
    TracerKind {
        /// One line for each entry, with its caller.
        Function = 1 "function",
        /// Calls nested, with durations.
        Graph = 2 "graph",
        /// Counts and times for each function, kept in the process.
        Profile = 3 "profile",
        /// The program's own callback is called.
        Callback = 4 "callback",
    }
}

/// Where a function was called from: the first payload word of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallerWord {
    /// Return address, [`CALLER_BITS`] bits; 0: not known.
    pub address: u64,
    /// CPU that the entry was recorded on; `None`: not known.
    pub cpu: Option<u32>,
}

impl CallerWord {
    /// Takes the word apart.
    #[must_use]
    pub const fn unpack(word: u64) -> Self {
        let cpu = (word >> CALLER_BITS) as u32;
        Self {
            address: word & ((1 << CALLER_BITS) - 1),
            cpu: cpu.checked_sub(1),
        }
    }
}

/// Bits of the return address in an entry's first payload word.
pub const CALLER_BITS: u32 = 48;

/// The parts of a type id of function records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionType {
    /// Number of the function type, see [`FunctionTypesEntry`].
    pub number: u32,
    /// Whether the function was left; else it was entered.
    pub exit: bool,
    /// Whether an end is missing or was unwound: see [`LOOSE_BIT`].
    pub loose: bool,
    /// Whether the payload begins with the call's slot: see [`SLOT_BIT`].
    pub has_slot: bool,
}

impl FunctionType {
    /// Takes a type id apart; `None`: it is no type of function records.
    #[must_use]
    pub const fn unpack(type_id: u32) -> Option<Self> {
        if type_id & FUNCTION_BIT == 0 {
            return None;
        }
        Some(Self {
            number: type_id & LAST_NUMBER,
            exit: type_id & EXIT_BIT != 0,
            loose: type_id & LOOSE_BIT != 0,
            has_slot: type_id & SLOT_BIT != 0,
        })
    }

    /// The type id with these parts.
    #[must_use]
    pub const fn pack(self) -> u32 {
        let exit = if self.exit { EXIT_BIT } else { 0 };
        let loose = if self.loose { LOOSE_BIT } else { 0 };
        let slot = if self.has_slot { SLOT_BIT } else { 0 };
        FUNCTION_BIT | exit | loose | slot | (self.number & LAST_NUMBER)
    }
}
