//! The types of a ring, without values: code that would write records compiles, and cannot run.

use core::convert::Infallible;
use core::marker::PhantomData;

use ringmark_format::TypeId;

/// A thread's writer: there is none.
pub(crate) enum Writer {}

impl Writer {
    pub(crate) fn clock(&self) -> u32 {
        match *self {}
    }

    pub(crate) fn push_span(
        &self,
        _type_id: TypeId,
        _words: u32,
        _fill: impl FnOnce(&mut Reservation<'_>),
    ) -> SpanPlace {
        match *self {}
    }

    pub(crate) fn pop_span(&self, _place: SpanPlace) {
        match *self {}
    }

    pub(crate) fn pop_top(&self, _place: SpanPlace) -> bool {
        match *self {}
    }

    pub(crate) fn reserve(
        &self,
        _type_id: TypeId,
        _payload_words: u64,
        _now: u64,
    ) -> Option<Reservation<'_>> {
        match *self {}
    }

    pub(crate) fn reserve_or_now(
        &self,
        _type_id: TypeId,
        _payload_words: u64,
        _now: u64,
        _again: &mut u64,
    ) -> Option<Reservation<'_>> {
        match *self {}
    }

    pub(crate) fn reserve_extended(
        &self,
        _type_id: TypeId,
        _payload_words: u64,
        _now: u64,
    ) -> Option<Reservation<'_>> {
        match *self {}
    }
}

/// Where an open span stands: nowhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpanPlace;

impl SpanPlace {
    pub(crate) const NONE: Self = Self;
}

/// A reserved record: there is none.
pub struct Reservation<'w> {
    none: Infallible,
    ring: PhantomData<&'w ()>,
}

impl<'w> Reservation<'w> {
    pub(crate) fn fill_words(
        writer: &'w Writer,
        _words: &[core::sync::atomic::AtomicU64],
        _fill: impl FnOnce(&mut Self),
    ) {
        match *writer {}
    }

    /// Payload words of the record.
    #[must_use]
    pub fn payload_words(&self) -> u64 {
        match self.none {}
    }

    /// Sets one payload word.
    pub fn set_word(&mut self, _index: usize, _value: u64) {
        match self.none {}
    }

    /// Copies bytes to the payload.
    pub fn set_bytes(&mut self, _first_word: usize, _bytes: &[u8]) {
        match self.none {}
    }

    /// Commits the record.
    pub fn commit(self) {
        match self.none {}
    }
}

/// Clocks, all of which stand still: nothing is measured where nothing is recorded.
pub(crate) mod clock {
    /// The clock of a session: 0.
    #[inline(always)]
    pub(crate) fn read(_clock: u32) -> u64 {
        0
    }

    /// Monotonic time in nanoseconds: 0, because Ringmark does not trace here.
    #[must_use]
    pub fn monotonic_ns() -> u64 {
        0
    }

    /// Processor time used so far, in nanoseconds.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct CpuTime {
        /// Time of all threads of the process.
        pub process_ns: u64,
        /// Time of the calling thread.
        pub thread_ns: u64,
    }

    impl CpuTime {
        /// CPU time: 0, because Ringmark does not trace here.
        #[must_use]
        pub fn now() -> Self {
            Self {
                process_ns: 0,
                thread_ns: 0,
            }
        }
    }
}

/// What generated code knows of a writer: nothing.
pub(crate) mod writer {
    /// Offsets in a writer: there is none.
    pub mod offsets {}
}

macro_rules! errors_without_values {
    ($($(#[$meta:meta])* $name:ident;)*) => { $(
        $(#[$meta])*
        #[derive(Debug)]
        pub enum $name {}

        impl core::fmt::Display for $name {
            fn fmt(&self, _f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match *self {}
            }
        }

        impl core::error::Error for $name {}
    )* };
}

errors_without_values! {
    /// What is wrong with a ring file: no ring file is made.
    RingFileError;
}

/// What limits a session.
pub(crate) mod room {
    /// The limit that a full file system sets: no session meets it.
    pub(crate) const FREE_SPACE: &str = "free space";
}

/// Session directories.
pub(crate) mod session_dir {
    errors_without_values! {
        /// What is wrong with a session directory: no session directory is looked for.
        DirError;
    }
}
