//! One point of a curve: what an event costs with so many threads, rings and pages of that size and
//! that payload. `benches/compare scaling` asks for the points in turn and draws the curves.
//!
//! Prints p10, median and p90 of windows of 1000 events, and the CPU time of an event over all of
//! them, in ns; then how many events there were.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use ringmark::{Clock, Mode, Session, attach_thread, event};
use ringmark_benches::{percentiles, pin, thread_cpu_seconds};

const WINDOW: u64 = 1000;
const USAGE: &str = "usage: scaling THREADS RING PAGE PAYLOAD CLOCK MODE EVENTS (sizes in bytes)";

/// What one thread has measured.
struct Taken {
    windows: Vec<f64>,
    cpu_ns: f64,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((point, events)) = Point::parse(&words) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let threads = point.threads;
    let _session = point.start();
    let barrier = Barrier::new(threads);
    let all: Vec<Taken> = thread::scope(|scope| {
        let started: Vec<_> = (0..threads)
            .map(|core| {
                let (barrier, point) = (&barrier, &point);
                scope.spawn(move || {
                    // One thread leaves the first core to everybody else.
                    pin(core + usize::from(threads == 1));
                    assert!(attach_thread(), "a ring");
                    barrier.wait();
                    point.measure(events)
                })
            })
            .collect();
        started
            .into_iter()
            .map(|thread| thread.join().expect("a thread that measures"))
            .collect()
    });
    let cpu_ns = all.iter().map(|taken| taken.cpu_ns).sum::<f64>() / threads as f64;
    let windows: Vec<_> = all.into_iter().flat_map(|taken| taken.windows).collect();
    let emitted = threads as u64 * (events / 2) + windows.len() as u64 * WINDOW;
    let [p10, median, p90] = percentiles(windows);
    println!("{p10} {median} {p90} {cpu_ns} {emitted}");
    ExitCode::SUCCESS
}

struct Point {
    threads: usize,
    ring_bytes: u32,
    page_bytes: u32,
    payload: Vec<u8>,
    clock: Clock,
    mode: Mode,
}

impl Point {
    /// With the events of each thread.
    fn parse(words: &[String]) -> Option<(Self, u64)> {
        let [threads, ring, page, payload, clock, mode, events] = words else {
            return None;
        };
        let clocks = [Clock::Tsc, Clock::Monotonic, Clock::Coarse, Clock::None];
        let modes = [Mode::Lossless, Mode::Overwrite];
        let point = Self {
            threads: threads.parse().ok()?,
            ring_bytes: ring.parse().ok()?,
            page_bytes: page.parse().ok()?,
            payload: vec![7; payload.parse().ok()?],
            clock: clocks.into_iter().find(|known| known.name() == clock)?,
            mode: modes.into_iter().find(|known| known.name() == mode)?,
        };
        Some((point, events.parse().ok()?))
    }

    /// A session in which every thread gets a ring of the wanted size, made before it asks.
    fn start(&self) -> Session {
        let rings = 2 * (self.threads as u64 + 1) * u64::from(self.ring_bytes);
        let session = Session::builder()
            .mode(self.mode)
            .clock(self.clock)
            .page_bytes(self.page_bytes)
            .ring_bytes(self.ring_bytes)
            .session_bytes(rings)
            .warm(self.threads as u32)
            .start()
            .expect("a session");
        // The helper thread makes about a gigabyte of rings in a second.
        thread::sleep(Duration::from_millis(20) + Duration::from_nanos(2 * rings));
        session
    }

    fn measure(&self, events: u64) -> Taken {
        match self.payload.len() {
            0 => windows(events, |_| event!("scaling.empty")),
            8 => windows(events, |i| event!("scaling.word", value = black_box(i))),
            _ => {
                let bytes: &[u8] = &self.payload;
                windows(events, |_| {
                    event!("scaling.bytes", value = black_box(bytes));
                })
            }
        }
    }
}

/// Half of the events go before the first window: the first lap of a ring is not what lasts.
fn windows(events: u64, emit: impl Fn(u64)) -> Taken {
    let mut taken = Vec::with_capacity((events / WINDOW) as usize + 1);
    (0..events / 2).for_each(&emit);
    let cpu = thread_cpu_seconds();
    for _ in 0..(events / 2).div_ceil(WINDOW) {
        let start = Instant::now();
        (0..WINDOW).for_each(&emit);
        taken.push(start.elapsed().as_nanos() as f64 / WINDOW as f64);
    }
    let cpu_ns = (thread_cpu_seconds() - cpu) * 1e9 / (taken.len() as u64 * WINDOW) as f64;
    Taken {
        windows: taken,
        cpu_ns,
    }
}
