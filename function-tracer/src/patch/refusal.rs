//! Why a site was not switched.

use std::io;
use std::sync::Arc;

/// Why a site was not switched.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    /// Its module was unloaded, or there never was such a site.
    #[error("no such site: its module is not loaded")]
    Gone,
    /// Its bytes are not ours: a debugger's breakpoint, another tracer.
    #[error("found {found:02x?}, expected {expected:02x?}: another tool changed it")]
    Changed {
        /// What stands there.
        found: Vec<u8>,
        /// What was left there.
        expected: Vec<u8>,
    },
    /// No place for its pad.
    #[error("no pad for it: {0}")]
    Room(#[source] Arc<io::Error>),
    /// Code that cannot be written.
    #[error("its code cannot be changed: {0}")]
    Text(#[source] Arc<io::Error>),
    /// A list of modules that changed during every attempt.
    #[error("its code cannot be changed: modules were loaded and unloaded all the while")]
    Restless,
}
