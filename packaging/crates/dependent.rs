//! A program that depends on Ringmark as others do: an event, and one of each feature.

#[ringmark::trace_fn]
#[inline(never)]
fn traced(n: u64) -> u64 {
    n * 2
}

fn main() {
    let _session = ringmark::start_from_env();
    ringmark::event!("plain", n = traced(21));
    #[cfg(feature = "bytemuck")]
    ringmark::event!("bytes", value = ringmark::Plain([1_u16, 2]));
    #[cfg(feature = "tracing")]
    {
        // The program's session is the one that the bridge writes to.
        let _ = ringmark::tracing::init();
        tracing::info!("bridged");
    }
}
