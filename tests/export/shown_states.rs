//! Promise: what threads did is the same for Perfetto's own reader, on the page, and in our sums.

use std::collections::BTreeMap;
use std::path::Path;

use ringmark_decoder::{Dump, Filter, Output, Span, ThreadDoes};
use ringmark_format::switches::SLACK_NS;
use ringmark_tests::browser::browser;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, tool};
use ringmark_tests::recording::decode;
use ringmark_tests::trace_processor::{ask, trace_processor};
use ringmark_tests::{log_skip, program, run, workspace_root};
use serde_json::Value;

use crate::outputs::theirs;

/// Times in which a thread did one thing: thread, from, to, what, and where.
type State = (u32, u64, u64, ThreadDoes, Option<u64>);

/// What is known of threads, by our own reader.
fn ours(dump: &Dump) -> Vec<State> {
    let mut ran: BTreeMap<(usize, u32), Vec<u64>> = BTreeMap::new();
    let mut numbers = BTreeMap::new();
    for event in events(dump) {
        let key = (event.session.process, event.tid());
        ran.entry(key).or_default().push(event.t_ns);
        numbers.entry(key).or_insert(event.session);
    }
    let mut all = Vec::new();
    for ((process, tid), session) in numbers {
        let ran = (tid, &ran[&(process, tid)][..]);
        Filter::new().thread_states(session, ran, |state| {
            let cpu = (state.does == ThreadDoes::Runs)
                .then_some(state.cpu)
                .flatten();
            all.push((
                tid,
                state.from_ns,
                state.to_ns,
                state.does,
                cpu.map(u64::from),
            ));
        });
    }
    all.sort();
    all
}

fn events(dump: &Dump) -> impl Iterator<Item = ringmark_decoder::Event<'_>> {
    dump.events().filter_map(|item| match item {
        Output::Event(event) => Some(event),
        Output::Lost(_) => None,
    })
}

fn number(cell: &Value) -> Option<u64> {
    cell.as_str().and_then(|digits| digits.parse().ok())
}

/// The same by Perfetto's reader. What is stopped there is not known.
fn theirs(fixture: &Fixture, folder: &Path, trace: &Path) -> Vec<State> {
    const STATES: &str =
        "select tid, ts, dur, state, cpu from thread_state join thread using (utid) where dur > 0";
    let file = theirs::export(fixture, trace, "perfetto");
    let rows = ask(folder, &file, &[STATES]).remove(0);
    let states = rows.iter().filter_map(|row| {
        let [tid, from, took, state, cpu] = &row[..] else {
            panic!("{row:?}")
        };
        let does = match state.as_str().expect("a state") {
            "Running" => ThreadDoes::Runs,
            "R" => ThreadDoes::Ready,
            "S" => ThreadDoes::Waits,
            "T" => return None,
            other => panic!("{other}"),
        };
        let from = number(from)?;
        Some((
            number(tid)? as u32,
            from,
            from + number(took)?,
            does,
            number(cpu),
        ))
    });
    let mut all: Vec<_> = states.collect();
    all.sort();
    all
}

/// The time of each state between two moments.
fn sums(states: &[State], tid: u32, from: u64, to: u64) -> [u64; 3] {
    let mut sums = [0; 3];
    for (_, first, last, does, _) in states.iter().filter(|state| state.0 == tid) {
        sums[*does as usize] += to.min(*last).saturating_sub(from.max(*first));
    }
    sums
}

/// What is said of each span is what its thread did meanwhile: a switch beside a record may count as at it.
fn compare_spans(dump: &Dump, states: &[State]) -> u64 {
    let mut known = 0;
    for event in events(dump) {
        let Some((end, did)) =
            Span::of_event(&event).and_then(|span| Some((span.end.wall_ns(), span.times?)))
        else {
            continue;
        };
        let said = [did.running_ns, did.ready_ns, did.waiting_ns];
        let found = sums(states, event.tid(), end - did.all_ns(), end);
        // Of contradictory switches less is known at each moment than between two records.
        if found.iter().sum::<u64>() + 2 * SLACK_NS < did.all_ns() {
            continue;
        }
        let is_near = |place: usize| said[place].abs_diff(found[place]) <= 2 * SLACK_NS;
        assert!(
            (0..3).all(is_near),
            "said {said:?}, found {found:?}: {event:?}"
        );
        known += 1;
    }
    known
}

/// What the page says of each thread, if a browser is here.
fn compare_page(fixture: &Fixture, trace: &Path, states: &[State]) {
    let Some(browser) = browser() else { return };
    let on_page = theirs::states_on_page(fixture, browser, trace);
    assert!(!on_page.is_empty());
    for (tid, shown) in on_page {
        let sums = sums(states, tid, 0, u64::MAX);
        for (shown, sum) in shown.into_iter().zip(sums) {
            let rounded = sum / 100 + 1000;
            // The page ends with its last event.
            assert!(shown <= sum + rounded, "{tid}: shown {shown}, found {sum}");
        }
    }
}

fn compare(fixture: &Fixture, trace: &Path) -> u64 {
    let dump = decode(&[trace.to_owned()]);
    let states = ours(&dump);
    if let Some(folder) = trace_processor() {
        let mut theirs = theirs(fixture, folder, trace);
        // To Perfetto a thread runs somewhere, even if no switch says where.
        let mut ours = states.clone();
        for (found, state) in theirs.iter_mut().zip(&mut ours) {
            if state.4.is_none() {
                found.4 = None;
            }
        }
        assert_eq!(theirs, ours, "the trace processor");
    }
    compare_page(fixture, trace, &states);
    compare_spans(&dump, &states)
}

/// Losses, two sessions of a process, and a thread that ends.
#[test]
fn the_vector_of_the_format() {
    let fixture = Fixture::new("states-vector");
    let trace = fixture.path("switched.rmk");
    let vector = workspace_root().join("format-spec/vectors/v1/switched.rmk");
    std::fs::copy(vector, &trace).expect("a vector");
    assert_eq!(compare(&fixture, &trace), 6);
}

#[test]
fn a_program() {
    let fixture = Fixture::new("states-program");
    let trace = fixture.path("turns.rmk");
    let mut record = tool(&fixture);
    record.args(["record", "--sched", "-o"]).arg(&trace);
    let done = run(record.args(["--", program!("turns"), "3"]), LIMIT).expect("the tool");
    let done = done.expect_code(0);
    if !decode(std::slice::from_ref(&trace)).sessions[0].has_switches() {
        return log_skip(&format!(
            "switches are refused here: {}",
            done.stderr_text()
        ));
    }
    assert!(compare(&fixture, &trace) > 0);
}
