//! How many files the command may have open.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Takes as many as the system allows: sessions and connections hold several each. Not for commands
/// that start a program, which would inherit it.
pub(crate) fn take_all() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // It stays as it is.
    let _ = setrlimit(Resource::Nofile, limit);
}
