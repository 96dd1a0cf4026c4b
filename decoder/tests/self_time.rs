//! The own time of spans and calls is what a count of single nanoseconds gives, and is not known of what
//! began before a piece of the trace, or before the chosen time if calls may have been in it then.

use crate::common;

use common::function_schema::function_type;
use common::random_trace::{DONE, more_schema};
use common::*;
use proptest::prelude::*;
use ringmark_decoder::{Calls, Chosen, Dump, Filter, Output, SpanPairs, Step};
use ringmark_format::codec::write;
use ringmark_format::session::Mode;

/// A span or call: beginning and end in ns since the session's start, and its own time.
type Timed = (u64, u64, Option<u64>);

/// What the trace is of.
#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Calls,
    Spans,
    /// A call in a span, a span in a call, and so on.
    Both,
}

impl What {
    /// Whether what has that many around it is a call.
    fn is_call(self, depth: usize) -> bool {
        match self {
            Self::Calls => true,
            Self::Spans => false,
            Self::Both => depth % 2 == 1,
        }
    }
}

/// Open spans or calls of one thread, each with the nanoseconds in which it was the innermost.
struct Thread {
    what: What,
    page: PageOf,
    now: u64,
    open: Vec<(u64, u64)>,
    ended: Vec<Timed>,
}

impl Thread {
    fn pass(&mut self, ns: u64) {
        for _ in 0..ns {
            self.now += 1;
            if let Some((_, own)) = self.open.last_mut() {
                *own += 1;
            }
        }
    }

    fn begin(&mut self) {
        let function = self.open.len() as u32 % 2;
        if self.what.is_call(self.open.len()) {
            let (at, ty) = (self.now as u32, function_type(function, false));
            self.page.event(at, ty, &[0x1000 | 1 << 48]);
        }
        self.open.push((self.now, 0));
    }

    fn end(&mut self) {
        let (begun, own) = self.open.pop().unwrap();
        let function = self.open.len() as u32 % 2;
        let now = self.now as u32;
        match self.what.is_call(self.open.len()) {
            true => self.page.event(now, function_type(function, true), &[]),
            false => self.page.event(now, DONE, &[self.now - begun]),
        };
        self.ended.push((begun, self.now, Some(own)));
    }
}

/// A trace of these steps, each of some nanoseconds and whether something begins then, and what ended in
/// it.
fn trace(what: What, steps: &[(u64, bool)]) -> (Vec<u8>, Vec<Timed>) {
    let mut thread = Thread {
        what,
        page: PageOf::new(0, 0),
        now: 0,
        open: Vec::new(),
        ended: Vec::new(),
    };
    for (ns, begins) in steps {
        thread.pass(*ns);
        match *begins || thread.open.is_empty() {
            true => thread.begin(),
            false => thread.end(),
        }
    }
    while !thread.open.is_empty() {
        thread.pass(1);
        thread.end();
    }
    let mut bytes = start(Mode::Discard);
    write::schema(&mut bytes, SESSION, schema().len() as u64, &more_schema()).unwrap();
    thread.page.close().write(true, &mut bytes);
    (bytes, thread.ended)
}

/// What the decoder finds, in the order of the ends.
fn found(dump: &Dump) -> Vec<Timed> {
    let (mut calls, mut pairs) = (Calls::new(None), SpanPairs::new(dump));
    let mut found = Vec::new();
    for item in dump.events() {
        let Output::Event(event) = &item else {
            continue;
        };
        if event.function().is_none() {
            let span = pairs.whole(event);
            found.extend(span.map(|span| (span.start_ns, event.t_ns, span.self_ns)));
        }
        calls.take_with(&mut pairs, event, |step| {
            if let Step::Left(call) = step {
                found.push((call.entered_ns.unwrap(), call.left_ns, call.self_ns()));
            }
        });
    }
    found
}

fn check(what: What, steps: &[(u64, bool)], from: u64) {
    let (bytes, mut expected) = trace(what, steps);
    let dump = read(&bytes).unwrap();
    assert_eq!(found(&dump), expected, "the whole trace of {what:?}");
    let mut filter = Filter::new();
    filter.from(&format!("{from}ns")).unwrap();
    check_chosen((what, &dump), &filter, (from, &expected));
    let mut piece = Vec::new();
    let written: Result<(), ()> = dump.cut(&filter).write(|blocks| {
        piece.extend_from_slice(blocks);
        Ok(())
    });
    written.unwrap();
    expected.retain(|(_, end, _)| *end >= from);
    for (begun, _, own) in &mut expected {
        *own = own.filter(|_| *begun >= from);
    }
    if piece.is_empty() {
        return assert_eq!(expected, []);
    }
    let piece = read(&piece).unwrap();
    assert_eq!(found(&piece), expected, "{what:?} from {from}");
}

/// The rows of the chosen time: records of calls before it are not met.
fn check_chosen((what, dump): (What, &Dump), filter: &Filter, (from, all): (u64, &[Timed])) {
    let chosen = Chosen {
        records: filter.clone(),
        conditions: None,
    };
    let mut found = Vec::new();
    let rows = dump.each_row(chosen, |row| {
        found.push((row.record.t_ns, row.own_ns));
        Ok::<(), ()>(())
    });
    assert!(rows.is_ok());
    let expected: Vec<_> = all
        .iter()
        .filter(|(_, end, _)| *end >= from)
        .map(|(begun, end, own)| (*end, own.filter(|_| *begun >= from)))
        .collect();
    assert_eq!(found, expected, "rows of {what:?} from {from}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn own_time_is_what_a_count_of_nanoseconds_gives(
        steps in prop::collection::vec((1..30_u64, any::<bool>()), 2..100),
        from in 0..1500_u64,
    ) {
        check(What::Calls, &steps, from);
        check(What::Spans, &steps, from);
        check(What::Both, &steps, from);
    }
}

/// One that began before the piece, with another inside that ended before it.
#[test]
fn what_lay_before_a_piece_is_no_own_time() {
    let steps = [
        (10, true),
        (10, true),
        (100, false),
        (30, true),
        (10, false),
    ];
    for what in [What::Calls, What::Spans, What::Both] {
        check(what, &steps, 140);
    }
}
