//! Why a patch site was neither enabled nor disabled.

use std::io;
use std::sync::Arc;

use crate::sites::SiteId;

/// Why a patch site was neither enabled nor disabled.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    /// The site's module was unloaded, or no site ever had this number.
    #[error("no such site: its module is not loaded")]
    Gone,
    /// The site's bytes are another tool's: a debugger's breakpoint, another tracer.
    #[error("found {found:02x?}, expected {expected:02x?}: another tool changed it")]
    Changed {
        /// Bytes in memory.
        found: Vec<u8>,
        /// Bytes that this library left there.
        expected: Vec<u8>,
    },
    /// No trampoline could be made within reach of the site.
    #[error("no trampoline for it: {0}")]
    Trampoline(#[source] Arc<io::Error>),
    /// The site's code could not be made writable, or not be written.
    #[error("its code cannot be changed: {0}")]
    Code(#[source] Arc<io::Error>),
    /// The jump that takes the place of several instructions was not put there: threads may be between them.
    #[error("the jump that takes the place of several of its instructions is not there")]
    NotPut,
    /// The loader's list of modules changed during every attempt.
    #[error("its code cannot be changed: modules were loaded and unloaded all the while")]
    Restless,
}

/// A patch site that was neither enabled nor disabled.
#[derive(Debug, Clone)]
pub struct RefusedSite {
    /// The site's number.
    pub site: SiteId,
    /// The reason.
    pub refusal: Refusal,
}
