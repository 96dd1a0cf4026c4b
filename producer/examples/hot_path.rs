//! The event path as one function each, for looking at its machine code (`tests/session/codegen.rs`). With an
//! argument, after a pause in which the open page has become too old for 32 bits of ticks.

use ringmark::event;

/// One event with one u64.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn hot_path_event_u64(value: u64) {
    event!("hot.event", value = value);
}

/// One event without arguments.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn hot_path_event_empty() {
    event!("hot.empty");
}

/// One event with several arguments.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn hot_path_event_mixed(status: u16, ok: bool, bytes: u64) {
    event!("hot.mixed", status = status, ok = ok, bytes = bytes);
}

fn main() {
    ringmark::start_from_env();
    if std::env::args().len() > 1 {
        hot_path_event_empty();
        std::thread::sleep(std::time::Duration::from_millis(2500));
    }
    for i in 0..1000 {
        hot_path_event_u64(i);
        hot_path_event_empty();
        hot_path_event_mixed(200, true, i);
    }
}
