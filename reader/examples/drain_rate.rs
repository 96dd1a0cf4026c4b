//! How fast a full session is drained to a file, beside a bare write loop from the same map.
//! `cargo run --release -p ringmark-reader --example drain_rate [OUTPUT [BATCH_KIB]]`
#[path = "../tests/common/mod.rs"]
mod common;

use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use common::{Dir, Layout, Producer, emit};
use ringmark_format::session::Mode;
use ringmark_reader::{Access, Batch, Fill, Session, SessionDrain};
use rustix::thread::ClockId;

const ROUNDS: usize = 40;

fn main() {
    let mut args = std::env::args().skip(1);
    let output = args.next().unwrap_or("/tmp/drain_rate.rmk".into());
    let batch_kib: usize = args.next().and_then(|a| a.parse().ok()).unwrap_or(512);
    let dir = Dir::new("drain-rate");
    let mut layout = Layout::new(Mode::Overwrite);
    (layout.page_bytes, layout.pages) = (65536, 64);
    let producer = Producer::new(&dir, "a", layout);
    for slot in 0..4 {
        let writer = producer.writer(slot);
        (0..200_000).for_each(|n| assert!(emit(writer, 0, n)));
    }
    let file = File::create(&output).unwrap();
    let input = File::open(&producer.path).unwrap();
    // SAFETY: the synthetic producer is at rest from here on.
    let map = unsafe { memmap2::Mmap::map(&input) }.unwrap();
    let mut session = Some(Session::open(&producer.path, Access::Observe).unwrap());
    let mut batch = Batch::with_room(batch_kib << 10);
    let mut figures: [Vec<(f64, f64)>; 3] = Default::default();
    for _ in 0..ROUNDS {
        // A new file every time: most of what appending costs is finding page cache.
        file.set_len(0).unwrap();
        figures[0].push(measure(|| bare(&map, &file)));
        file.set_len(0).unwrap();
        figures[1].push(measure(|| {
            (&file).rewind().unwrap();
            drain(&mut session, &mut batch, |b| (&file).write_all(b).unwrap())
        }));
        figures[2].push(measure(|| {
            drain(&mut session, &mut batch, |b| _ = std::hint::black_box(b))
        }));
    }
    for (name, figures) in ["bare write", "drain", "drain, no write"]
        .iter()
        .zip(figures)
    {
        let median = |mut all: Vec<f64>| {
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let wall = median(figures.iter().map(|f| f.0).collect());
        let cpu = median(figures.iter().map(|f| f.1).collect());
        println!("{name:16} {wall:6.2} GB/s   {cpu:6.1} ms of CPU per GB");
    }
    let _ = std::fs::remove_file(output);
}

/// GB/s and CPU milliseconds per GB of a job that says how many bytes it moved.
fn measure(job: impl FnOnce() -> u64) -> (f64, f64) {
    let (start, cpu) = (Instant::now(), cpu_time());
    let gb = job() as f64 / 1e9;
    let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_time() - cpu);
    (gb / wall, cpu.as_secs_f64() * 1e3 / gb)
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The same pages, 1 MiB per write, straight from a map that nobody writes to.
fn bare(map: &[u8], output: &File) -> u64 {
    let mut at = 0;
    for slot in 0..4 {
        let first = map.len() - (16 - slot) * (4 << 20);
        for piece in map[first..first + (4 << 20)].chunks(1 << 20) {
            output.write_all_at(piece, at).unwrap();
            at += piece.len() as u64;
        }
    }
    at
}

fn drain(session: &mut Option<Session>, batch: &mut Batch, mut write: impl FnMut(&[u8])) -> u64 {
    let mut drain = SessionDrain::new(session.take().unwrap());
    let mut bytes = 0;
    loop {
        batch.clear(u64::MAX);
        let filled = drain.fill(batch).unwrap();
        write(batch.bytes());
        bytes += batch.bytes().len() as u64;
        if filled == Fill::PassDone {
            *session = Some(drain.into_session());
            return bytes;
        }
    }
}
