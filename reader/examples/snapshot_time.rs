//! How long a snapshot of a live 8 MiB overwrite session takes while two threads write flat out.
//! `cargo run --release -p ringmark-reader --example snapshot_time [OUTPUT [WRITERS]]`
#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{Dir, Layout, Producer, emit};
use ringmark_format::session::Mode;
use ringmark_reader::{Access, Destination, Dump, Session, snapshot};

fn main() {
    let mut args = std::env::args().skip(1);
    let output = args.next().unwrap_or("/tmp/snapshot_time.rmk".into());
    let writers = args.next().and_then(|a| a.parse().ok()).unwrap_or(2);
    let dir = Dir::new("snapshot-time");
    let mut layout = Layout::new(Mode::Overwrite);
    (layout.page_bytes, layout.pages) = (65536, 64);
    let producer = Producer::new(&dir, "a", layout);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for slot in 0..2 {
            let (producer, stop) = (&producer, &stop);
            let writer = producer.writer(slot);
            (0..200_000).for_each(|n| _ = emit(writer, 0, n));
            scope.spawn(move || {
                let mut number = 0;
                while slot < writers && !stop.load(Ordering::Relaxed) {
                    emit(writer, 0, number);
                    number += 1;
                }
            });
        }
        std::thread::sleep(Duration::from_millis(500));
        let cpu = cpu_time();
        let (mut took, mut skipped, mut pages) = (Vec::new(), 0, 0);
        for _ in 0..60 {
            let _ = std::fs::remove_file(&output);
            let start = Instant::now();
            let session = Session::open(&producer.path, Access::Observe).unwrap();
            let mut dump = Dump::create(&Destination::File((&output).into()), false).unwrap();
            let figures = snapshot(session, None, &mut dump).unwrap();
            dump.finish().unwrap();
            took.push(start.elapsed());
            skipped += figures.pages_skipped;
            pages += figures.pages;
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
        took.sort();
        let (median, p90) = (took[took.len() / 2], took[took.len() * 9 / 10]);
        let cpu = (cpu_time() - cpu) / 60;
        println!(
            "{writers} writers: least {:?}, median {median:?}, p90 {p90:?}, {cpu:?} of CPU each; {pages} pages, {skipped} overwritten meanwhile",
            took[0]
        );
    });
    let _ = std::fs::remove_file(output);
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
