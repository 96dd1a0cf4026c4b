//! Loading the function tracer into a process that runs without it.

use crate::output::Failure;

/// Loads the shared object into the process, which then has a session that answers `trace`.
///
/// # Errors
/// Always: this release does not.
pub(crate) fn load(pid: u32) -> Result<(), Failure> {
    Err(Failure::no_target(format!(
        "pid {pid}: runs without the function tracer; start it with 'ringmark run --tracer graph', \
         or with libringmark_functions.so in LD_PRELOAD and RINGMARK=1"
    )))
}
