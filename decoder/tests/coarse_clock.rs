//! What lies in what where many records share a tick: the decoder says what is certain, and leaves open what
//! no order of records tells.

use crate::common;

use common::random_trace::{DONE, more_schema};
use common::*;
use proptest::prelude::*;
use ringmark_decoder::{Dump, Event, Filter, Output};
use ringmark_format::Uuid;
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
    /// Its session, and number there.
    session: usize,
    number: u64,
    is_span: bool,
    start: u64,
    end: u64,
    around: Option<usize>,
}

/// A session of the process that is written, with the thread's ring.
struct Ring {
    session: usize,
    page: PageOf,
    pages: u64,
    records: u64,
}

impl Ring {
    fn new(session: usize) -> Self {
        Self {
            session,
            page: page_of(session, 0, 0, 0),
            pages: 0,
            records: 0,
        }
    }

    /// Adds a record. Pages have few, so that spans reach over pages.
    fn add(&mut self, now: u64, id: u32, payload: &[u64], out: &mut Vec<u8>) {
        if self.page.bytes.len() > 200 {
            self.pages += 1;
            let next = page_of(self.session, self.pages, self.records, now);
            std::mem::replace(&mut self.page, next)
                .close()
                .write(true, out);
        }
        let ticks = 1000 + now - self.page.header.tick_base;
        self.page.event(ticks as u32, id, payload);
        self.records += 1;
    }
}

fn page_of(session: usize, number: u64, records: u64, now: u64) -> PageOf {
    let mut page = PageOf::new(number, records);
    page.session = uuid_of(session);
    page.header.tick_base = 1000 + now;
    page
}

const fn uuid_of(session: usize) -> Uuid {
    Uuid([1 + session as u8; 16])
}

/// Ticks before a step, the step, and the session that its record is in.
type Step = (u8, What, usize);

/// A thread that does these steps, and what is true of its records. The span around each is known by the
/// number that it had among those that began.
fn trace(steps: &[Step], clock: Clock) -> (Vec<u8>, Vec<Truth>) {
    let mut out = Vec::new();
    for session in [0, 1].map(uuid_of) {
        let mut header = session_header(Mode::Discard);
        header.clock = clock as u32;
        header.session = session.0;
        header.start_time = 99;
        write::session(&mut out, session, &session_content(header)).unwrap();
        write::schema(&mut out, session, 0, &schema()).unwrap();
        write::schema(&mut out, session, schema().len() as u64, &more_schema()).unwrap();
    }
    let mut rings = [0, 1].map(Ring::new);
    let (mut now, mut begun, mut open) = (0_u64, 0_usize, Vec::new());
    let (mut truth, mut record_of) = (Vec::new(), Vec::new());
    let ends = steps.iter().copied().chain([(1, What::End, 0); 100]);
    for (ticks, what, session) in ends {
        now += u64::from(ticks);
        let number = rings[session].records;
        match what {
            What::Begin => {
                open.push((begun, now));
                record_of.push(None);
                begun += 1;
            }
            What::End => {
                let Some((of, start)) = open.pop() else {
                    continue;
                };
                record_of[of] = Some(truth.len());
                rings[session].add(now, DONE, &[now - start], &mut out);
                let around = open.last().map(|(of, _)| *of);
                truth.push(((session, number), true, start, now, around));
            }
            What::Event => {
                rings[session].add(now, EVENT, &[truth.len() as u64], &mut out);
                let around = open.last().map(|(of, _)| *of);
                truth.push(((session, number), false, now, now, around));
            }
        }
    }
    for mut ring in rings.into_iter().filter(|ring| ring.records > 0) {
        ring.page.close().write(true, &mut out);
    }
    let truth = truth
        .into_iter()
        .map(|((session, number), is_span, start, end, around)| Truth {
            session,
            number,
            is_span,
            start,
            end,
            around: around.and_then(|of| record_of[of]),
        });
    (out, truth.collect())
}

/// The id of the span around each record as the decoder has it, and whether it says that it does not know.
fn found(dump: &Dump, truth: &[Truth]) -> (Vec<u64>, Vec<(Option<u64>, bool)>) {
    let mut events: Vec<Event<'_>> = dump
        .events()
        .filter_map(|item| match item {
            Output::Event(event) => Some(event),
            Output::Lost(_) => None,
        })
        .collect();
    events.sort_by_key(|event| {
        let place = (event.session.uuid, event.seq);
        truth
            .iter()
            .position(|truth| (uuid_of(truth.session), truth.number) == place)
    });
    let ids = events.iter().map(|event| event.span.unwrap_or(0)).collect();
    let around = events.iter().map(|event| match event.duration_ns() {
        Some(_) => (event.parent, event.is_unplaced()),
        None => (event.span, event.is_unplaced()),
    });
    (ids, around.collect())
}

/// Of one session: all is known but what no order of its records tells.
fn check(steps: &[Step]) {
    let (bytes, truth) = trace(steps, Clock::Coarse);
    let dump = read(&bytes).unwrap();
    let (ids, found) = found(&dump, &truth);
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

/// Of two sessions: nothing is invented, and all is known where only records of one share a tick. `is_one`: whether
/// records are in one session where the clock has not moved since the one before.
fn check_sessions(steps: &[Step], is_one: bool) {
    let mut steps = steps.to_vec();
    let mut session = 0;
    for step in &mut steps {
        match is_one && step.0 == 0 {
            true => step.2 = session,
            false => session = step.2,
        }
    }
    let (bytes, truth) = trace(&steps, Clock::Coarse);
    let (dump, mut of_one) = (read(&bytes).unwrap(), steps.clone());
    let (ids, around) = found(&dump, &truth);
    of_one.iter_mut().for_each(|step| step.2 = 0);
    let (bytes, truth_of_one) = trace(&of_one, Clock::Coarse);
    let alone = read(&bytes).unwrap();
    let (_, alone) = found(&alone, &truth_of_one);
    for (place, (known, (around, is_unknown))) in truth.iter().zip(around).enumerate() {
        let expected = known.around.map(|span| ids[span]).filter(|_| !is_unknown);
        assert_eq!(around, expected, "record {place} of {truth:?}");
        if is_one {
            assert_eq!(is_unknown, alone[place].1, "record {place} of {truth:?}");
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (
        prop_oneof![3 => Just(0_u8), 2 => 1..3_u8],
        prop_oneof![3 => Just(What::Begin), 3 => Just(What::End), 1 => Just(What::Event)],
        0..2_usize,
    );
    prop::collection::vec(step, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn no_parent_is_invented_where_records_share_a_tick(steps in steps()) {
        let of_one: Vec<Step> = steps.iter().map(|step| (step.0, step.1, 0)).collect();
        check(&of_one);
        check_sessions(&steps, false);
        check_sessions(&steps, true);
    }
}

/// A request with two spans inside, all at one tick but for its end.
#[test]
fn a_span_that_took_no_tick_has_no_parent_that_is_known() {
    use What::{Begin, End};
    let request = [
        (0, Begin, 0),
        (0, Begin, 0),
        (0, End, 0),
        (0, Begin, 0),
        (1, End, 0),
        (1, End, 0),
    ];
    let (bytes, truth) = trace(&request, Clock::Coarse);
    let dump = read(&bytes).unwrap();
    let (ids, around) = found(&dump, &truth);
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
    let request = [(0, Begin, 0), (0, Begin, 0), (0, End, 0), (0, End, 0)];
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
