//! A span as one function, for looking at its machine code (`tests/session/codegen.rs`). By itself, because the
//! compiler makes other code of the slow ways that all events of a program share.

use ringmark::span;

/// A span with one u64, and nothing in it.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn hot_path_span(value: u64) {
    let _span = span!("hot.span", value = value);
}

fn main() {
    ringmark::start_from_env();
    for i in 0..1000 {
        hot_path_span(i);
    }
}
