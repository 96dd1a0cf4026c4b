//! Promise: what a thread is in is shown, with its start and the arguments that fit, live, in a trace
//! file and after `kill -9`; a span is open or recorded, never neither.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use ringmark_decoder::{Dump, Kept, Moment, Output, Value};
use ringmark_tests::delivery::number;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::{decode, snapshot};
use ringmark_tests::{Running, is_long, ringmark, run, wait_until};

const IN_SPANS: &str = ringmark_tests::program!("in_spans");

/// What a command says, on standard output and then on standard error.
fn tool(fixture: &Fixture, arguments: &[&str]) -> String {
    let mut command = ringmark();
    command
        .env("RINGMARK_DIR", fixture.sessions())
        .args(arguments);
    let done = run(&mut command, SOON).expect("the tool");
    let done = done.expect_code(0);
    done.stdout_text() + &done.stderr_text()
}

fn start(fixture: &Fixture, mode: &str, what: &str) -> Running {
    let mut command = fixture.program(IN_SPANS, mode);
    let ready = fixture.path("ready");
    let _ = std::fs::remove_file(&ready);
    command.arg(what).arg(&ready);
    let program = Running::start(&mut command).expect("a program");
    wait_until(SOON, "a program in its spans", || {
        ready.exists().then_some(())
    });
    program
}

/// What is said about each thread: its name and its open spans, without how long they have been
/// open.
fn said(text: &str) -> Vec<Vec<String>> {
    let mut threads: Vec<Vec<String>> = Vec::new();
    for line in text.lines() {
        let is_of_thread = line.starts_with("  open ") || line.starts_with("  last ");
        assert!(!is_of_thread || line.chars().count() <= 80, "{line}");
        match line.strip_prefix("  open ") {
            Some(span) => {
                let words: String = span.chars().skip(14).collect();
                let last = threads.last_mut().expect("a thread before its spans");
                last.push(words.trim_end().to_owned());
            }
            None if line.ends_with(']') && !line.contains(' ') => {
                let name = line.split('[').next().unwrap_or_default();
                threads.push(vec![name.to_owned()]);
            }
            None => {}
        }
    }
    threads.retain(|thread| thread.len() > 1);
    threads.sort();
    threads
}

/// What commands must say about four threads, one with more spans than there is room for. `all`: as
/// `cat` says it; others leave out those in the middle.
fn expected(all: bool) -> Vec<Vec<String>> {
    let mut deep: Vec<_> = (0..61)
        .map(|n: usize| format!("{:1$}deep n={n}", "", 2 * (n + 2).min(8)))
        .collect();
    if !all {
        deep.splice(2..55, ["        + 53 between".to_owned()]);
    }
    let long = "http.handle worker=1 path=\"/a/path/that/is/too/long/for/th…".to_owned();
    let mut worker = vec!["worker-1".to_owned(), long, "  db.query rows=4".to_owned()];
    worker.extend(deep);
    worker.push(format!("{:16}+ 9 deeper", ""));
    let rest = [
        vec!["in_spans", "nightly job=\"import\""],
        vec!["worker-2", "request id=7"],
        vec![
            "worker-3",
            "checkout order=7 user=\"ann\"",
            "  stock item=3",
        ],
    ];
    let rest = rest.map(|thread| thread.into_iter().map(str::to_owned).collect());
    let mut threads: Vec<_> = rest.into_iter().chain([worker]).collect();
    threads.sort();
    threads
}

fn check(text: &str, all: bool) {
    assert_eq!(said(text), expected(all), "{text}");
}

#[test]
fn living_recorded_and_dead() {
    for mode in ["mode=overwrite", "mode=discard"] {
        let fixture = Fixture::new("open-spans");
        let mut program = start(&fixture, mode, "hold");
        let pid = program.id().to_string();
        check(&tool(&fixture, &["cat", "-p", &pid]), true);
        assert!(tool(&fixture, &["report", "-p", &pid]).contains(": it runs\n"));
        check(
            &tool(&fixture, &["list", "-v", "-p", &pid, "--interval", "10ms"]),
            false,
        );
        check(
            &tool(&fixture, &["list", "-v", "--interval", "10ms"]),
            false,
        );
        let file = fixture.path("now.rmk").to_string_lossy().into_owned();
        if mode == "mode=overwrite" {
            check(
                &tool(&fixture, &["snapshot", "-p", &pid, "-o", &file]),
                false,
            );
            check(&tool(&fixture, &["cat", &file]), true);
        }
        let _ = program.child().kill();
        let _ = program.child().wait();
        check(&tool(&fixture, &["cat", "-p", &pid]), true);
        assert!(tool(&fixture, &["report", "-p", &pid]).contains(": it has ended\n"));
        check(
            &tool(&fixture, &["list", "-v", "--interval", "10ms"]),
            false,
        );
        check(&tool(&fixture, &["record", "-p", &pid, "-o", &file]), false);
        check(&tool(&fixture, &["cat", &file]), true);
        check(&tool(&fixture, &["list", "-v", &file]), false);
        check(&tool(&fixture, &["verify", &file]), false);
        // At its end the trace is in these spans. A filter asks for events.
        check(&tool(&fixture, &["cat", &file, "--last", "1ns"]), true);
        assert!(said(&tool(&fixture, &["cat", &file, "--name", "accepted"])).is_empty());
    }
}

/// A recorder that saw the end counts back from it: a span that hung is not shown as just begun.
#[test]
fn a_span_that_hung_was_open_until_the_end() {
    let fixture = Fixture::new("hung-span");
    let mut program = start(&fixture, "mode=overwrite", "hold");
    let mut recorder = fixture.command(ringmark_tests::binary::path());
    let file = fixture.path("hung.rmk");
    recorder.args(["record", "-p", &program.id().to_string(), "-o"]);
    let recorder = Running::start(recorder.arg(&file)).expect("a recorder");
    let hung = Duration::from_millis(300);
    std::thread::sleep(hung);
    let _ = program.child().kill();
    let _ = program.child().wait();
    let said = recorder.finish(SOON).stderr_text();
    assert!(said.contains("counted back from the end:"), "{said}");
    let dump = decode(&[file]);
    let words = dump.last_words();
    assert!(words.iter().all(|thread| thread.until == Moment::End));
    let open = words.iter().flat_map(|thread| &thread.open);
    let least = open
        .flat_map(|thread| &thread.spans)
        .map(|s| s.open_ns)
        .min();
    assert!(
        least.is_some_and(|ns| ns >= hung.as_nanos() as u64),
        "{least:?}"
    );
}

/// A command that comes after the end does not know when it was.
#[test]
fn after_the_end_a_span_was_open_for_longer_than_is_known() {
    let fixture = Fixture::new("late-snapshot");
    let mut program = start(&fixture, "mode=overwrite", "hold");
    let pid = program.id().to_string();
    let _ = program.child().kill();
    let _ = program.child().wait();
    let said = tool(&fixture, &["cat", "-p", &pid]);
    assert!(
        said.contains("from the last event of any thread:"),
        "{said}"
    );
    let mut open = said.lines().filter(|line| line.starts_with("  open "));
    assert!(
        open.all(|line| line.contains("> ") || line.contains(" + ")),
        "{said}"
    );
}

/// Each thread has its last three events, before what it has open. Eight threads are shown, then how
/// many more there are.
#[test]
fn the_last_events_of_a_thread_are_shown() {
    let fixture = Fixture::new("last-words");
    let mut program = start(&fixture, "mode=overwrite", "many");
    let pid = program.id().to_string();
    let _ = program.child().kill();
    let _ = program.child().wait();
    let file = fixture.path("now.rmk").to_string_lossy().into_owned();
    for arguments in [
        &["record", "-p", &pid, "-o", &file][..],
        &["list", "-v", "--interval", "10ms"],
        &["list", "-v", &file],
        &["verify", &file],
        &["snapshot", "-p", &pid, "-o", &file],
    ] {
        let text = tool(&fixture, arguments);
        let words = |line: &str| line.chars().skip(21).collect::<String>();
        let of_thread = |l: &&str| l.starts_with("  last ") || l.starts_with("  open ");
        let said: Vec<_> = text.lines().filter(of_thread).collect();
        assert_eq!(said.len(), 8 * 4, "{text}");
        for thread in said.chunks(4) {
            let [first, second, third, open] = thread else {
                panic!("{thread:?}")
            };
            let last = [first, second, third].map(|line| words(line));
            assert_eq!(
                last,
                ["step step=2", "step step=3", "step step=4"],
                "{text}"
            );
            assert!(first.starts_with("  last ") && first.contains(" ago  "));
            assert!(open.starts_with("  open ") && words(open).starts_with("work number="));
        }
        assert!(text.contains("\nand 4 more threads\n"), "{text}");
    }
    // The events stand above already.
    let cat = tool(&fixture, &["cat", &file]);
    let shown = |start: &str| cat.lines().filter(|l| l.starts_with(start)).count();
    assert_eq!((shown("  open "), shown("  last ")), (12, 0), "{cat}");
}

/// Numbers of a span: its own, and the one inside it.
type Numbers = (u64, Option<u64>);

fn killed(fixture: &Fixture, after: Duration) -> Dump {
    let mut program = start(fixture, "mode=overwrite,ring=64K", "churn");
    std::thread::sleep(after);
    let _ = program.child().kill();
    let _ = program.child().wait();
    let ring_file = fixture.ring_file();
    let path: PathBuf = fixture.path("killed.rmk");
    let dump = snapshot(&ring_file, &path);
    let _ = std::fs::remove_file(ring_file);
    drop(dump);
    decode(&[path])
}

#[test]
fn a_span_is_open_or_recorded_whenever_the_program_is_killed() {
    let kills = if is_long() { 1000 } else { 20 };
    let fixture = Fixture::new("open-killed");
    let (mut shown, mut inner) = (0, 0);
    for kill in 0..kills {
        let dump = killed(&fixture, Duration::from_micros(200 + 37 * kill % 3000));
        let open = open_numbers(&dump);
        shown += usize::from(!open.is_empty());
        inner += usize::from(open.len() > 1);
        let (recorded, marks) = recorded(&dump);
        for mark in &marks {
            assert!(
                recorded.contains(mark) || open.contains(mark),
                "{mark:?} is neither open nor recorded: {open:?}"
            );
        }
        for span in &open {
            assert!(!recorded.contains(span), "{span:?} is recorded, and shown");
        }
        assert!(
            open.len() <= 2 && open.iter().all(|span| span.0 == open[0].0),
            "{open:?}"
        );
    }
    println!("{kills} kills: {shown} in a span, {inner} in two");
    assert!(shown > kills as usize / 2 && inner > 0);
}

fn open_numbers(dump: &Dump) -> Vec<Numbers> {
    let threads = dump.open_spans();
    let spans = threads.iter().flat_map(|thread| &thread.spans);
    let numbers = spans.map(|span| {
        let value = |name: &[u8]| {
            let mut args = span.args();
            args.find_map(|(field, kept)| match kept {
                Kept::Whole(Value::U64(n)) if field.name == name => Some(n),
                _ => None,
            })
        };
        (value(b"n").expect("a number"), value(b"m"))
    });
    numbers.collect()
}

/// Spans that are recorded, and those inside which something is recorded. In overwrite mode the
/// oldest are gone, marks before spans: only marks after the first span count.
fn recorded(dump: &Dump) -> (HashSet<Numbers>, HashSet<Numbers>) {
    let (mut spans, mut marks) = (HashSet::new(), HashSet::new());
    for item in dump.events() {
        let Output::Event(event) = item else { continue };
        let numbers = (number(&event, "n").expect("n"), number(&event, "m"));
        if event.name().starts_with(b"in.") {
            marks.insert(numbers);
        } else {
            spans.insert(numbers);
        }
    }
    (spans, marks)
}
