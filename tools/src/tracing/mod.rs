//! What the commands for function tracing share: which functions are meant, the shared object, and
//! requests to a process that has it.

pub(crate) mod inject;
pub(crate) mod options;
pub(crate) mod preload;
pub(crate) mod sites;
pub(crate) mod target;
pub(crate) mod triggers;
