//! The ring file: its header (fixed after the session started) and its state (what changes).

use crate::counters::CAUSES;

/// First bytes of a ring file.
pub const RING_FILE_MAGIC: [u8; 8] = *b"RINGMARK";

/// What a session does when a ring is full. Named by what may be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Mode {
    /// The newest event is lost, and counted; a reader releases pages.
    Discard = 1,
    /// The oldest page is overwritten; a reader only observes.
    Overwrite = 2,
}

impl Mode {
    /// Every mode in the order of its number.
    pub const ALL: [Self; 2] = [Self::Discard, Self::Overwrite];

    /// The mode with this number, if there is one.
    #[must_use]
    pub const fn from_u32(value: u32) -> Option<Self> {
        match value {
            1 => Some(Self::Discard),
            2 => Some(Self::Overwrite),
            _ => None,
        }
    }

    /// The mode's name in options and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Discard => "discard",
            Self::Overwrite => "overwrite",
        }
    }

    /// The mode of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// What a tick is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Clock {
    /// The processor's counter, at one rate: the time stamp counter of x86-64, the virtual counter of aarch64.
    Tsc = 1,
    /// `CLOCK_MONOTONIC` in nanoseconds.
    Monotonic = 2,
    /// `CLOCK_MONOTONIC_COARSE` in nanoseconds: the resolution of the kernel's timer tick.
    Coarse = 3,
    /// No clock: ticks are 0, order within a ring is all that is known.
    None = 4,
}

impl Clock {
    /// Every clock in the order of its number.
    pub const ALL: [Self; 4] = [Self::Tsc, Self::Monotonic, Self::Coarse, Self::None];

    /// The clock with this number, if there is one.
    #[must_use]
    pub const fn from_u32(value: u32) -> Option<Self> {
        match value {
            1 => Some(Self::Tsc),
            2 => Some(Self::Monotonic),
            3 => Some(Self::Coarse),
            4 => Some(Self::None),
            _ => None,
        }
    }

    /// The clock's name in options and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tsc => "tsc",
            Self::Monotonic => "monotonic",
            Self::Coarse => "coarse",
            Self::None => "none",
        }
    }

    /// The clock of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|clock| clock.name() == name)
    }
}

layout! {
    /// Start of the ring file, and content of the SESSION block of a trace file. The session
    /// attributes follow in both. Nothing in it changes after the session was published.
    pub struct SessionHeader: 320 {
        /// [`RING_FILE_MAGIC`].
        0 magic: [u8; 8],
        /// Major version of the format.
        8 version_major: u16,
        /// Minor version of the format.
        10 version_minor: u16,
        /// [`crate::ENDIAN_MARK`].
        12 endian: u32,
        /// Size of the header region: this struct, then `attributes_bytes` of attributes, then
        /// zeros.
        16 header_bytes: u64,
        /// Size of the file; fixed, not all of it need be allocated.
        24 file_bytes: u64,
        /// Offset of [`SessionState`].
        32 state_offset: u64,
        /// Offset of the control mailbox; 0 = control off.
        40 mailbox_offset: u64,
        /// Size of the mailbox region.
        48 mailbox_bytes: u64,
        /// Offset of the consumed words: one u64 per slot. The only region a consumer writes.
        56 consumed_offset: u64,
        /// Offset of the ring directory: `slots` entries of [`crate::slot::Slot`].
        64 directory_offset: u64,
        /// Offset of the bitmap of enabled event types, bit n of byte n/8 = type id n.
        72 enabled_offset: u64,
        /// Size of that bitmap; types beyond it have no bit.
        80 enabled_bytes: u64,
        /// Number of directory entries.
        88 slots: u32,
        /// [`Mode`].
        92 mode: u32,
        /// [`Clock`].
        96 clock: u32,
        /// Page size of a ring of the wanted size; each ring states its own.
        100 page_bytes: u32,
        /// Wanted size of a ring; each ring states its own.
        104 ring_bytes: u32,
        /// Size of the session attributes that follow this struct.
        108 attributes_bytes: u32,
        /// Random identity of the session.
        112 session: [u8; 16],
        /// Boot id of the kernel (`/proc/sys/kernel/random/boot_id`).
        128 boot_id: [u8; 16],
        /// Process id in the process's own pid namespace.
        144 pid: u32,
        /// Effective user id.
        148 uid: u32,
        /// Start time of the process in clock ticks since boot (`/proc/PID/stat`, field 22).
        152 start_time: u64,
        /// Inode of the pid namespace.
        160 pid_namespace: u64,
        /// Tick of the first clock sample.
        168 tick_zero: u64,
        /// `CLOCK_MONOTONIC` of the first clock sample, in ns.
        176 mono_zero_ns: u64,
        /// `CLOCK_REALTIME` of the first clock sample, in ns since 1970.
        184 real_zero_ns: u64,
        /// Nominal rate: ns = (ticks * tick_mult) >> tick_shift, in 128 bits.
        192 tick_mult: u64,
        /// See `tick_mult`.
        200 tick_shift: u32,
        /// Bit 0: the wanted clock was not usable and another one is declared.
        204 flags: u32,
        /// Parent process id at start.
        208 parent_pid: u32,
        /// What happens to the file at exit: 0 crash, 1 always, 2 never.
        212 keep: u32,
        /// Zero.
        216 reserved: [u64; 13],
    }
}

/// Identity of a process, the same in all session files that it has: several copies of the library
/// in one process have a session each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    /// Boot id of its kernel.
    pub boot_id: [u8; 16],
    /// Inode of its pid namespace.
    pub pid_namespace: u64,
    /// Its id in that namespace.
    pub pid: u32,
    /// When it started, in clock ticks since boot: a pid is used again.
    pub start_time: u64,
}

impl SessionHeader {
    /// Identity of the session's process; `None`: the header does not tell it from a later process
    /// of the same pid.
    #[must_use]
    pub const fn process(&self) -> Option<ProcessId> {
        if self.pid == 0 || self.start_time == 0 {
            return None;
        }
        Some(ProcessId {
            boot_id: self.boot_id,
            pid_namespace: self.pid_namespace,
            pid: self.pid,
            start_time: self.start_time,
        })
    }
}

/// Flag of [`SessionHeader::flags`]: the wanted clock was not usable.
pub const FLAG_CLOCK_FELL_BACK: u32 = 1;

/// Number of schema extents a session can have.
pub const SCHEMA_EXTENTS: usize = 16;

layout! {
    /// A piece of the ring file.
    pub struct Extent: 16 {
        /// Offset from the start of the file.
        0 offset: u64,
        /// Size; 0 = not in use.
        8 bytes: u64,
    }
}

layout! {
    /// What changes in a session. Written by the producer only.
    pub struct SessionState: 512 {
        /// Phase: 0 starting, 1 live, 2 closed, 3 exiting.
        0 phase: u64,
        /// Published length of the schema stream; stored with Release after the bytes.
        8 schema_bytes: u64,
        /// Directory entries in use: readers look at slots `0..slots_used`.
        16 slots_used: u64,
        /// Next ring id.
        24 next_ring_id: u64,
        /// Bytes of the file handed out so far.
        32 allocated_bytes: u64,
        /// Counts changes of the enabled bitmap.
        40 enabled_generation: u64,
        /// Events lost that belong to no ring, by cause.
        48 lost: [u64; CAUSES],
        /// Bit 0: the schema stream had no room for an entry ([`SCHEMA_INCOMPLETE`]).
        112 flags: u64,
        /// Status with which the process exits, stored before `phase` becomes 3: see
        /// [`exit_status`]. 0: not known.
        120 exit_status: u64,
        /// Sum of all consumed words, and one more, when a wait for room last came to its end in vain;
        /// 0: none did, or a page was released since.
        128 wait_in_vain: u64,
        /// Zero.
        136 reserved: [u64; 15],
        /// The extents of the schema stream, in order.
        256 schema_extents: [Extent; SCHEMA_EXTENTS],
    }
}

/// Flag of [`SessionState::flags`]: the schema stream had no room for an entry. Records of types
/// without a description are kept, and readers can only show them raw.
pub const SCHEMA_INCOMPLETE: u64 = 1;

/// Values of [`SessionState::phase`].
pub mod phase {
    /// Being set up; readers wait, or leave it alone.
    pub const STARTING: u64 = 0;
    /// In use.
    pub const LIVE: u64 = 1;
    /// Closed by the program: all event types are off.
    pub const CLOSED: u64 = 2;
    /// The process ends by a clean exit. Its exit handlers and other threads may still write until
    /// it is gone.
    pub const EXITING: u64 = 3;
}

/// [`SessionState::exit_status`]: the low 8 bits are the status, bit 8 says that there is one.
pub mod exit_status {
    /// Bit that tells status 0 from a status that is not known.
    const KNOWN: u64 = 0x100;

    /// The word of a process that called `exit(status)`, of which its parent sees 8 bits.
    #[must_use]
    pub const fn word(status: i32) -> u64 {
        KNOWN | (status & 0xFF) as u64
    }

    /// The status in a word, 0 to 255. `None`: no exit began, or its status was not to be had.
    #[must_use]
    pub const fn from_word(word: u64) -> Option<u8> {
        match word & !0xFF {
            KNOWN => Some(word as u8),
            _ => None,
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_status_comes_back_and_zero_is_none() {
            for status in 0..=255 {
                assert_eq!(from_word(word(status)), Some(status as u8));
            }
            assert_eq!(from_word(word(256 + 7)), Some(7));
            assert_eq!(from_word(word(-1)), Some(255));
            for unknown in [0, 0x200, 0x300, u64::MAX, 0x7F] {
                assert_eq!(from_word(unknown), None, "{unknown:#x}");
            }
        }
    }
}
