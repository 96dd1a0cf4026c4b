//! P12: a snapshot of a live 8 MiB session while its two threads go on writing: with a core that
//! the writers leave to it, and beside writers that keep every core busy (then the figure is that
//! of the scheduler as well, and has no bar).

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use ringmark::{Mode, Session, event};
use ringmark_benches::real::snapshot;
use ringmark_benches::{finish, percentiles, pin, print_bar};
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
    let shared = run(&session, &path, 1);
    println!(
        "beside writers on every core: median {:.2} ms",
        run(&session, &path, 2)
    );
    print_bar(
        "P12",
        "snapshot of a live 8 MiB session, ms",
        shared,
        5.0,
        shared <= 5.0,
    );
    finish(shared > 5.0)
}

/// Median of 30 snapshots in ms, taken on core 0 while two threads write on `cores` cores.
fn run(session: &Session, path: &std::path::Path, cores: usize) -> f64 {
    STOP.store(false, Relaxed);
    let writer = |n: usize| {
        thread::spawn(move || {
            pin(if cores == 1 { 1 } else { n });
            write();
        })
    };
    let writers: Vec<_> = (0..2).map(writer).collect();
    pin(0);
    thread::sleep(std::time::Duration::from_millis(200));
    let mut ms = Vec::new();
    let mut bytes = 0;
    for _ in 0..30 {
        let (dump, seconds) = snapshot(session, Codec::None, path);
        bytes = bytes.max(dump.len());
        ms.push(seconds * 1000.0);
        thread::sleep(std::time::Duration::from_millis(20));
    }
    STOP.store(true, Relaxed);
    writers
        .into_iter()
        .for_each(|w| w.join().expect("a writer"));
    let [p10, median, p90] = percentiles(ms);
    println!(
        "{bytes} bytes, writers on {cores} cores: p10 {p10:.2} median {median:.2} p90 {p90:.2} ms"
    );
    median
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
