//! What this system lets Ringmark do: whether programs of this user can be traced, how much a session
//! gets, what is told of processes.
//!
//! Nothing is changed and no session is started. Each look gives a [`Finding`]: what was found, how
//! well it works, what to do.

mod ends;
mod finding;
mod formats;
mod limits;
mod mounts;
mod namespaces;
mod place;
mod processor;

pub use ends::ends;
pub use finding::{Finding, Verdict};

/// Everything that can be seen without a process to look at. `session_bytes`: what a session takes if
/// it may.
#[must_use]
pub fn findings(session_bytes: u64) -> Vec<Finding> {
    let mut findings = place::findings(session_bytes);
    findings.extend(limits::findings(session_bytes));
    findings.push(formats::finding());
    findings.push(processor::finding());
    findings.extend(namespaces::findings());
    findings
}
