//! P12: a snapshot of a live 8 MiB session while its threads go on writing; P8: what the snapshots
//! do to the writers' slowest events.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use ringmark::{Mode, Session, event};
use ringmark_benches::real::snapshot;
use ringmark_benches::{finish, percentiles, print_bar};
use ringmark_reader::Codec;

static STOP: AtomicBool = AtomicBool::new(false);

fn main() {
    let session = Session::builder()
        .mode(Mode::Overwrite)
        .ring_bytes(4 << 20)
        .session_bytes(32 << 20);
    let session = session.start().expect("a session");
    // /dev/shm: the figure is the snapshot's, not the disk's.
    let path = std::path::PathBuf::from(format!(
        "/dev/shm/ringmark-bench-{}.rmk",
        std::process::id()
    ));
    let writers: Vec<_> = (0..2).map(|_| thread::spawn(write)).collect();
    thread::sleep(std::time::Duration::from_millis(200));
    let mut ms = Vec::new();
    let mut bytes = 0;
    for _ in 0..30 {
        let (dump, seconds) = snapshot(&session, Codec::None, &path);
        bytes = bytes.max(dump.len());
        ms.push(seconds * 1000.0);
        thread::sleep(std::time::Duration::from_millis(20));
    }
    STOP.store(true, Relaxed);
    writers
        .into_iter()
        .for_each(|w| w.join().expect("a writer"));
    let [p10, median, p90] = percentiles(ms);
    println!("snapshots of {bytes} bytes: p10 {p10:.2} median {median:.2} p90 {p90:.2} ms");
    print_bar(
        "P12",
        "snapshot of a live 8 MiB session, ms",
        median,
        5.0,
        median <= 5.0,
    );
    finish(median > 5.0)
}

/// Writes like a busy program: an event, a little work.
fn write() {
    let mut i = 0_u64;
    while !STOP.load(Relaxed) {
        event!("snapshot.work", i = i);
        i += 1;
        for _ in 0..50 {
            std::hint::spin_loop();
        }
    }
}
