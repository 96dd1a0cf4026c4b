//! What all benches share: short interleaved windows on one pinned core, medians, bars.
//!
//! A bench names contestants, runs them in turn in windows of a few microseconds, and compares
//! medians as ratios: absolute times move with the machine's load, ratios of one run do not.
//! `RINGMARK_CHECK=1` makes a missed bar an exit status of 1. `cargo bench --no-fail-fast` runs all
//! benches all the same, lists those that missed a bar at the end, and fails then.

#![forbid(unsafe_code)]

pub mod part;
pub mod real;
pub mod streaming;

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

/// Rounds of windows; every contestant gets one window per round.
pub const ROUNDS: usize = 300;

/// One thing to measure: runs its body the given number of times.
pub struct Contestant<'a> {
    name: &'static str,
    run: Box<dyn FnMut(u64) + 'a>,
    between: Box<dyn FnMut() + 'a>,
    ns: Vec<f64>,
}

/// A contestant whose window is `run(iterations)`.
pub fn contestant<'a>(name: &'static str, run: impl FnMut(u64) + 'a) -> Contestant<'a> {
    Contestant {
        name,
        run: Box::new(run),
        between: Box::new(|| ()),
        ns: Vec::new(),
    }
}

impl<'a> Contestant<'a> {
    /// What to do before each window, outside of the time.
    #[must_use]
    pub fn between(mut self, work: impl FnMut() + 'a) -> Self {
        self.between = Box::new(work);
        self
    }
}

/// The figures of one contestant.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    name: &'static str,
    /// p10, median, p90.
    figures: [f64; 3],
}

impl Row {
    /// The row of all values that were measured.
    #[must_use]
    pub fn of(name: &'static str, values: Vec<f64>) -> Self {
        Self {
            name,
            figures: percentiles(values),
        }
    }
}

/// Prints rows below what they are in; `benches/compare` reads them from this.
pub fn print_rows(unit: &str, rows: &[Row]) {
    println!(
        "{:34} {:>8} {:>8} {:>8}  {unit}",
        "", "p10", "median", "p90"
    );
    for row in rows {
        let [p10, median, p90] = row.figures;
        println!("{:34} {p10:8.2} {median:8.2} {p90:8.2}", row.name);
    }
}

/// The figures of one run.
pub struct Results {
    rows: Vec<Row>,
    missed: bool,
}

/// Runs all contestants in turn, `iterations` per window, and prints p10, median and p90.
pub fn race(title: &str, iterations: u64, mut contestants: Vec<Contestant<'_>>) -> Results {
    for _ in 0..ROUNDS {
        for c in &mut contestants {
            (c.between)();
            let start = Instant::now();
            (c.run)(black_box(iterations));
            c.ns.push(start.elapsed().as_nanos() as f64 / iterations as f64);
        }
    }
    println!("\n{title} ({ROUNDS} interleaved windows of {iterations})");
    let rows: Vec<_> = contestants
        .into_iter()
        .map(|c| Row::of(c.name, c.ns))
        .collect();
    print_rows("ns", &rows);
    Results {
        rows,
        missed: false,
    }
}

/// p10, median, p90.
#[must_use]
pub fn percentiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [10, 50, 90].map(|p| values[values.len() * p / 100])
}

impl Results {
    /// Median of a contestant in ns.
    #[must_use]
    pub fn median(&self, name: &str) -> f64 {
        self.rows
            .iter()
            .find(|row| row.name == name)
            .map_or(f64::NAN, |row| row.figures[1])
    }

    /// States a bar: `value` must be at most `most`.
    pub fn bar(&mut self, bar: &str, what: &str, value: f64, most: f64) {
        let met = value <= most;
        self.missed |= !met;
        print_bar(bar, what, value, most, met);
    }

    /// Bar on the ratio of two medians.
    pub fn ratio(&mut self, bar: &str, of: &str, to: &str, most: f64) {
        let value = self.median(of) / self.median(to);
        self.bar(bar, &format!("{of} / {to}"), value, most);
    }

    /// Whether the process should fail.
    #[must_use]
    pub fn missed(&self) -> bool {
        self.missed
    }
}

/// Prints one bar's line.
pub fn print_bar(bar: &str, what: &str, value: f64, most: f64, met: bool) {
    println!(
        "{bar:4} {what:52} {value:8.3}  bar {most:6.3}  {}",
        if met { "met" } else { "MISSED" }
    );
}

/// Ends the process: 1 if a bar was missed and `RINGMARK_CHECK=1` asks for it.
pub fn finish(missed: bool) -> ! {
    let check = std::env::var("RINGMARK_CHECK").is_ok_and(|v| v == "1");
    std::process::exit(i32::from(missed && check));
}

/// Keeps the calling thread on one core.
pub fn pin(core: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core % cores());
    // Where it is not allowed, the figures are noisier, not wrong.
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

/// CPU time of the calling thread in seconds.
#[must_use]
pub fn thread_cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Runs this bench again with `argument`, in a process of its own: one process has one session.
/// Returns whether it exited with 0.
#[must_use]
pub fn in_child(argument: &str) -> bool {
    let program = std::env::current_exe().expect("the path of this program");
    Command::new(program)
        .arg(argument)
        .status()
        .is_ok_and(|status| status.success())
}

/// The argument of [`in_child`], if this is the child.
#[must_use]
pub fn child_argument() -> Option<String> {
    std::env::args().nth(1).filter(|a| !a.starts_with("--"))
}

/// Cores of this machine.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
