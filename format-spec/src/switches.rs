//! SWITCHES: the moments at which the threads of a process got a processor and left it, as the kernel
//! noted them for who recorded the process.

layout! {
    /// Start of a SWITCHES block: the switches of a session's process in a span of time. `switches`
    /// [`Switch`]es follow, by `mono_ns`.
    pub struct Switches: 32 {
        /// `CLOCK_MONOTONIC` of the session from when on they are here, ns.
        0 from_mono_ns: u64,
        /// `CLOCK_MONOTONIC` of the session up to which they are here, ns; that moment is not in it.
        8 to_mono_ns: u64,
        /// Switches of that time that may be missing, because there was no room for them; 0: none is.
        16 lost: u64,
        /// [`Switch`]es that follow.
        24 switches: u32,
        /// Zero.
        28 reserved: u32,
    }
}

layout! {
    /// One switch in a SWITCHES block.
    pub struct Switch: 16 {
        /// When, on `CLOCK_MONOTONIC` of the session, ns.
        0 mono_ns: u64,
        /// Thread id, in the process's own pid namespace.
        8 tid: u32,
        /// What the thread does from then on: see [`turn`].
        12 turn: u16,
        /// Number of the processor that it gets or leaves, as the kernel counts them; [`NO_CPU`]: not known.
        14 cpu: u16,
    }
}

/// A processor that is not known.
pub const NO_CPU: u16 = u16::MAX;

/// Values of [`Switch::turn`].
pub mod turn {
    /// It runs: it got a processor.
    pub const RUNS: u16 = 1;
    /// It could run, and left its processor to another thread.
    pub const READY: u16 = 2;
    /// It left its processor, and waits.
    pub const WAITS: u16 = 3;
    /// It has ended.
    pub const ENDED: u16 = 4;
    /// No switch: all its switches from then on are noted.
    pub const SEEN: u16 = 5;
    /// It runs: its control group, which had used up its time on processors, has some again.
    pub const UNTHROTTLED: u16 = 6;
}

/// Most ns by which a tick that was turned into `CLOCK_MONOTONIC` is taken to be wrong.
pub const SLACK_NS: u64 = 100_000;
