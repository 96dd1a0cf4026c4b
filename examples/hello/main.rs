//! An event, a span and a counter.
#![forbid(unsafe_code)]

use ringmark::{counter, event, span};

fn main() {
    // Traced if RINGMARK says so, which `ringmark run` sees to. Otherwise every macro does nothing.
    let _session = ringmark::start_from_env();
    event!("started", version = env!("CARGO_PKG_VERSION"));
    for file in ["a.txt", "b.txt", "c.txt"] {
        let _span = span!("copy", file);
        counter!("bytes", file.len());
    }
}
