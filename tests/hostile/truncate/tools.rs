//! Tools beside a file that is cut while they read it: none dies, and each says what was cut.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::process::SLEEPS;
use ringmark_tests::{Finished, Running, is_long};

use super::{EMIT, SIZES, set_len, tool};

/// Longer than any tool takes that ends by itself.
const LONG: Duration = SOON;
/// What a tool may exit with beside a file that is cut: done, lost or damaged, unreadable; no one
/// knows the session of a file that is not whole.
const EXITS: [i32; 4] = [0, 1, 3, 4];

/// Cuts the file in changing ways, and makes it whole again, until told to stop.
fn cut_and_mend(path: &Path, good: &[u8], stop: &AtomicBool) -> u64 {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let bytes = good.len() as u64;
    let mut cuts = 0;
    while !stop.load(Ordering::Relaxed) {
        for left in [0, bytes / 2, 4096, 100, bytes - 1] {
            file.set_len(left).unwrap();
            thread::sleep(Duration::from_micros(300));
            file.set_len(bytes).unwrap();
            file.write_all_at(good, 0).unwrap();
            thread::sleep(Duration::from_millis(2));
            cuts += 1;
        }
    }
    cuts
}

#[test]
fn no_tool_dies_of_a_file_that_is_cut_while_it_is_read() {
    let fixture = Fixture::new("tools");
    // Alive, so that all tools look at it; it does not touch its pages any more.
    let ringmark = format!("mode=overwrite,{SIZES},guard=on");
    let program = fixture.start(EMIT, &ringmark, "3 3000 hold=600000");
    let ring_file = fixture.ring_file();
    program.wait_until_in(&SLEEPS);
    let good = fs::read(&ring_file).unwrap();
    let pid = program.id();
    let rounds = if is_long() { 200 } else { 6 };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let cutter = scope.spawn(|| cut_and_mend(&ring_file, &good, &stop));
        let mut failed = Vec::new();
        let (mut runs, mut told) = (0, 0);
        for _ in 0..rounds {
            for arguments in [
                "list".to_owned(),
                "snapshot -o a.rmk".to_owned(),
                format!("snapshot -o b.rmk -p {pid}"),
                format!("list -v --interval 20ms -p {pid}"),
                format!("cat -p {pid}"),
                format!("graph -p {pid}"),
                format!("events -p {pid}"),
                format!("cat --follow -n 5000 -p {pid}"),
            ] {
                let time = if arguments.contains("--follow") {
                    Duration::from_millis(500)
                } else {
                    LONG
                };
                let done = within(&fixture, &arguments, time);
                runs += 1;
                told += u64::from(done.stderr_text().contains("truncated"));
                if !EXITS.contains(&done.code()) {
                    failed.push((arguments, done.code(), done.stderr_text()));
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        let cuts = cutter.join().unwrap();
        println!("{runs} runs beside {cuts} cuts, {told} of them told so");
        assert!(failed.is_empty(), "{failed:#?}");
        assert!(told > 0);
    });
    drop(program.kill());
}

/// Runs a tool; one that goes on for ever is ended as a person would.
fn within(fixture: &Fixture, arguments: &str, time: Duration) -> Finished {
    let running = Running::start(&mut tool(fixture, arguments)).unwrap();
    running.interrupt_after(time, LONG)
}

#[test]
fn every_tool_names_what_was_cut_with_both_sizes() {
    let fixture = Fixture::new("named");
    let ringmark = format!("mode=overwrite,{SIZES},guard=on");
    let program = fixture.start(EMIT, &ringmark, "3 3000 hold=600000");
    let ring_file = fixture.ring_file();
    program.wait_until_in(&SLEEPS);
    let bytes = fs::metadata(&ring_file).unwrap().len();
    let pid = program.id();
    for left in [bytes / 2, 4096, 100, 0] {
        set_len(&ring_file, left).unwrap();
        for (arguments, code) in [
            ("list".to_owned(), 0),
            ("snapshot -o a.rmk".to_owned(), 4),
            (format!("snapshot -o b.rmk -p {pid}"), 3),
            (format!("list -v --interval 20ms -p {pid}"), 3),
            (format!("cat -p {pid}"), 3),
            (format!("cat --follow -p {pid}"), 3),
            (format!("graph -p {pid}"), 3),
            (format!("events -p {pid}"), 3),
            (format!("record -o c.rmk -p {pid}"), 3),
        ] {
            let done = within(&fixture, &arguments, LONG);
            let said = done.stderr_text();
            assert_eq!(done.code(), code, "{arguments}, {left} left: {said}");
            let sizes = format!("{left} bytes");
            let names = [
                &*ring_file.file_name().unwrap().to_string_lossy(),
                &sizes,
                "truncated",
            ];
            assert!(
                names.iter().all(|name| said.contains(name)),
                "{arguments}: {said}"
            );
        }
    }
    drop(program.kill());
}
