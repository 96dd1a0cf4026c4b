//! What lies in what where many records share a tick: the decoder says what is certain, and leaves open what
//! no order of records tells.

use crate::common;

use common::random_trace::{DONE, more_schema};
use common::*;
use proptest::prelude::*;
use ringmark_decoder::{Dump, Event, Filter, Output};
use ringmark_format::codec::write;
use ringmark_format::session::{Clock, Mode};

/// An event: type 16 `tick`, with its number.
const EVENT: u32 = 16;

/// What a step does after some ticks.
#[derive(Debug, Clone, Copy)]
enum What {
    Begin,
    End,
    Event,
}

/// A record in the order of reservation: its beginning and end, and the span around it, by place.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Truth {
    is_span: bool,
    start: u64,
    end: u64,
    around: Option<usize>,
}

/// A thread that does these steps, and what is true of its records. The span around each is known by the
/// number that it had among those that began.
fn trace(steps: &[(u8, What)], clock: Clock) -> (Vec<u8>, Vec<Truth>) {
    let mut header = session_header(Mode::Discard);
    header.clock = clock as u32;
    let mut out = Vec::new();
    write::session(&mut out, SESSION, &session_content(header)).unwrap();
    write::schema(&mut out, SESSION, 0, &schema()).unwrap();
    write::schema(&mut out, SESSION, schema().len() as u64, &more_schema()).unwrap();
    let (mut pages, mut page) = (0, PageOf::new(0, 0));
    let (mut now, mut begun, mut open) = (0_u64, 0_usize, Vec::new());
    let (mut truth, mut record_of) = (Vec::new(), Vec::new());
    let ends = steps.iter().copied().chain([(1, What::End); 100]);
    for (ticks, what) in ends {
        now += u64::from(ticks);
        // Few records a page, so that spans reach over pages.
        if page.bytes.len() > 200 {
            page.close().write(true, &mut out);
            pages += 1;
            page = PageOf::new(pages, truth.len() as u64);
            page.header.tick_base = 1000 + now;
        }
        let at = (1000 + now - page.header.tick_base) as u32;
        match what {
            What::Begin => {
                open.push((begun, now));
                record_of.push(None);
                begun += 1;
            }
            What::End => {
                let Some((number, start)) = open.pop() else {
                    continue;
                };
                record_of[number] = Some(truth.len());
                page.event(at, DONE, &[now - start]);
                let around = open.last().map(|(number, _)| *number);
                truth.push((true, start, now, around));
            }
            What::Event => {
                page.event(at, EVENT, &[truth.len() as u64]);
                truth.push((false, now, now, open.last().map(|(number, _)| *number)));
            }
        }
    }
    page.close().write(true, &mut out);
    let truth = truth
        .into_iter()
        .map(|(is_span, start, end, around)| Truth {
            is_span,
            start,
            end,
            around: around.and_then(|number| record_of[number]),
        });
    (out, truth.collect())
}

/// The id of the span around each record as the decoder has it, and whether it says that it does not know.
fn found(dump: &Dump) -> (Vec<u64>, Vec<(Option<u64>, bool)>) {
    let events: Vec<Event<'_>> = dump
        .events()
        .filter_map(|item| match item {
            Output::Event(event) => Some(event),
            Output::Lost(_) => None,
        })
        .collect();
    let ids = events.iter().map(|event| event.span.unwrap_or(0)).collect();
    let around = events.iter().map(|event| match event.duration_ns() {
        Some(_) => (event.parent, event.is_unplaced()),
        None => (event.span, event.is_unplaced()),
    });
    (ids, around.collect())
}

fn check(steps: &[(u8, What)]) {
    let (bytes, truth) = trace(steps, Clock::Coarse);
    let dump = read(&bytes).unwrap();
    let (ids, found) = found(&dump);
    assert_eq!(found.len(), truth.len());
    for (place, (known, (around, is_unknown))) in truth.iter().zip(found).enumerate() {
        let id = known.around.map(|span| ids[span]);
        // Spans that end later and may be around it: none between began before them, so none of those
        // ended before they began.
        let mut low = known.start;
        let mut innermost = None;
        for later in truth[place + 1..].iter().filter(|later| later.is_span) {
            if later.start <= low {
                innermost = innermost.or(Some(later));
                low = later.start;
            }
        }
        let is_certain = innermost.is_none_or(|later| later.start < known.end);
        assert_eq!(is_unknown, !is_certain, "record {place} of {truth:?}");
        let expected = id.filter(|_| is_certain);
        assert_eq!(around, expected, "record {place} of {truth:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn no_parent_is_invented_where_records_share_a_tick(
        steps in prop::collection::vec(
            (
                prop_oneof![3 => Just(0_u8), 2 => 1..3_u8],
                prop_oneof![3 => Just(What::Begin), 3 => Just(What::End), 1 => Just(What::Event)],
            ),
            1..80,
        ),
    ) {
        check(&steps);
    }
}

/// A request with two spans inside, all at one tick but for its end.
#[test]
fn a_span_that_took_no_tick_has_no_parent_that_is_known() {
    use What::{Begin, End};
    let request = [
        (0, Begin),
        (0, Begin),
        (0, End),
        (0, Begin),
        (1, End),
        (1, End),
    ];
    let (bytes, truth) = trace(&request, Clock::Coarse);
    let dump = read(&bytes).unwrap();
    let (ids, around) = found(&dump);
    assert_eq!(truth.len(), 3);
    let outer = Some(ids[2]);
    assert_eq!(around, [(None, true), (outer, false), (None, false)]);
    let paths = dump.paths(&Filter::new(), None);
    assert_eq!(paths.unplaced, 1);
}

/// Without a clock nothing is known but the order of the records, and no time is shown.
#[test]
fn without_a_clock_no_time_and_no_parent_is_shown() {
    use What::{Begin, End};
    let request = [(0, Begin), (0, Begin), (0, End), (0, End)];
    let (bytes, _) = trace(&request, Clock::None);
    let dump = read(&bytes).unwrap();
    let text = json(&dump);
    for line in text.lines() {
        for key in ["\"ts\":null", "\"dur_ns\":null", "\"parent\":null"] {
            assert!(line.contains(key), "{key} in {line}");
        }
    }
    let figures = dump.figures(ringmark_decoder::Counted::default());
    assert_eq!(figures.spans[0].spans(), 2);
    assert!(figures.spans[0].times().is_none(), "no duration is known");
    assert_eq!(dump.verify().first_ns, None, "no date is known");
}
