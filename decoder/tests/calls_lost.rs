//! Calls of a thread whose records were lost, and calls in which it waited for its reader.

use crate::common;

use common::function_schema::{entry, function, function_type, function_types, module};
use common::*;
use ringmark_decoder::{Call, Calls, Dump, FunctionTimes, Output, Profile, Step};
use ringmark_format::attribute::{self, tag};
use ringmark_format::codec::write;
use ringmark_format::schema::{EventEntry, FieldEntry, Kind, Level, Shape, entry_kind, semantic};
use ringmark_format::session::Mode;
use ringmark_format::waits;
use zerocopy::IntoBytes;

const WORK: u32 = 0;
const MAIN: u32 = 1;
/// The event type of a wait for the reader.
const WAIT: u32 = 40;

/// The functions `work` and `main` with their types, and the type of waits.
fn functions() -> Vec<u8> {
    let wait = EventEntry {
        level: Level::Error as u8,
        shape: Shape::Span as u8,
        flags: 0,
        fixed_payload_bytes: 8,
    };
    let duration = FieldEntry {
        kind: Kind::U64 as u8,
        flags: 0,
        count: 0,
        offset: 0,
        bytes: 8,
        reserved: 0,
    };
    let mut about = duration.as_bytes().to_vec();
    attribute::push(&mut about, tag::NAME, b"duration");
    attribute::push(&mut about, tag::SEMANTIC, &semantic::DURATION.to_le_bytes());
    let of_wait: [(u16, &[u8]); 4] = [
        (tag::NAME, waits::NAME.as_bytes()),
        (tag::TARGET, waits::TARGET.as_bytes()),
        (tag::CATEGORY, waits::CATEGORY.as_bytes()),
        (tag::FIELD, &about),
    ];
    [
        module("/usr/bin/server"),
        function(WORK, "work"),
        function(MAIN, "main"),
        function_types(0, 2, 1, 0),
        entry(entry_kind::EVENT, WAIT, wait.as_bytes(), &of_wait),
    ]
    .concat()
}

fn dump_of(pages: &mut [PageOf]) -> Dump {
    let mut bytes = start(Mode::Discard);
    let at = schema().len() as u64;
    write::schema(&mut bytes, SESSION, at, &functions()).unwrap();
    for page in pages {
        page.close().write(true, &mut bytes);
    }
    read(&bytes).unwrap()
}

/// The calls that ended, and the figures of the functions.
fn ended(dump: &Dump) -> (Vec<Call<'_>>, Vec<FunctionTimes>) {
    let (mut calls, mut profile) = (Calls::new(None), Profile::default());
    let mut found = Vec::new();
    for item in dump.events() {
        match item {
            Output::Lost(lost) => calls.lose(&lost),
            Output::Event(event) => calls.take(&event, |step| {
                if let Step::Left(call) | Step::Whole(call) = step {
                    profile.add(call.session, &call, None);
                    found.push(call);
                }
            }),
        }
    }
    (found, profile.finish())
}

/// Five calls of which two lost their ends, then five more: none of those is inside the others.
#[test]
fn calls_that_a_loss_left_open_make_no_recursion() {
    let mut before = PageOf::new(0, 0);
    for n in 0..2 {
        before.event(10 * n, function_type(WORK, false), &[]);
    }
    let mut after = PageOf::new(1, 2);
    after.header.lost_before = 7;
    for n in 0..5 {
        after.event(100 * n, function_type(WORK, false), &[]);
        after.event(100 * n + 10, function_type(WORK, true), &[]);
    }
    let dump = dump_of(&mut [before, after]);
    let (calls, times) = ended(&dump);
    let times = &times[0];
    assert_eq!(calls.len(), 5);
    assert!(calls.iter().all(|call| !call.recursive && !call.unsure));
    assert_eq!(times.total_ns, 5 * times.durations.mean_ns());
    assert_eq!(times.self_ns, times.total_ns);
}

/// The end of `main` ends `work`, whose own end was lost: how long that one took is not known.
#[test]
fn a_call_whose_end_was_lost_has_no_duration() {
    let mut before = PageOf::new(0, 0);
    before.event(0, function_type(MAIN, false), &[]);
    before.event(10, function_type(WORK, false), &[]);
    let mut after = PageOf::new(1, 2);
    after.header.lost_before = 7;
    after.event(0, function_type(MAIN, true), &[]);
    let dump = dump_of(&mut [before, after]);
    let (calls, times) = ended(&dump);
    assert!(calls.iter().all(|call| call.unsure), "{calls:?}");
    let of = |name: &[u8]| times.iter().find(|f| f.name == name).expect("a function");
    let work = of(b"work");
    assert_eq!((work.calls, work.no_end, work.is_timed()), (1, 1, false));
    let main = of(b"main");
    assert_eq!((main.calls, main.no_end, main.total_ns), (1, 0, 1000));
}

/// A wait is time of no function; it lies in the call that had begun before it.
#[test]
fn a_wait_for_the_reader_is_no_time_of_a_call() {
    let mut page = PageOf::new(0, 0);
    page.event(0, function_type(MAIN, false), &[]);
    page.event(10, function_type(WORK, false), &[]);
    page.event(110, WAIT, &[90]); // from 20 on
    page.event(130, function_type(WORK, true), &[]);
    page.event(200, function_type(MAIN, true), &[]);
    let dump = dump_of(&mut [page]);
    let (_, times) = ended(&dump);
    let own: Vec<_> = times.iter().map(|f| (f.total_ns, f.self_ns)).collect();
    assert_eq!(own, [(200, 80), (120, 30)], "main, work");
}
