//! The first program of README.md.

use ringmark::{counter, event, span};

fn main() {
    // Traced if RINGMARK says so, which `ringmark run` sees to. Otherwise every macro does nothing.
    let _session = ringmark::start_from_env();

    for request in 0..1000_u64 {
        let _span = span!("request", id = request);
        event!("request.accepted", id = request, bytes = 512_u32);
        counter!("queue.depth", 1000 - request);
    }
}
