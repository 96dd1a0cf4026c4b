//! A program with two spans of `tracing`: `spins` runs, and is entered twice, `sleeps` waits.
#![forbid(unsafe_code)]

use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tracing::info_span;
use tracing_subscriber::layer::SubscriberExt;

const PART: Duration = Duration::from_millis(250);

/// This thread's processor time.
fn ran() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// Runs for so long.
#[inline(never)]
fn spin() {
    let begun = ran();
    while ran() - begun < PART {}
}

fn main() {
    let _session = ringmark::start_from_env();
    let subscriber = tracing_subscriber::registry().with(ringmark::tracing::layer());
    tracing::subscriber::set_global_default(subscriber).expect("the first one");
    // The recorder finds the session and begins to watch.
    thread::sleep(PART);
    let spins = info_span!("spins");
    spins.in_scope(spin);
    thread::sleep(PART);
    spins.in_scope(spin);
    drop(spins);
    info_span!("sleeps").in_scope(|| thread::sleep(2 * PART));
}
