//! Promise: whatever way a child comes to be, no event of it is found in the session of another
//! process; what it cannot record yet is counted.

use std::collections::BTreeMap;

use ringmark_decoder::Output;
use ringmark_tests::delivery::number;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::is_long;
use ringmark_tests::recording::read;

const CHILDREN: &str = ringmark_tests::program!("children");
/// Small sessions that stay: dead ones beyond 64 MiB would be cleared away.
const SMALL: &str = "mode=discard,ring=64K,page=4K,session=256K,warm=1,keep=always,control=off";
/// What each part of the program emits.
const EVENTS: u64 = 100;

/// What a session holds: events by name, and losses by cause.
type Books = BTreeMap<String, u64>;

/// Runs it to its end; what it said.
fn run(fixture: &Fixture, ringmark: &str, arguments: &str) -> String {
    let program = fixture.start(CHILDREN, ringmark, arguments);
    let done = program.finish(6 * SOON).expect_code(0);
    assert_eq!(done.stderr_text(), "");
    done.stdout_text().trim().to_owned()
}

/// The books of each session, in the order of their events; nothing foreign.
fn books(fixture: &Fixture) -> Vec<Books> {
    let mut all = Vec::new();
    for ring_file in fixture.ring_files() {
        let mut books = Books::new();
        for item in read(&[ring_file]).events() {
            let (name, count) = match item {
                Output::Event(event) => {
                    let pid = event.session.pid();
                    assert_eq!(number(&event, "pid"), Some(pid.into()), "a foreign event");
                    (event.name().escape_ascii().to_string(), 1)
                }
                Output::Lost(lost) => (lost.loss.why.cause().to_owned(), lost.loss.count),
            };
            *books.entry(name).or_default() += count;
        }
        all.push(books);
    }
    all.sort();
    all
}

/// The books that a session must have.
fn expected<const N: usize>(sums: [(&str, u64); N]) -> Books {
    let sums = sums.into_iter();
    sums.map(|(name, count)| (name.to_owned(), count)).collect()
}

fn ticks(count: u64) -> Books {
    expected([("children.tick", count)])
}

#[test]
fn a_childs_first_event_in_a_handler_is_counted_and_the_next_recorded() {
    for how in [
        "handler",
        "handler-thread",
        "handler-stack",
        "handler-nodefer",
    ] {
        let fixture = Fixture::new(how);
        run(&fixture, SMALL, how);
        let child = expected([
            ("children.handler", 10),
            ("children.tick", 2 * EVENTS),
            ("no ring", 10),
        ]);
        let mut wanted = vec![child, ticks(EVENTS)];
        wanted.sort();
        assert_eq!(books(&fixture), wanted, "{how}");
    }
}

#[test]
fn handlers_that_interrupt_a_childs_allocator_do_no_harm() {
    let rounds = if is_long() { 100 } else { 5 };
    for _ in 0..rounds {
        let fixture = Fixture::new("allocator");
        let handled: u64 = run(&fixture, SMALL, "allocator").parse().unwrap();
        let books = books(&fixture);
        assert_eq!(books.len(), 2);
        let sum = |name| {
            books
                .iter()
                .filter_map(|books| books.get(name))
                .sum::<u64>()
        };
        assert_eq!(sum("children.tick"), 2 * EVENTS, "{books:?}");
        assert_eq!(
            sum("children.handler") + sum("no ring"),
            handled,
            "{books:?}"
        );
        assert!(sum("no ring") >= 300, "{books:?}");
    }
}

#[test]
fn a_blocked_signal_with_a_handler_keeps_no_child_from_its_session() {
    let fixture = Fixture::new("blocked");
    run(&fixture, SMALL, "blocked");
    let parent = expected([("children.handler", 10), ("children.tick", EVENTS)]);
    let mut wanted = vec![parent, ticks(EVENTS), ticks(EVENTS)];
    wanted.sort();
    assert_eq!(books(&fixture), wanted);
}

#[test]
fn a_thread_that_begins_in_a_handler_waits_where_its_hook_would_allocate() {
    let fixture = Fixture::new("keys");
    run(&fixture, SMALL, "keys");
    let wanted = expected([
        ("children.handler", 100),
        ("children.tick", 10 * EVENTS),
        ("no ring", 100),
    ]);
    assert_eq!(books(&fixture), [wanted]);
}

#[test]
fn children_of_an_untraced_program_inherit_no_lock() {
    let fixture = Fixture::new("bridge");
    let count = if is_long() { 3000 } else { 200 };
    let ringmark = SMALL.replace("always", "never");
    let stuck = run(&fixture, &ringmark, &format!("bridge {count}"));
    assert_eq!(stuck, "0", "children got stuck");
}

#[test]
fn a_storm_of_children_that_fork_exec_exit_and_die() {
    let (rounds, count) = if is_long() { (25, 240) } else { (1, 120) };
    for _ in 0..rounds {
        let fixture = Fixture::new("storm");
        let ringmark = SMALL.replace("discard", "overwrite");
        run(&fixture, &ringmark, &format!("storm {count}"));
        let mut books = books(&fixture);
        // Every child, a grandchild or a new program for every third, and the parent.
        assert_eq!(books.len() as u64, count + count / 3 + 1);
        books.retain(|books| *books != ticks(EVENTS));
        assert_eq!(books.len(), 1, "{books:?}");
        assert!(
            books[0]
                .keys()
                .all(|name| name == "children.tick" || name == "overwritten")
        );
    }
}

#[test]
fn commands_of_the_shell_are_sessions_of_their_own() {
    let fixture = Fixture::new("shell");
    run(&fixture, SMALL, "shell");
    assert_eq!(
        books(&fixture),
        [ticks(EVENTS), ticks(EVENTS), ticks(2 * EVENTS)]
    );
}

#[test]
fn a_daemon_goes_on_in_a_session_of_its_own() {
    let fixture = Fixture::new("daemon");
    assert_eq!(run(&fixture, SMALL, "daemon"), EVENTS.to_string());
    assert_eq!(books(&fixture), [ticks(EVENTS), ticks(EVENTS)]);
}

#[test]
fn a_child_past_the_c_library_writes_nothing_and_counts() {
    let fixture = Fixture::new("clone3");
    assert_eq!(run(&fixture, SMALL, "clone3"), EVENTS.to_string());
    assert_eq!(books(&fixture), [ticks(2 * EVENTS)]);
}

#[test]
fn a_process_that_shares_the_memory_gets_no_ring_and_is_counted() {
    for how in ["vm", "vm-vfork"] {
        let fixture = Fixture::new(how);
        run(&fixture, SMALL, how);
        let wanted = expected([("children.tick", 2 * EVENTS), ("no ring", EVENTS)]);
        assert_eq!(books(&fixture), [wanted], "{how}");
    }
}

#[test]
fn first_events_keep_errno() {
    let fixture = Fixture::new("errno");
    run(&fixture, SMALL, "errno");
    assert_eq!(books(&fixture), [ticks(1), ticks(EVENTS + 1)]);
}
