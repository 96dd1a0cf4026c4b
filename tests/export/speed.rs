//! Promise: an export writes five million spans a second, on one core, for Perfetto.
//!
//! With `RINGMARK_LONG=1` alone: CPU time of whole commands, from start to end, in turn.

use crate::nested_spans;

use std::path::{Path, PathBuf};
use std::process::Command;

use nested_spans::{Amount, write};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::{is_long, ringmark, run};

const ROUNDS: usize = 11;
const FORMATS: [&str; 3] = ["perfetto", "folded", "ctf"];
/// Least spans a second for Perfetto.
const SPANS_MIN: f64 = 5e6;

/// Seconds of CPU time that an export of a trace takes.
fn cpu_seconds(trace: &Path, format: &str, out: &Path) -> f64 {
    let _ = std::fs::remove_dir_all(out);
    let mut command = Command::new("bash");
    command.args(["-c", "TIMEFORMAT='cpu %U %S'; time \"$@\"", "bash"]);
    command.arg(ringmark().get_program());
    command
        .args(["export", "--format", format, "-o"])
        .arg(out)
        .arg(trace);
    let done = run(&mut command, 4 * SOON).expect("bash");
    let text = done.expect_code(0).stderr_text();
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "));
    let times = line.expect("times").split(' ');
    times
        .map(|time| time.parse::<f64>().expect("seconds"))
        .sum()
}

/// The place at this part of sorted figures.
fn part(figures: &[f64], part: f64) -> f64 {
    figures[((figures.len() - 1) as f64 * part).round() as usize]
}

#[test]
fn five_million_spans_a_second() {
    if !is_long() {
        return;
    }
    let fixture = Fixture::new("export-speed");
    for threads in [1, 64] {
        let trace = fixture.path("a.rmk");
        let amount = Amount {
            bytes: 96 << 20,
            threads,
            names: 64,
            open: 0,
        };
        let spans = write(&trace, amount) as f64;
        // Memory takes what is written at once.
        let out = PathBuf::from("/dev/shm").join(format!("export-speed-{}", std::process::id()));
        let mut rates = FORMATS.map(|_| Vec::new());
        for _ in 0..ROUNDS {
            for (format, rates) in FORMATS.iter().zip(&mut rates) {
                rates.push(spans / cpu_seconds(&trace, format, &out));
                let removed = std::fs::remove_file(&out);
                removed
                    .or_else(|_| std::fs::remove_dir_all(&out))
                    .expect("an output");
            }
        }
        for (format, rates) in FORMATS.iter().zip(&mut rates) {
            rates.sort_by(f64::total_cmp);
            let [p10, median, p90] = [0.1, 0.5, 0.9].map(|at| part(rates, at) / 1e6);
            println!("{threads} threads, {format}: {median:.2} M spans/s ({p10:.2} to {p90:.2})");
            if *format == "perfetto" {
                assert!(
                    part(rates, 0.5) >= SPANS_MIN,
                    "{threads} threads: {median:.2} M"
                );
            }
        }
    }
}
