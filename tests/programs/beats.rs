//! A program that beats every 5 ms until its input ends: `beats COUNT` says `ready` after COUNT beats.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use std::{env, thread};

use ringmark::client::monotonic_ns;
use ringmark::event;

static STOP: AtomicBool = AtomicBool::new(false);

fn main() {
    let count = env::args().nth(1).and_then(|n| n.parse().ok());
    let count: u64 = count.expect("a number");
    let _session = ringmark::tracing::init().ok().flatten();
    thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        STOP.store(true, Relaxed);
    });
    let outer = tracing::info_span!("beats.outer").entered();
    let mut before = 0;
    for seq in 0.. {
        let ns = monotonic_ns();
        event!("beats.beat", seq = seq, before = before, ns = ns);
        tracing::info_span!("beats.inner").in_scope(|| thread::sleep(Duration::from_millis(5)));
        before = ns;
        if seq + 1 == count {
            println!("ready");
        }
        if STOP.load(Relaxed) {
            break;
        }
    }
    drop(outer);
}
