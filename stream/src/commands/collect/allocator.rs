//! How the memory of a collector of objects is kept together.
//!
//! The C library gives each thread a heap of its own, and keeps large pieces that were freed. What thousands of
//! connections had for a moment would stay taken. It reads its settings only when a program starts, so
//! the collector begins anew once, as the same process.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Where the C library has its settings.
const VARIABLE: &str = "GLIBC_TUNABLES";
/// One heap for all threads, of which few are busy; what is larger than most pages goes back when it is freed.
const SETTINGS: &str = "glibc.malloc.arena_max=1:glibc.malloc.mmap_threshold=65536:glibc.malloc.trim_threshold=1048576";

/// Begins this program anew with these settings, unless there are some. If that fails, it goes on without.
pub(super) fn set_up() {
    if env::var_os(VARIABLE).is_some() {
        return;
    }
    let Ok(program) = env::current_exe() else {
        return;
    };
    let mut words = env::args_os();
    let mut command = Command::new(program);
    words.next().into_iter().for_each(|name| {
        let _ = command.arg0(name);
    });
    let _ = command.args(words).env(VARIABLE, SETTINGS).exec();
}
