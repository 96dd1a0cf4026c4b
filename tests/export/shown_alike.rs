//! Promise: all outputs show the same, and it is what the program did: how many spans and calls there are of each name,
//! in which, how long they took, how long without what is inside, and what is lost. Ours are asked, and readers that
//! are not ours.

use std::path::{Path, PathBuf};

use ringmark_tests::browser::browser;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{SITES, compile, tool};
use ringmark_tests::trace_processor::trace_processor;
use ringmark_tests::{program, require_tools, run};

use crate::c;
use crate::outputs::truth::{Said, Truth, records};
use crate::outputs::{Places, Shown, ours, theirs};
use crate::pictured::pages_removed;

/// Rings from which nothing is lost.
const WHOLE: &str = "ring=4M,session=64M";

/// Records a program, and returns what it says and its trace.
fn record(
    fixture: &Fixture,
    settings: &str,
    words: &[&str],
    program: &Path,
    arguments: &[&str],
) -> (String, PathBuf) {
    let trace = fixture.path("a.rmk");
    let mut command = tool(fixture);
    command.env("RINGMARK", settings).args(words);
    command.arg("-o").arg(&trace).arg("--").arg(program);
    let done = run(command.args(arguments), SOON)
        .expect("the tool")
        .expect_code(0);
    (done.stdout_text(), trace)
}

fn placed(fixture: &Fixture, settings: &str, kind: &str, rounds: &str) -> (Said, PathBuf) {
    let program = Path::new(program!("placed"));
    let (said, trace) = record(fixture, settings, &["record"], program, &[kind, rounds]);
    (serde_json::from_str(&said).expect("JSON"), trace)
}

/// What readers that are not ours find, if they are here. `is_whole`: all lie on one row of a thread.
fn compare_theirs(
    fixture: &Fixture,
    trace: &Path,
    truth: &Truth,
    said: Option<&Said>,
    is_whole: bool,
) {
    if require_tools(&["babeltrace2"]) {
        let found = Truth::of(&theirs::records(fixture, trace), said);
        truth.compare("babeltrace2", &Shown::of(&found.rows));
        assert_eq!(found.places, truth.places, "babeltrace2");
    }
    if let Some(folder) = trace_processor() {
        let mut shown = theirs::perfetto(fixture, folder, trace, &truth.events);
        if !is_whole {
            (shown.places, shown.owns) = (None, None);
        }
        truth.compare("the trace processor", &shown);
    }
    if let Some(browser) = browser() {
        truth.compare("the page", &theirs::page(fixture, browser, trace));
    }
    compare_tables(fixture, trace, truth);
}

/// What readers of tables and of stacks find, if they are here.
fn compare_tables(fixture: &Fixture, trace: &Path, truth: &Truth) {
    if let Some(shown) = theirs::duckdb(fixture, trace) {
        truth.compare("DuckDB", &shown);
    }
    if let Some(shown) = theirs::inferno(fixture, trace) {
        truth.compare("inferno", &shown);
    }
}

/// What all outputs that show spans say.
fn compare(fixture: &Fixture, trace: &Path, said: &Said, is_whole: bool) {
    let truth = Truth::of(&records(fixture, trace), Some(said));
    for (name, shown) in [
        ("report", Shown::of(&ours::report(fixture, trace))),
        ("report --paths", ours::paths(fixture, trace)),
        ("cat --json", ours::cat(fixture, trace)),
        ("cat --tree", ours::tree(fixture, trace)),
        ("folded", ours::folded(fixture, trace)),
        ("csv", ours::csv(fixture, trace)),
    ] {
        truth.compare(name, &shown);
    }
    compare_theirs(fixture, trace, &truth, Some(said), is_whole);
}

#[test]
fn spans_in_spans() {
    let fixture = Fixture::new("alike-spans");
    let (said, trace) = placed(&fixture, WHOLE, "spans", "100");
    compare(&fixture, &trace, &said, true);
}

#[test]
fn spans_over_threads() {
    let fixture = Fixture::new("alike-tasks");
    let (said, trace) = placed(&fixture, WHOLE, "tasks", "50");
    compare(&fixture, &trace, &said, false);
}

#[test]
fn spans_of_tracing_beside_fmt() {
    let fixture = Fixture::new("alike-tracing");
    let (said, trace) = placed(&fixture, WHOLE, "tracing", "50");
    compare(&fixture, &trace, &said, false);
}

/// Recursion, calls that are left by a jump, calls in handlers.
#[test]
fn calls() {
    let fixture = Fixture::new("alike-calls");
    let program = compile(&fixture, "calls_jumps.c", "jumps", SITES);
    let (_, trace) = record(&fixture, WHOLE, &["run", "--kind", "graph"], &program, &[]);
    let truth = Truth::of(&records(&fixture, &trace), None);
    for (name, shown) in [
        ("report", Shown::of(&ours::report(&fixture, &trace))),
        ("report --paths", ours::paths(&fixture, &trace)),
        ("graph --json", ours::graph(&fixture, &trace)),
        ("folded", ours::folded(&fixture, &trace)),
        ("csv", ours::csv(&fixture, &trace)),
    ] {
        truth.compare(name, &shown);
    }
    compare_theirs(&fixture, &trace, &truth, None, true);
}

#[test]
fn calls_in_spans_and_spans_in_calls() {
    let fixture = Fixture::new("alike-both");
    let flags = format!("{SITES} -l:libringmark.a");
    let program = c::compile(&fixture, c::GCC, "placed_calls.c", &flags, "both");
    let (said, trace) = record(
        &fixture,
        WHOLE,
        &["run", "--kind", "graph"],
        &program,
        &["100"],
    );
    let said: Said = serde_json::from_str(&said).expect("JSON");
    let truth = Truth::of(&records(&fixture, &trace), Some(&said));
    for (name, shown) in [
        ("report", Shown::of(&ours::report(&fixture, &trace))),
        ("report --paths", ours::paths(&fixture, &trace)),
        ("folded", ours::folded(&fixture, &trace)),
        ("csv", ours::csv(&fixture, &trace)),
    ] {
        truth.compare(name, &shown);
    }
    compare_theirs(&fixture, &trace, &truth, Some(&said), false);
}

/// How many spans, and how many others, a program says that it made.
fn sums(said: &Said, is_span: impl Fn(&str) -> bool) -> [u64; 2] {
    let sum = |which| {
        let names = said.iter().filter(|(name, _)| is_span(name) == which);
        names.map(|(_, places)| places.values().sum::<u64>()).sum()
    };
    [true, false].map(sum)
}

/// Compares what is here and what is not with what was made, and all outputs with each other.
fn compare_lossy(fixture: &Fixture, trace: &Path, said: &Said) {
    let rows = ours::report(fixture, trace);
    let spans: u64 = rows.values().map(|row| row.count).sum();
    let [events, lost] = ours::events_in_report(fixture, trace);
    let made: u64 = sums(said, |_| true)[0];
    assert!(lost > 0);
    assert_eq!(spans + events + lost, made, "report and verify");
    assert_eq!(ours::events_in_cat(fixture, trace), [events, lost], "cat");
    let shown = Truth {
        rows,
        events: vec!["placed.event".to_owned()],
        places: Places::new(),
    };
    let mut cat = ours::cat(fixture, trace);
    cat.places = None;
    shown.compare("cat", &cat);
    shown.compare("csv", &ours::csv(fixture, trace));
    shown.compare("folded", &ours::folded(fixture, trace));
    compare_tables(fixture, trace, &shown);
    assert_eq!(ours::events_in_csv(fixture, trace)[0], events, "csv");
    if require_tools(&["babeltrace2"]) {
        let (mut counts, discarded) = theirs::in_ctf(fixture, trace);
        assert_eq!(counts.remove("placed.event"), Some(events), "babeltrace2");
        assert_eq!(discarded, lost, "babeltrace2");
        let counts = Some(counts);
        let found = Shown {
            counts,
            ..Shown::default()
        };
        shown.compare("babeltrace2", &found);
    }
    if let Some(folder) = trace_processor() {
        let mut found = theirs::perfetto(fixture, folder, trace, &shown.events);
        // The trace processor knows nothing of what is hidden in a loss.
        (found.owns, found.places) = (None, None);
        shown.compare("the trace processor", &found);
        let found = theirs::number_in_perfetto(fixture, folder, trace, theirs::LOST);
        assert_eq!(found, lost, "the trace processor");
    }
    if let Some(browser) = browser() {
        shown.compare("the page", &theirs::page(fixture, browser, trace));
        let found = theirs::events_on_page(fixture, browser, trace);
        assert_eq!(found, [events, lost], "the page");
    }
}

/// A ring that is overwritten while it is read, and pages that are gone from the middle of the file.
#[test]
fn what_is_lost() {
    let fixture = Fixture::new("alike-lost");
    let settings = "mode=overwrite,ring=64K,page=4K";
    let (said, trace) = placed(&fixture, settings, "spans", "2000");
    compare_lossy(&fixture, &trace, &said);
    let [events, lost] = ours::events_in_report(&fixture, &trace);
    assert_eq!(ours::events_in_csv(&fixture, &trace), [events, lost], "csv");
    let whole = std::fs::read(&trace).expect("a trace file");
    std::fs::write(&trace, pages_removed(&whole, Some(7))).expect("a trace file");
    compare_lossy(&fixture, &trace, &said);
}

/// What began and ended in one tick lies in what is true, or beside everything.
#[test]
fn coarse_and_no_clock() {
    for clock in ["clock=coarse", "clock=none"] {
        let fixture = Fixture::new("alike-clock");
        let (said, trace) = placed(&fixture, &format!("{WHOLE},{clock}"), "spans", "2000");
        let is_span = |name: &str| name != "placed.event";
        let rows = ours::report(&fixture, &trace);
        let spans: u64 = rows.values().map(|row| row.count).sum();
        let [events, lost] = ours::events_in_report(&fixture, &trace);
        assert_eq!(
            [[spans, events], [lost, 0]],
            [sums(&said, is_span), [0, 0]],
            "{clock}"
        );
        let shown = Truth {
            rows,
            events: vec!["placed.event".to_owned()],
            places: Places::new(),
        };
        let cat = ours::cat(&fixture, &trace);
        for ((name, around), n) in cat.places.iter().flatten() {
            let is_true = around.is_empty() || said[name].contains_key(around);
            assert!(is_true, "{clock}: {n} {name} in {around}");
        }
        let cat = Shown {
            places: None,
            ..cat
        };
        shown.compare("cat", &cat);
        shown.compare("csv", &ours::csv(&fixture, &trace));
        compare_tables(&fixture, &trace, &shown);
        if require_tools(&["babeltrace2"]) {
            let (mut counts, lost) = theirs::in_ctf(&fixture, &trace);
            assert_eq!(
                (counts.remove("placed.event"), lost),
                (Some(events), 0),
                "{clock}"
            );
            let counts = Some(counts);
            shown.compare(
                "babeltrace2",
                &Shown {
                    counts,
                    ..Shown::default()
                },
            );
        }
        if let Some(browser) = browser() {
            shown.compare("the page", &theirs::page(&fixture, browser, &trace));
        }
    }
}

/// Three processes count from 0: what they count, and what their flows tie together, is their own.
#[test]
fn counters_and_flows_of_processes() {
    /// Ends of arrows in different processes.
    const BETWEEN: &str = "select count(*) from flow f \
        join slice a on a.id = f.slice_out join thread_track s on s.id = a.track_id join thread x on x.utid = s.utid \
        join slice b on b.id = f.slice_in join thread_track t on t.id = b.track_id join thread y on y.utid = t.utid \
        where x.upid != y.upid";
    const VALUES: &str = "select cast(sum(value) as int) from counter c join process_counter_track t on t.id = c.track_id \
        where t.name = 'placed.counter'";
    const ROUNDS: u64 = 20;
    let fixture = Fixture::new("alike-flows");
    let each = format!("{} flows {ROUNDS}", program!("placed"));
    let script = format!("{each} & {each} & wait; {each}");
    let (_, trace) = record(
        &fixture,
        WHOLE,
        &["record"],
        Path::new("sh"),
        &["-c", &script],
    );
    let made = 3 * 4 * ROUNDS;
    assert_eq!(
        ours::events_in_report(&fixture, &trace),
        [made, 0],
        "report"
    );
    assert_eq!(ours::events_in_cat(&fixture, &trace), [made, 0], "cat");
    assert_eq!(ours::events_in_csv(&fixture, &trace), [made, 0], "csv");
    if require_tools(&["babeltrace2"]) {
        let (counts, lost) = theirs::in_ctf(&fixture, &trace);
        let counts = ["placed.counter", "placed.flow"].map(|name| counts[name]);
        assert_eq!((counts, lost), ([3 * ROUNDS, 9 * ROUNDS], 0), "babeltrace2");
    }
    if let Some(folder) = trace_processor() {
        let find = |question| theirs::number_in_perfetto(&fixture, folder, &trace, question);
        // Each of three events points to the next one.
        assert_eq!(find("select count(*) from flow"), 3 * 2 * ROUNDS);
        assert_eq!(find(BETWEEN), 0);
        assert_eq!(find(VALUES), 3 * (0..ROUNDS).sum::<u64>());
    }
    if let Some(browser) = browser() {
        assert_eq!(
            theirs::events_on_page(&fixture, browser, &trace),
            [made, 0],
            "the page"
        );
    }
}
