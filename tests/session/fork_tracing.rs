//! Promise: a program that speaks through `tracing` may fork at any moment: no child gets stuck,
//! each records all that it says in a session of its own, and its times are right from the first.

use std::collections::BTreeMap;

use ringmark_decoder::{Dump, Event, Output};
use ringmark_format::schema::Shape;
use ringmark_tests::delivery::number;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::read;

const FORKS: &str = ringmark_tests::program!("traced_forks");
/// Small sessions that stay: dead ones beyond 64 MiB would be cleared away.
const SMALL: &str = "mode=overwrite,ring=64K,page=4K,session=1M,warm=1,keep=always";

fn run(fixture: &Fixture, arguments: &str) -> String {
    let program = fixture.start(FORKS, SMALL, arguments);
    let done = program.finish(8 * SOON).expect_code(0);
    assert_eq!(done.stderr_text(), "");
    done.stdout_text()
}

fn events(dump: &Dump) -> Vec<Event<'_>> {
    let items = dump.events().map(|item| match item {
        Output::Event(event) => event,
        Output::Lost(lost) => panic!("{lost:?}"),
    });
    items.collect()
}

fn threads_meet_new_sites(how: &str) {
    const ROUNDS: usize = 6;
    const CHILDREN: usize = 6;
    let fixture = Fixture::new("sites");
    let said = run(&fixture, &format!("{how} {ROUNDS}"));
    let (stuck, sites) = said.trim().split_once(" of ").expect("two numbers");
    assert_eq!(stuck, "0", "children got stuck");
    let sites: u64 = sites.parse().expect("a number");
    let dump = read(&fixture.ring_files());
    let mut counts = BTreeMap::<u32, u64>::new();
    for event in events(&dump) {
        let pid = event.session.pid();
        assert_eq!(number(&event, "pid"), Some(pid.into()), "a foreign event");
        *counts.entry(pid).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_values().collect();
    counts.sort_unstable();
    let mut expected = vec![sites; ROUNDS * CHILDREN];
    expected.extend([3 * sites; ROUNDS]);
    assert_eq!(counts, expected);
}

#[test]
fn a_fork_while_threads_meet_new_sites_leaves_no_child_stuck() {
    threads_meet_new_sites("sites");
}

#[test]
fn nor_does_it_where_the_recorder_is_a_layer() {
    threads_meet_new_sites("sites-of-a-layer");
}

#[test]
fn a_child_begins_with_a_span() {
    let fixture = Fixture::new("spans");
    run(&fixture, "spans");
    let dump = read(&fixture.ring_files());
    let events = events(&dump);
    let first = events.iter().find(|e| e.name() == b"forked.native");
    let start = first.expect("the parent's span").wall_ns();
    let (mut native, mut traced, mut ticks) = (0, 0, 0);
    for event in &events {
        let name = event.name().escape_ascii();
        assert!(event.wall_ns() >= start, "{name} before the start");
        let of_child = || {
            events
                .iter()
                .filter(|e| e.session.uuid == event.session.uuid)
        };
        let find = |name: &[u8]| of_child().find(|e| e.name() == name);
        match event.name() {
            b"forked.took" => {
                let took = number(event, "ns").expect("a number");
                let span = if let Some(span) = find(b"forked.native") {
                    native += 1;
                    span.duration_ns().expect("a duration")
                } else {
                    traced += 1;
                    let new = find(b"forked.tracing").expect("a new span");
                    let end = of_child().find(|e| e.ty.shape == Some(Shape::SpanExit));
                    let end = end.expect("its end");
                    end.t_ns - new.t_ns
                };
                assert!(
                    (19_000_000..=took + 1_000_000).contains(&span),
                    "{span} ns of {took} ns"
                );
            }
            b"forked.ticks" => {
                ticks += 1;
                assert!(number(event, "now") > number(event, "before"));
            }
            _ => {}
        }
    }
    assert_eq!((native, traced, ticks), (1, 1, 1));
}
