//! SAMPLES: where the threads of a process ran, as the kernel interrupted them for whoever recorded it.

layout! {
    /// Start of a SAMPLES block. `samples` [`Sample`]s follow, then `texts_bytes` bytes of texts.
    pub struct Samples: 32 {
        /// Time of a thread on a processor from one sample to the next, ns.
        0 period_ns: u64,
        /// Samples that had no room since the block before.
        8 lost: u64,
        /// [`Sample`]s that follow.
        16 samples: u32,
        /// Bytes of all texts.
        20 texts_bytes: u32,
        /// See [`HAS_KERNEL`].
        24 flags: u32,
        /// Zero.
        28 reserved: u32,
    }
}

layout! {
    /// One sample in a SAMPLES block.
    pub struct Sample: 24 {
        /// When, on `CLOCK_MONOTONIC` of the session, ns.
        0 mono_ns: u64,
        /// Thread id, in the process's own pid namespace.
        8 tid: u32,
        /// Where its text begins in the texts, in bytes.
        12 text: u32,
        /// Bytes of its text: the functions that ran as lines of UTF-8, the innermost first.
        16 text_bytes: u32,
        /// Zero.
        20 reserved: u32,
    }
}

/// Bit of [`Samples::flags`]: there are samples of the kernel's own code, too. Their first line is [`KERNEL`].
pub const HAS_KERNEL: u32 = 1;

/// First line of a sample of the kernel's own code; no function has such a name.
pub const KERNEL: &str = "[kernel]";
