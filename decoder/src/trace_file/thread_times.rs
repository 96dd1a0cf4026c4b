//! Where the time of a thread went between two of its records.

/// What a thread did for how long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// ns on a processor.
    pub running_ns: u64,
    /// ns in which it could run, and another thread had got its processor.
    pub ready_ns: u64,
    /// ns of those in which its control group had used up its time on processors.
    pub throttled_ns: u64,
    /// ns in which it waited, and those from woken to running.
    pub waiting_ns: u64,
    /// How often it began to wait.
    pub waits: u64,
    /// How often it had to leave its processor to another thread.
    pub preemptions: u64,
}

impl ThreadTimes {
    /// All of it, in ns.
    #[must_use]
    pub const fn all_ns(self) -> u64 {
        let off = self.ready_ns.saturating_add(self.waiting_ns);
        self.running_ns.saturating_add(off)
    }

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            running_ns: self.running_ns.saturating_add(other.running_ns),
            ready_ns: self.ready_ns.saturating_add(other.ready_ns),
            throttled_ns: self.throttled_ns.saturating_add(other.throttled_ns),
            waiting_ns: self.waiting_ns.saturating_add(other.waiting_ns),
            waits: self.waits.saturating_add(other.waits),
            preemptions: self.preemptions.saturating_add(other.preemptions),
        }
    }

    /// What is left of it without a part of it.
    #[must_use]
    pub const fn without(self, part: Self) -> Self {
        Self {
            running_ns: self.running_ns.saturating_sub(part.running_ns),
            ready_ns: self.ready_ns.saturating_sub(part.ready_ns),
            throttled_ns: self.throttled_ns.saturating_sub(part.throttled_ns),
            waiting_ns: self.waiting_ns.saturating_sub(part.waiting_ns),
            waits: self.waits.saturating_sub(part.waits),
            preemptions: self.preemptions.saturating_sub(part.preemptions),
        }
    }
}
