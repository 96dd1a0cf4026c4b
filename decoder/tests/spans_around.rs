//! Which finished spans a record lies in does not depend on where pages end: a page without the end of
//! a span is not walked for them.

use crate::common;

use common::random_trace::{DONE, more_schema};
use common::*;
use proptest::prelude::*;
use ringmark_decoder::{DumpBuilder, Events, Output};
use ringmark_format::Uuid;
use ringmark_format::codec::write;
use ringmark_format::session::Mode;

const EVENT: u32 = 16;

/// A record of one ring: nanoseconds since the one before, how long the span was that it ends, and
/// whether its page ends with it. 0: it is an event.
type Step = (u64, u64, bool);

fn trace(steps: &[Step]) -> Vec<u8> {
    let mut bytes = start(Mode::Discard);
    write::schema(&mut bytes, SESSION, schema().len() as u64, &more_schema()).unwrap();
    let mut tick = 1000;
    let timed = steps.iter().map(|(passed, took, ends)| {
        tick += passed;
        (tick, *took, *ends)
    });
    write_pages(SESSION, &mut bytes, &timed.collect::<Vec<_>>());
    bytes
}

/// Writes one ring: records as tick, duration, and whether their page ends with them.
fn write_pages(session: Uuid, bytes: &mut Vec<u8>, records: &[Step]) {
    let mut events = 0;
    let pages = records.split_inclusive(|record| record.2);
    for (number, records) in pages.enumerate() {
        let mut page = PageOf::new(number as u64, events);
        page.session = session;
        page.header.tick_base = records[0].0;
        for (tick, took, _) in records {
            let ticks = (tick - page.header.tick_base) as u32;
            match took {
                0 => page.event(ticks, EVENT, &[events]),
                took => page.event(ticks, DONE, &[*took]),
            };
            events += 1;
        }
        page.close().write(true, bytes);
    }
}

/// The same steps as records of one thread in two sessions of its process: those with `true` are of the second.
fn in_two_sessions(steps: &[(Step, bool)]) -> Vec<u8> {
    let mut tick = 1000;
    let mut records = [Vec::new(), Vec::new()];
    for ((passed, took, ends), is_second) in steps {
        tick += passed;
        records[usize::from(*is_second)].push((tick, *took, *ends));
    }
    let mut bytes = Vec::new();
    for (number, records) in (1..).zip(&records) {
        let uuid = Uuid([number; 16]);
        let mut header = session_header(Mode::Discard);
        (header.session, header.start_time) = (uuid.0, 99);
        write::session(&mut bytes, uuid, &session_content(header)).unwrap();
        let schema = [schema(), more_schema()].concat();
        write::schema(&mut bytes, uuid, 0, &schema).unwrap();
        write_pages(uuid, &mut bytes, records);
    }
    bytes
}

/// Time, span and parent of a record.
type Placed = (u64, Option<u64>, Option<u64>);

fn placed(steps: &[Step]) -> Vec<Placed> {
    spans_and_times(read(&trace(steps)).unwrap().events())
}

fn spans_and_times(events: Events<'_>) -> Vec<Placed> {
    let events = events.filter_map(|item| match item {
        Output::Event(event) => Some((event.t_ns, event.span, event.parent)),
        Output::Lost(_) => None,
    });
    events.collect()
}

/// The span around each record: the innermost one that ends later and began before. One that began at the
/// tick of the record may have begun after it, so none is known.
fn expected(steps: &[Step]) -> Vec<Option<usize>> {
    let ends: Vec<u64> = steps
        .iter()
        .scan(1000, |tick, step| {
            *tick += step.0;
            Some(*tick)
        })
        .collect();
    let start = |at: usize| ends[at].saturating_sub(steps[at].1);
    let around = |at: usize| {
        let begun = if steps[at].1 == 0 {
            ends[at]
        } else {
            start(at)
        };
        (at + 1..steps.len())
            .find(|later| steps[*later].1 > 0 && start(*later) <= begun)
            .filter(|later| start(*later) < ends[at])
    };
    (0..steps.len()).map(around).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn spans_around_records_do_not_depend_on_pages(
        steps in prop::collection::vec(
            (1..20_u64, prop_oneof![4 => Just(0), 1 => 1..100_u64], any::<bool>()), 1..60),
    ) {
        let in_one: Vec<_> = steps.iter().map(|step| (step.0, step.1, false)).collect();
        let found = placed(&steps);
        prop_assert_eq!(&found, &placed(&in_one));
        let bytes = trace(&steps);
        let mut bare = DumpBuilder::new().bare();
        bare.read("test.rmk", bytes.as_slice()).unwrap();
        let bare = bare.finish();
        let whole = read(&bytes).unwrap();
        prop_assert_eq!(spans_and_times(bare.events_alone()), spans_and_times(whole.events_alone()));
        prop_assert_eq!(spans_and_times(bare.events_bare()), spans_and_times(whole.events_bare()));
        prop_assert!(spans_and_times(bare.events()).iter().all(|placed| placed.2.is_none()));
        prop_assert_eq!(bare.verify(), whole.verify());
        in_expected_spans(&steps, &found)?;
    }

    #[test]
    fn spans_hold_records_of_another_session_of_the_thread(
        steps in prop::collection::vec(
            ((1..20_u64, prop_oneof![4 => Just(0), 1 => 1..100_u64], any::<bool>()), any::<bool>()), 1..60),
    ) {
        let all: Vec<_> = steps.iter().map(|(step, _)| *step).collect();
        let found = spans_and_times(read(&in_two_sessions(&steps)).unwrap().events());
        in_expected_spans(&all, &found)?;
    }
}

/// Each record lies in the span that its step says.
fn in_expected_spans(steps: &[Step], found: &[Placed]) -> Result<(), TestCaseError> {
    for (at, around) in expected(steps).into_iter().enumerate() {
        let (_, span, parent) = found[at];
        let of_record = if steps[at].1 == 0 { span } else { parent };
        prop_assert_eq!(
            of_record,
            around.and_then(|around| found[around].1),
            "record {}",
            at
        );
    }
    Ok(())
}
