//! What the commands for function tracing share: the functions that are meant, the shared object
//! of the function tracer, and requests to a process that runs it.

pub(crate) mod budget;
pub(crate) mod inject;
pub(crate) mod lease;
pub(crate) mod library;
pub(crate) mod mapped;
pub(crate) mod mounts;
pub(crate) mod movable;
pub(crate) mod moved_sites;
pub(crate) mod one_tracer;
pub(crate) mod options;
pub(crate) mod preload;
pub(crate) mod profiles;
pub(crate) mod requests;
pub(crate) mod rings;
pub(crate) mod source_places;
pub(crate) mod surroundings;
pub(crate) mod tracer_session;
pub(crate) mod triggers;
pub(crate) mod untraceable;
