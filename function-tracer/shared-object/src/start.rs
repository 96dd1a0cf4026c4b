//! What happens before the code of a program with this object in `LD_PRELOAD`: a session starts as
//! `RINGMARK` says, and function tracers as `RINGMARK_TRACE` says. Without `RINGMARK` nothing
//! happens.

use std::ffi::{OsStr, c_char, c_int};
use std::panic::catch_unwind;

use ringmark_function_tracer::{Threads, control};

type Constructor = extern "C" fn(c_int, *const *const c_char, *const *const c_char);

// The loader calls the functions of this section with these arguments.
#[unsafe(link_section = ".init_array")]
#[used]
static START: Constructor = start;

extern "C" fn start(_: c_int, _: *const *const c_char, _: *const *const c_char) {
    // The program goes on without tracing, whatever happens here.
    let _ = catch_unwind(begin);
}

fn begin() {
    // Found before the session starts a thread of its own.
    let threads = threads();
    // Dropping the handle does nothing.
    let Some(_session) = ringmark::Session::start_in_front_of_program() else {
        return;
    };
    // A program with more rights than its caller has no session: none of the variables counts there.
    let requests = std::env::var("RINGMARK_TRACE").unwrap_or_default();
    if let Err(error) = control::install_and_start(threads, &requests)
        && ringmark::__private::raw::is_verbose()
    {
        let line = format!("ringmark: RINGMARK_TRACE: {error}\n");
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
    }
}

/// [`Threads::NotYet`] if the program has not begun: the object was preloaded, not loaded later, and
/// no other object's constructor has started a thread.
fn threads() -> Threads {
    let preloaded = std::env::var_os("LD_PRELOAD").is_some_and(|names| names_this(&names));
    if preloaded && is_alone() {
        Threads::NotYet
    } else {
        Threads::Running
    }
}

fn is_alone() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let count = lines.find_map(|line| line.strip_prefix("Threads:"));
    count.is_some_and(|count| count.trim() == "1")
}

fn names_this(names: &OsStr) -> bool {
    names
        .to_string_lossy()
        .split([':', ' '])
        .any(|name| name.rsplit('/').next() == Some("libringmark_functions.so"))
}
