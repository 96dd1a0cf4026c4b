//! WAITS: what the threads of a process waited for, as whoever recorded it saw by looking at them.

layout! {
    /// Start of a WAITS block. `waits` [`SeenWait`]s follow, then `texts_bytes` bytes of texts.
    pub struct SeenWaits: 8 {
        /// [`SeenWait`]s that follow.
        0 waits: u32,
        /// Bytes of all texts.
        4 texts_bytes: u32,
    }
}

layout! {
    /// One wait in a WAITS block. It may have begun before the first look, and ended after the last one.
    pub struct SeenWait: 32 {
        /// First look at which the thread was in it, on `CLOCK_MONOTONIC` of the session, ns.
        0 from_mono_ns: u64,
        /// Last look at which it was in it, on `CLOCK_MONOTONIC` of the session, ns.
        8 to_mono_ns: u64,
        /// Thread id, in the process's own pid namespace.
        16 tid: u32,
        /// Where its text begins in the texts, in bytes.
        20 text: u32,
        /// Bytes of its text: lines of UTF-8. The first one says what for, the others the functions that wait, the
        /// innermost first.
        24 text_bytes: u32,
        /// Zero.
        28 reserved: u32,
    }
}
