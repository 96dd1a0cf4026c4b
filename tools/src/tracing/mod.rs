//! What the commands for function tracing share: the functions that are meant, the shared object
//! of the function tracer, and requests to a process that runs it.

pub(crate) mod inject;
pub(crate) mod one_tracer;
pub(crate) mod options;
pub(crate) mod preload;
pub(crate) mod requests;
pub(crate) mod tracer_session;
pub(crate) mod triggers;
pub(crate) mod untraceable;
