//! What a caller chooses for a load.

use std::ffi::CStr;
use std::time::Duration;

/// How to load.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// How long to look for a thread that may load. Later the target is as it was.
    pub limit: Duration,
    /// A function `int name(const char *)` of the library to call once it is loaded, and its argument.
    pub call: Option<(&'a CStr, &'a CStr)>,
    /// The library makes memfds itself, which seccomp filters have to allow then.
    pub needs_memfd: bool,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            limit: Duration::from_secs(5),
            call: None,
            needs_memfd: false,
        }
    }
}
