//! Groups of options that several commands take.

pub(crate) mod calls;
pub(crate) mod event_filter;
pub(crate) mod figures;
pub(crate) mod moment;
pub(crate) mod perf;
pub(crate) mod process;
pub(crate) mod rows;
pub(crate) mod sessions;
mod threads;
