//! Promise: what a program says that it made is what our decoder, Perfetto's trace processor and
//! babeltrace2 find of it: counts, names, arguments, durations, depths, threads; and where a flight
//! recorder has only the end, what they find and what is not there are what was made.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use ringmark_decoder::{Dump, Output};
use ringmark_format::schema::Shape;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::decode;
use ringmark_tests::trace_processor::{ask, trace_processor};
use ringmark_tests::{require_tools, ringmark, run};
use serde_json::Value;

use crate::outputs::theirs::{LOST, discarded};

const THREADS: [&str; 3] = ["known-0", "known-1", "known-2"];
const EVENT: &str = "known.event";

/// What there is of a name: how many, sums of their numbers, and of their durations in ns.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Found {
    count: u64,
    numbers: u64,
    took_ns: u64,
}

type ByName = BTreeMap<String, Found>;

/// What the program says.
struct Made {
    found: ByName,
    /// Sums of the spans around each of a name.
    around: BTreeMap<String, u64>,
    /// The most that `took_ns` may be; what `found` has is the least.
    most_ns: BTreeMap<String, u64>,
    all: u64,
}

impl Made {
    fn of(said: &str) -> Self {
        let said: BTreeMap<String, [u64; 5]> = serde_json::from_str(said).expect("JSON");
        let mut made = Self {
            found: ByName::new(),
            around: BTreeMap::new(),
            most_ns: BTreeMap::new(),
            all: said.values().map(|row| row[0]).sum(),
        };
        for (name, [count, numbers, around, took_ns, most_ns]) in said {
            let found = Found {
                count,
                numbers,
                took_ns,
            };
            made.found.insert(name.clone(), found);
            made.around.insert(name.clone(), around);
            made.most_ns.insert(name, most_ns);
        }
        made
    }

    /// Compares what a reader found. The clock of events may be wrong by a thousandth, and each of its
    /// times by a ns.
    fn compare(&self, reader: &str, found: &ByName) {
        let names = |of: &ByName| of.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(found), names(&self.found), "{reader}");
        for (name, found) in found {
            let made = self.found[name];
            assert_eq!(
                (found.count, found.numbers),
                (made.count, made.numbers),
                "{reader}: {name}"
            );
            let most = self.most_ns[name];
            let slack = most / 1000 + 2 * made.count;
            let range = made.took_ns.saturating_sub(slack)..=most + slack;
            let took = found.took_ns;
            assert!(
                range.contains(&took),
                "{reader}: {name} took {took}, not {range:?}"
            );
        }
    }
}

/// Runs the program, and returns what it says and its trace.
fn record(fixture: &Fixture, options: &str, rounds: u64) -> (Made, PathBuf) {
    let trace = fixture.path("known.rmk");
    let mut command = ringmark();
    command.env("RINGMARK_DIR", fixture.sessions());
    command.env("RINGMARK", options);
    command.arg("record").arg("-o").arg(&trace).arg("--");
    command.arg(ringmark_tests::program!("known"));
    let done = run(command.arg(rounds.to_string()), SOON).expect("the tool");
    (Made::of(&done.stdout_text()), trace)
}

fn export(trace: &Path, format: &str) -> PathBuf {
    let to = trace.with_extension(format);
    let mut command = ringmark();
    command.args(["export", "--format", format, "-o"]);
    let done = run(command.arg(&to).arg(trace), SOON).expect("the tool");
    assert!(done.code() <= 1, "{}", done.stderr_text());
    to
}

fn add(all: &mut ByName, name: &str, numbers: u64, took_ns: u64) {
    let found = all.entry(name.to_owned()).or_default();
    found.count += 1;
    found.numbers += numbers;
    found.took_ns += took_ns;
}

/// What our decoder finds, with the names of threads.
fn in_dump(dump: &Dump) -> (ByName, BTreeSet<String>) {
    let (mut found, mut threads) = (ByName::new(), BTreeSet::new());
    for output in dump.events() {
        let Output::Event(event) = output else {
            continue;
        };
        let name = String::from_utf8_lossy(event.name()).into_owned();
        let n = event.args().find(|(field, _)| field.name == b"n");
        let Some((_, ringmark_decoder::Value::U64(n))) = n else {
            panic!("{name} without its number");
        };
        assert_eq!(event.ty.shape == Some(Shape::Span), name != EVENT);
        add(&mut found, &name, n, event.duration_ns().unwrap_or(0));
        threads.insert(String::from_utf8_lossy(event.comm()).into_owned());
    }
    (found, threads)
}

/// What babeltrace2 finds, with the names of threads, and how many events are lost.
fn in_ctf(folder: &Path) -> (ByName, BTreeSet<String>, u64) {
    let done = run(Command::new("babeltrace2").arg(folder), SOON).expect("babeltrace2");
    let done = done.expect_code(0);
    let (mut found, mut threads) = (ByName::new(), BTreeSet::new());
    for line in done.stdout_text().lines() {
        let (front, rest) = line.split_once(": {").expect("a line");
        let name = front.rsplit(' ').next().expect("a name");
        let number = |key: &str| {
            let (_, value) = rest.split_once(&format!(" {key} = "))?;
            value.split([',', ' ']).next()?.parse::<u64>().ok()
        };
        let n = number("n").expect("a number");
        add(&mut found, name, n, number("took_ns").unwrap_or(0));
        let thread = rest.split('"').nth(1).expect("a thread");
        threads.insert(thread.to_owned());
    }
    (found, threads, discarded(&done.stderr_text()))
}

fn digits(value: &Value) -> u64 {
    value
        .as_str()
        .and_then(|text| text.parse().ok())
        .expect("digits")
}

/// What the trace processor finds, with sums of depths.
fn in_perfetto(folder: &Path, file: &Path) -> (ByName, BTreeMap<String, u64>) {
    // The number of a span is an argument of its slice, as that of an event.
    const SLICES: &str = "select s.name, count(*), sum(a.int_value), sum(s.dur), sum(s.depth) \
        from slice s join args a using (arg_set_id) join thread_track t on t.id = s.track_id \
        where a.key = 'debug.n' group by s.name";
    let rows = &ask(folder, file, &[SLICES])[0];
    let (mut found, mut depths) = (ByName::new(), BTreeMap::new());
    for row in rows {
        let name = row[0].as_str().expect("a name").to_owned();
        let of = Found {
            count: digits(&row[1]),
            numbers: digits(&row[2]),
            took_ns: digits(&row[3]),
        };
        depths.insert(name.clone(), digits(&row[4]));
        found.insert(name, of);
    }
    (found, depths)
}

/// Names of the threads that have anything in a file.
const NAMES: &str = "select distinct t.name from thread t join thread_track k using (utid) \
    join slice s on s.track_id = k.id order by 1";
const SHOWN: &str = "select count(*) from slice where name glob 'known.*'";

#[test]
fn what_a_program_made_is_what_is_found() {
    let fixture = Fixture::new("export-known");
    let (made, trace) = record(&fixture, "ring=8M,session=64M", 300);
    let dump = decode(std::slice::from_ref(&trace));
    assert!(dump.verify().is_clean());
    let expected: BTreeSet<String> = THREADS.map(str::to_owned).into();
    let (found, threads) = in_dump(&dump);
    made.compare("our decoder", &found);
    assert_eq!(threads, expected);
    if require_tools(&["babeltrace2"]) {
        let (found, threads, lost) = in_ctf(&export(&trace, "ctf"));
        made.compare("babeltrace2", &found);
        assert_eq!((threads, lost), (expected, 0));
    }
    let Some(folder) = trace_processor() else {
        return;
    };
    let file = export(&trace, "perfetto");
    let (found, mut depths) = in_perfetto(folder, &file);
    made.compare("the trace processor", &found);
    // An event is in its span.
    let event = depths.get_mut(EVENT).expect("events");
    *event -= made.found[EVENT].count;
    assert_eq!(depths, made.around);
    let answers = ask(folder, &file, &[NAMES, LOST]);
    let names: Vec<_> = answers[0].iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, THREADS.map(Some));
    assert_eq!(digits(&answers[1][0][0]), 0);
}

/// A flight recorder has the end alone.
#[test]
fn what_is_found_and_what_is_lost_is_what_was_made() {
    let fixture = Fixture::new("export-known-end");
    let (made, trace) = record(&fixture, "mode=overwrite,ring=64K,page=4K", 4000);
    let dump = decode(std::slice::from_ref(&trace));
    let (found, _) = in_dump(&dump);
    let sum = |found: &ByName| found.values().map(|of| of.count).sum::<u64>();
    let checked = dump.verify();
    let not_here = checked.lost + checked.overwritten + checked.missing;
    assert!(not_here > 0, "the rings are too large");
    assert_eq!(sum(&found) + not_here, made.all, "our decoder");
    if require_tools(&["babeltrace2"]) {
        let (found, _, lost) = in_ctf(&export(&trace, "ctf"));
        assert_eq!(
            (sum(&found) + lost, lost),
            (made.all, not_here),
            "babeltrace2"
        );
    }
    let Some(folder) = trace_processor() else {
        return;
    };
    let answers = ask(folder, &export(&trace, "perfetto"), &[SHOWN, LOST]);
    let [shown, lost] = [0, 1].map(|at| digits(&answers[at][0][0]));
    assert_eq!(
        (shown + lost, lost),
        (made.all, not_here),
        "the trace processor"
    );
}
