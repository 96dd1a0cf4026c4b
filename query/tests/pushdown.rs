//! Promise: of a store of 200 hosts, a question about one host and a hundredth of the time reads a twentieth of the bytes at
//! most, and has the rows that reading everything has.

mod asked;
#[path = "../../decoder/tests/common/mod.rs"]
mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use asked::{program, rows_of};
use common::REAL_ZERO_NS;
use common::many_hosts::{EVENTS, HOSTS, PAGES, SEGMENTS, WHOLE, fill};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The rows of an answer, and the bytes that the program read for it, of all files.
fn asked(root: &Path, sql: &str, columns: &[&str]) -> (Vec<String>, u64) {
    let mut command = program(root, &[sql, ".", "--format", "json"]);
    let answer = root.join("answer");
    let file = fs::File::create(&answer).expect("a file");
    let child = command.stdout(file).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("it runs");
    // It has ended, and says what it read until it is waited for.
    let id = WaitId::Pid(Pid::from_child(&child));
    let _ = waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("it ends");
    let io = fs::read_to_string(format!("/proc/{}/io", child.id())).expect("its counters");
    let read = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    let read = read.expect("rchar").parse().expect("a number");
    let mut done = std::process::Output {
        status: child.wait().expect("it ends"),
        stdout: fs::read(&answer).expect("a file"),
        stderr: Vec::new(),
    };
    if !done.status.success() {
        std::io::Read::read_to_end(&mut child.stderr.take().expect("piped"), &mut done.stderr)
            .expect("text");
    }
    (rows_of(&done, columns), read)
}

#[test]
fn a_question_about_one_host_and_a_short_time_reads_little() {
    let name = format!("ringmark-query-pushdown-{}", std::process::id());
    let place = Place(std::env::temp_dir().join(name));
    let _ = fs::remove_dir_all(&place.0);
    let total = fill(&place.0);
    fs::write(place.0.join("ringmark-store.json"), "{}").expect("a file");
    let columns = ["host", "ts_ns", "name", "args"];
    let (everything, whole) = asked(
        &place.0,
        "SELECT host, ts_ns, name, args FROM events",
        &columns,
    );
    let count = u64::from(HOSTS) * SEGMENTS * PAGES * EVENTS;
    assert_eq!(everything.len() as u64, count);
    assert!(whole >= total, "{whole} of {total} bytes");
    let (_, footers) = asked(
        &place.0,
        "SELECT 1 AS host FROM spans WHERE host = 'none'",
        &["host"],
    );
    for (hosts, hundredth, most) in [
        (&["host-77"][..], 45, 5.0),
        (&["host-0", "host-199"], 3, 8.0),
        // Two threads read the gaps between their hosts, which are small here.
        (&[], 45, 50.0),
    ] {
        let at = |hundredth: u64| REAL_ZERO_NS + WHOLE / 100 * hundredth;
        let (from, to) = (at(hundredth), at(hundredth + 1));
        let is_wanted = |row: &&String| {
            let cells: Vec<_> = row.split('|').collect();
            let ns: u64 = cells[1].parse().expect("a number");
            (from..to).contains(&ns) && (hosts.is_empty() || hosts.contains(&cells[0]))
        };
        let mut expected: Vec<_> = everything.iter().filter(is_wanted).cloned().collect();
        expected.sort();
        assert!(!expected.is_empty());
        let mut sql = format!(
            "SELECT host, ts_ns, name, args FROM events WHERE ts_ns >= {from} AND ts_ns < {to}"
        );
        if !hosts.is_empty() {
            sql += &format!(" AND host IN ('{}')", hosts.join("', '"));
        }
        let (mut found, bytes) = asked(&place.0, &sql, &columns);
        found.sort();
        assert_eq!(found, expected);
        let share = 100.0 * bytes as f64 / total as f64;
        println!(
            "{hosts:?} at {hundredth} %: {bytes} of {total} bytes, {share:.1} % ({footers} for footers)"
        );
        assert!(share <= most, "{share} %");
    }
}
