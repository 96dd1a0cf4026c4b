//! How many files the command may have open.

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::output::units::counted;

/// Takes as many as the system allows: sessions and connections hold several each. Not for commands
/// that start a program, which would inherit it.
pub(crate) fn take_all() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // It stays as it is.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// What to tell where so many sessions could not be opened.
pub(crate) fn left_out(sessions: usize) -> Option<String> {
    let text = || {
        let sessions = counted(sessions as u64, "session");
        format!("{sessions} left out: see above; raise 'ulimit -n'")
    };
    (sessions > 0).then(text)
}
