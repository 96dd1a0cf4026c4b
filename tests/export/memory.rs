//! Promise: the memory of an export does not grow with the trace: threads, names and open spans need
//! some, records none.
//!
//! With `RINGMARK_LONG=1` alone: traces of two lengths, and one of 1 GB with the bar.

use crate::nested_spans;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use nested_spans::{Amount, write};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::{Running, is_long, ringmark};

const THREADS: u64 = 64;
const MIB: u64 = 1 << 20;
/// More memory that a trace three times as long may need.
const MORE_MAX: u64 = 4 * MIB;
/// Most memory of an export of 1 GB with 64 threads, 100,000 names and 100,000 open spans.
const ANON_MAX: u64 = 64 * MIB;

/// The most anonymous memory that an export of this trace had, in bytes, as looked at all the time.
fn most_memory(fixture: &Fixture, trace: &Path, format: &str) -> u64 {
    let mut command = ringmark();
    command.args(["export", "--format", format]).arg(trace);
    command.arg("-o").arg(fixture.path("out"));
    let mut running = Running::start(&mut command).expect("the tool");
    let status = format!("/proc/{}/status", running.id());
    let mut most = 0;
    while running.child().try_wait().expect("a child").is_none() {
        most = anonymous(&status).max(most);
        thread::sleep(Duration::from_millis(1));
    }
    let done = running.finish(SOON);
    assert_eq!(done.code(), 0, "{}", done.stderr_text());
    most
}

fn anonymous(status: &str) -> u64 {
    let text = fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[test]
fn memory_does_not_grow_with_the_trace() {
    if !is_long() {
        return;
    }
    let fixture = Fixture::new("export-memory");
    let traces = [6 * MIB, 18 * MIB].map(|bytes| {
        let trace = fixture.path(&format!("{bytes}.rmk"));
        let amount = Amount {
            bytes,
            threads: THREADS,
            names: 500,
            open: 500,
        };
        let _ = write(&trace, amount);
        trace
    });
    for format in ["perfetto", "folded"] {
        let [short, long] = traces
            .each_ref()
            .map(|trace| most_memory(&fixture, trace, format));
        println!("{format}: {short} and {long} bytes");
        assert!(short > MIB, "{short} bytes were seen");
        assert!(long <= short + MORE_MAX, "{format}: {short}, then {long}");
    }
}

#[test]
fn a_gigabyte_fits_into_64_mib() {
    if !is_long() {
        return;
    }
    let fixture = Fixture::new("export-gigabyte");
    let trace = fixture.path("a.rmk");
    let amount = Amount {
        bytes: 1000 * MIB,
        threads: THREADS,
        names: 100_000,
        open: 100_000,
    };
    let _ = write(&trace, amount);
    let most = most_memory(&fixture, &trace, "perfetto");
    println!("{most} bytes");
    assert!(most <= ANON_MAX, "{most} bytes");
}
