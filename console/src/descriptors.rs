//! The limit of open files.

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::units::counted;

/// Raises the limit of open files to what the system allows: sessions, connections and segments of a bucket hold some
/// each. Not for commands that start a program, which would inherit the limit.
pub fn take_all() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // On failure the limit stays as it is.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Notice about sessions that could not be opened, if there are any.
pub fn left_out(sessions: usize) -> Option<String> {
    let text = || {
        let sessions = counted(sessions as u64, "session");
        format!("{sessions} left out: see above; raise 'ulimit -n'")
    };
    (sessions > 0).then(text)
}
