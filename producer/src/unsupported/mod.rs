//! What stands in for tracing on the systems and processors where Ringmark cannot trace.
//!
//! A program with any of the macros compiles there. Every event type stays disabled, so arguments
//! are type-checked and never evaluated; starting a session returns
//! [`StartError::Unsupported`](crate::StartError::Unsupported). The rest of the crate is the same
//! everywhere and finds here, under the same names, what it uses of the modules that trace.
//!
//! `RUSTFLAGS="--cfg ringmark_unsupported"` selects this module on any system, for tests.

#[path = "../ring_stand_in.rs"]
pub(crate) mod ring;
pub(crate) mod session;
#[cfg(feature = "tracing")]
pub mod tracing;

/// Linker sections: no session looks for event types, so call sites leave nothing behind.
pub(crate) mod sites {
    use crate::description::Description;

    type Describe = fn(to: &mut dyn FnMut(Description<'_>));

    /// What describes an event type.
    pub(crate) trait DescribeSite {
        /// Gives the description to `to`.
        fn describe(to: &mut dyn FnMut(Description<'_>));
    }

    /// Compiles the description of the event type, so that a wrong one is an error here, too.
    #[inline(always)]
    pub(crate) fn declare<T: DescribeSite>() {
        let _: Describe = T::describe;
    }
}

/// Thread blocks: no thread has a ring.
pub(crate) mod thread_block {
    use super::ring::Writer;

    /// The thread's writer: none.
    #[inline(always)]
    pub(crate) fn writer() -> Option<&'static Writer> {
        None
    }
}

/// Sites of `#[trace_fn]`: no function tracer comes.
#[cfg(feature = "functions")]
pub(crate) mod arch {
    /// Leaves nothing in the function.
    #[inline(always)]
    pub fn function_site() {}
}
