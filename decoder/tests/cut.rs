//! A piece of a trace shows what the trace shows of that time, line by line, and has nothing else of
//! what the program said.

mod common;

use common::*;
use proptest::prelude::*;
use ringmark_decoder::{Dump, Filter, JsonWriter, Output, Paired, SpanPairs, TextWriter};
use ringmark_format::attribute::tag;
use ringmark_format::codec::write;
use ringmark_format::counters::SlotCounters;
use ringmark_format::function::{FunctionEntry, FunctionType, FunctionTypesEntry};
use ringmark_format::schema::{EntryHeader, Kind, Level, Shape, entry_kind, semantic};
use ringmark_format::session::Mode;
use zerocopy::IntoBytes;

/// What every event of the trace says, and no other byte of it does.
const SECRET: u64 = 0x5ec2_e75e_c2e7_0000;

fn entry(kind: u16, id: u32, fixed: &[u8]) -> Vec<u8> {
    let header = EntryHeader {
        bytes: (EntryHeader::BYTES + fixed.len()) as u32,
        kind,
        fixed_bytes: fixed.len() as u16,
        id,
        reserved: 0,
    };
    [header.as_bytes(), fixed].concat()
}

/// Types 20 to 23: the life of a span; 24: a finished span; functions 0 and 1.
fn more_schema() -> Vec<u8> {
    let (span_id, duration) = (
        semantic::SPAN_ID.to_le_bytes(),
        semantic::DURATION.to_le_bytes(),
    );
    let of = |name, semantic| FieldOf {
        extra: semantic,
        ..field(name, Kind::U64, 0)
    };
    let id: [(u16, &[u8]); 1] = [(tag::SEMANTIC, &span_id)];
    let took: [(u16, &[u8]); 1] = [(tag::SEMANTIC, &duration)];
    let span =
        |number, name, shape| event_entry(number, name, Level::Info, shape, &[of("id", &id)]);
    let function = |id: u32| {
        let fixed = FunctionEntry {
            address: 0x1000 + 0x100 * u64::from(id),
            bytes: 0x40,
            module: 0,
        };
        entry(entry_kind::FUNCTION, id, fixed.as_bytes())
    };
    let types = FunctionTypesEntry {
        tracers: 1,
        first_function: 0,
        count: 2,
        flags: 0,
        reserved: 0,
    };
    [
        span(20, "new", Shape::SpanNew),
        span(21, "enter", Shape::SpanEnter),
        span(22, "exit", Shape::SpanExit),
        span(23, "close", Shape::SpanClose),
        event_entry(
            24,
            "done",
            Level::Info,
            Shape::Span,
            &[of("duration", &took)],
        ),
        function(0),
        function(1),
        entry(entry_kind::FUNCTION_TYPES, 0, types.as_bytes()),
    ]
    .concat()
}

fn function(number: u32, exit: bool) -> u32 {
    let loose = false;
    FunctionType {
        number,
        exit,
        loose,
    }
    .pack()
}

/// A record in the making: slot, ticks since the record before, kind, number.
type Step = (u8, u16, u8, u8);

struct Slots {
    out: Vec<u8>,
    pages: Vec<PageOf>,
    counters: Vec<SlotCounters>,
    number: Vec<u64>,
    /// By id: open spans, and the slot whose thread is in it.
    spans: [Option<Option<usize>>; 8],
}

impl Slots {
    fn new(mode: Mode, slots: u32) -> Self {
        let mut out = start(mode);
        let at = schema().len() as u64;
        write::schema(&mut out, SESSION, at, &more_schema()).unwrap();
        let counters = (0..slots).map(|slot| {
            let mut of = slot_counters(0, [0; 8]);
            (of.slot, of.tid, of.ring_id) = (slot, 70 + slot, 5 + u64::from(slot));
            of
        });
        let mut all = Self {
            out,
            pages: Vec::new(),
            counters: counters.collect(),
            number: vec![0; slots as usize],
            spans: [None; 8],
        };
        all.pages = (0..slots as usize)
            .map(|slot| all.page(slot, 1000))
            .collect();
        all
    }

    fn page(&self, slot: usize, tick: u64) -> PageOf {
        let counters = &self.counters[slot];
        let mut page = PageOf::new(self.number[slot], counters.events);
        (page.header.slot, page.header.tid) = (counters.slot, counters.tid);
        (page.header.ring_id, page.header.tick_base) = (counters.ring_id, tick);
        page.header.lost_before = counters.lost[0];
        page
    }

    /// Ends the page of a slot; it is there unless `is_gone`.
    fn turn(&mut self, slot: usize, tick: u64, is_gone: bool) {
        self.number[slot] += 1;
        let next = self.page(slot, tick);
        let mut page = std::mem::replace(&mut self.pages[slot], next);
        if !is_gone {
            page.close().write(true, &mut self.out);
        }
    }

    /// Takes a step in the life of a span, if it is one that a span can take: new, enter, exit, close.
    fn live(&mut self, slot: usize, kind: u8, id: u64) -> bool {
        let span = &mut self.spans[id as usize];
        let next = match (kind, *span) {
            (2, None) => Some(None),
            (3, Some(None)) => Some(Some(slot)),
            (4, Some(Some(of))) if of == slot => Some(None),
            (5, Some(None)) => None,
            _ => return false,
        };
        *span = next;
        true
    }

    fn step(&mut self, tick: u64, slot: usize, mut kind: u8, n: u64) {
        if (2..=5).contains(&kind) && !self.live(slot, kind, 1 + n % 5) {
            kind = 13;
        }
        if self.pages[slot].left() < 64 || tick - self.pages[slot].header.tick_base > 1 << 20 {
            self.turn(slot, tick, n == 7);
        }
        let page = &mut self.pages[slot];
        let ticks = (tick - page.header.tick_base) as u32;
        let id = 1 + n % 5;
        match kind {
            0 => page.event(ticks, function(n as u32 % 2, false), &[SECRET]),
            1 => page.event(ticks, function(n as u32 % 2, true), &[]),
            2..=5 => page.event(ticks, 18 + u32::from(kind), &[id]),
            6 => page.event(ticks, 24, &[(n * 97).min(tick - 1000)]),
            7 => page.span(ringmark_format::record::CANCELLED, 2),
            8 => {
                self.counters[slot].lost[0] += 1 + n;
                return self.turn(slot, tick, false);
            }
            9 => return self.turn(slot, tick, n == 7),
            _ => page.event(ticks, 16, &[SECRET | n]),
        };
        self.counters[slot].events += 1;
    }

    fn finish(mut self, steps: &[Step], is_final: bool) -> Vec<u8> {
        let mut tick = 1000;
        for (slot, ticks, kind, n) in steps {
            tick += u64::from(*ticks);
            self.step(tick, usize::from(*slot), *kind, u64::from(*n));
        }
        for page in &mut self.pages {
            page.write(false, &mut self.out);
        }
        self.counters[0].lost[0] += 3;
        let content = counters(&self.counters, [0, 2, 0, 0, 0, 0, 0, 0], is_final);
        write::counters(&mut self.out, SESSION, &content).unwrap();
        self.out
    }
}

/// The lines of what passes, as JSON and as text; spans have one at their end in the latter.
fn lines(dump: &Dump, filter: &Filter) -> Vec<String> {
    let (mut json, mut text) = (JsonWriter::new(), TextWriter::new());
    let mut pairs = SpanPairs::new(dump);
    let mut found = Vec::new();
    for item in dump.events() {
        // When these were lost is not known: a piece has none.
        if matches!(&item, Output::Lost(lost) if lost.page.is_none()) {
            continue;
        }
        let passes = match &item {
            Output::Event(event) => !event.is_outside(),
            Output::Lost(_) => true,
        };
        let mut out = Vec::new();
        if let Paired::Ended(span) = pairs.take(&item)
            && filter.passes_span(&span)
            && !span.end.is_outside()
        {
            text.span(&span, &mut out);
        }
        if passes && filter.passes_item(&item) {
            json.write(&item, &mut out);
        }
        if !out.is_empty() {
            // Whether records of a span were lost outside is not known to a piece.
            let line = String::from_utf8(out).unwrap();
            found.push(line.replace(">=", "=").replace("<=", "="));
        }
    }
    found
}

fn cut(dump: &Dump, filter: &Filter) -> Vec<u8> {
    let mut out = Vec::new();
    let written: Result<(), ()> = dump.cut(filter).write(|blocks| {
        out.extend_from_slice(blocks);
        Ok(())
    });
    written.unwrap();
    out
}

fn filter(from: Option<u64>, to: Option<u64>, tid: Option<u32>) -> Filter {
    let mut filter = Filter::new();
    if let Some(from) = from {
        filter.from(&format!("{from}ns")).unwrap();
    }
    if let Some(to) = to {
        filter.to(&format!("{to}ns")).unwrap();
    }
    if let Some(tid) = tid {
        filter.tid(&tid.to_string()).unwrap();
    }
    filter
}

/// Compares line by line, so that the first difference is seen.
#[track_caller]
fn expect_same(found: &[String], expected: &[String]) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected);
    }
    let (most, least) = (
        found.len().max(expected.len()),
        found.len().min(expected.len()),
    );
    let more: Vec<_> = found.iter().chain(expected).skip(least).take(1).collect();
    assert_eq!(
        most,
        least,
        "found {}, expected {}: {more:?}",
        found.len(),
        expected.len()
    );
}

fn check(whole: &[u8], filter: &Filter) {
    let dump = read(whole).unwrap();
    let bytes = cut(&dump, filter);
    let expected = lines(&dump, filter);
    if bytes.is_empty() {
        return assert!(expected.is_empty(), "{expected:?}");
    }
    let piece = read(&bytes).unwrap();
    expect_same(&lines(&piece, &Filter::new()), &expected);
    expect_same(&lines(&piece, filter), &expected);
    let found = piece.verify();
    assert!(
        found.damage.is_empty() && found.missing <= dump.verify().missing,
        "{found:?}"
    );
    // The whole one beside it fills it.
    for both in [[whole, &bytes].concat(), [&bytes, whole].concat()] {
        let both = read(&both).unwrap();
        assert_eq!(both.verify().conflicts, 0);
        assert_eq!(json(&both), json(&dump));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_piece_shows_what_the_whole_shows_of_that_time(
        steps in prop::collection::vec((0..3_u8, 0..90_u16, 0..14_u8, 0..8_u8), 1..250),
        bounds in (0..20_000_u64, 0..20_000_u64, 0..4_u8),
        tid in prop::option::of(70..73_u32),
        is_final: bool,
        overwrites: bool,
    ) {
        let mode = if overwrites { Mode::Overwrite } else { Mode::Discard };
        let whole = Slots::new(mode, 3).finish(&steps, is_final);
        let (from, to) = (bounds.0.min(bounds.1), bounds.0.max(bounds.1));
        let from = (bounds.2 & 1 == 0).then_some(from);
        let to = (bounds.2 & 2 == 0).then_some(to);
        check(&whole, &filter(from, to, tid));
    }
}

#[test]
fn nothing_of_other_events_is_in_the_bytes() {
    let steps: Vec<Step> = (0..900)
        .map(|n| (n as u8 % 3, 10, 10, (n % 251) as u8))
        .collect();
    let whole = Slots::new(Mode::Discard, 3).finish(&steps, true);
    let dump = read(&whole).unwrap();
    let bytes = cut(&dump, &filter(Some(3000), Some(3500), None));
    let piece = read(&bytes).unwrap();
    assert_eq!(piece.verify().events, 50);
    // Packed blocks are taken apart first.
    let mut reader = ringmark_decoder::BlockReader::new("piece", bytes.as_slice());
    let mut secrets = 0;
    while let Some(ringmark_decoder::Item::Block(block)) = reader.next_item() {
        let words = block.content.chunks_exact(8);
        let words = words.map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        secrets += words.filter(|word| word >> 16 == SECRET >> 16).count();
    }
    assert_eq!(secrets, 50);
}

#[test]
fn a_damaged_trace_is_cut_like_any_other() {
    let steps: Vec<Step> = (0..600)
        .map(|n| (n as u8 % 3, 10, n as u8 % 14, 1))
        .collect();
    let whole = Slots::new(Mode::Discard, 3).finish(&steps, true);
    for at in (0..whole.len()).step_by(97) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x41;
        let Ok(dump) = read(&damaged) else { continue };
        let bytes = cut(&dump, &filter(Some(1000), Some(4000), None));
        if let Ok(piece) = read(&bytes) {
            assert!(
                piece.damage.len() <= dump.damage.len(),
                "{at}: {:?}",
                piece.damage
            );
        }
    }
}
