//! A piece of a trace shows what the trace shows of that time, line by line, and has nothing else of
//! what the program said.

use crate::common;

use common::random_trace::{DONE, RandomTrace, SECRET, Step};
use common::*;
use proptest::prelude::*;
use ringmark_decoder::Step as CallStep;
use ringmark_decoder::{
    BlockReader, Calls, Dump, Filter, Item, JsonWriter, Lost, Output, Paired, Span, SpanPairs,
    TextWriter, Why,
};
use ringmark_format::session::Mode;

/// What a dump shows of a span of time.
#[derive(Default)]
struct Shown {
    /// Events and losses, spans at their end.
    lines: Vec<String>,
    /// Calls that ended.
    calls: Vec<String>,
    /// Losses without a page.
    unplaced: Vec<String>,
}

/// From when to when, in ns since the session's start.
type Times = (Option<u64>, Option<u64>);

fn filter((from, to): Times) -> Filter {
    let mut filter = Filter::new();
    if let Some(from) = from {
        filter.from(&format!("{from}ns")).unwrap();
    }
    if let Some(to) = to {
        filter.to(&format!("{to}ns")).unwrap();
    }
    filter
}

/// How a piece is to show what the whole one shows of `times`.
struct Expected {
    times: Times,
    /// A finished span lasts beyond the end: that it lies around others is not known in the piece.
    is_held: bool,
}

impl Expected {
    fn of(dump: &Dump, times: Times) -> Self {
        let to = times.1.unwrap_or(u64::MAX);
        let mut events = dump.events();
        let is_held = events.any(|item| match item {
            Output::Event(e) => e.ty.id.0 == DONE && e.t_ns >= to && e.start_ns() < to,
            Output::Lost(_) => false,
        });
        Self { times, is_held }
    }

    /// A loss without a page; when it happened is not known. A windowed dump has events that were
    /// overwritten or taken earlier only of slots that are here.
    fn unplaced(&self, lost: &Lost<'_>, filter: &Filter) -> Option<String> {
        let says = self.times.0.is_none() || matches!(lost.loss.why, Why::Lost(_));
        (says && filter.passes_lost(lost)).then(|| format!("{:?} {:?}", lost.ring, lost.loss))
    }

    fn span<'a>(&self, span: &Span<'a>, text: &mut TextWriter<'a>) -> String {
        if span.start_ns < self.times.0.unwrap_or(0) {
            // What was in it before is not known.
            return format!(
                "{:?} {:?} {} {:?}",
                span.name, span.id, span.total_ns, span.parent
            );
        }
        let mut line = Vec::new();
        text.span(span, &mut line);
        // Whether records of a span were lost outside is not known.
        String::from_utf8(line).unwrap().replace(['<', '>'], "")
    }

    fn line(&self, line: Vec<u8>) -> String {
        let line = String::from_utf8(line).unwrap();
        match self.is_held {
            true => without(&without(&line, "\"span\":"), "\"parent\":"),
            false => line,
        }
    }

    fn shown(&self, dump: &Dump, filter: &Filter) -> Shown {
        let (mut json, mut text) = (JsonWriter::new(), TextWriter::new());
        let (mut pairs, mut calls) = (SpanPairs::new(dump), Calls::new(None));
        let mut shown = Shown::default();
        let of_time = |t_ns: u64| {
            self.times.0.is_none_or(|from| t_ns >= from) && self.times.1.is_none_or(|to| t_ns < to)
        };
        for item in dump.events() {
            if let Output::Event(event) = &item {
                calls.take(event, |step| {
                    if let CallStep::Left(call) | CallStep::Whole(call) = step
                        && of_time(call.left_ns)
                    {
                        shown.calls.push(self.call(&call));
                    }
                });
            }
            if let Paired::Ended(span) = pairs.take(&item)
                && filter.passes_span(&span)
            {
                shown.lines.push(self.span(&span, &mut text));
            }
            if let Output::Lost(lost) = &item
                && lost.page.is_none()
            {
                shown.unplaced.extend(self.unplaced(lost, filter));
                continue;
            }
            if filter.passes_item(&item) {
                let mut line = Vec::new();
                json.write(&item, &mut line);
                shown.lines.push(self.line(line));
            }
        }
        shown
    }

    fn call(&self, call: &ringmark_decoder::Call<'_>) -> String {
        let begins = call
            .entered_ns
            .is_some_and(|ns| ns >= self.times.0.unwrap_or(0));
        let self_ns = call.self_ns().filter(|_| begins);
        format!(
            "{} {:?} {} {} {:?} {self_ns:?}",
            call.id, call.entered_ns, call.left_ns, call.depth, call.ended
        )
    }
}

/// A line of JSON without the value of this key.
fn without(line: &str, key: &str) -> String {
    let Some(at) = line.find(key) else {
        return line.to_owned();
    };
    let end = line[at..].find([',', '}']).unwrap();
    [&line[..at], &line[at + end..]].concat()
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

/// Compares line by line, so that the first difference is seen.
#[track_caller]
fn expect_same(found: &[String], expected: &[String]) {
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found, expected);
    }
    let least = found.len().min(expected.len());
    let more: Vec<_> = found.iter().chain(expected).skip(least).take(1).collect();
    assert_eq!(found.len(), expected.len(), "{more:?}");
}

fn check(whole: &[u8], times: Times) {
    let dump = read(whole).unwrap();
    let filter = filter(times);
    let bytes = cut(&dump, &filter);
    let expected = Expected::of(&dump, times);
    let of_whole = expected.shown(&dump, &filter);
    if bytes.is_empty() {
        return assert!(of_whole.calls.is_empty(), "{:?}", of_whole.lines);
    }
    let piece = read(&bytes).unwrap();
    let of_piece = expected.shown(&piece, &filter);
    expect_same(&of_piece.lines, &of_whole.lines);
    expect_same(&of_piece.calls, &of_whole.calls);
    expect_same(&of_piece.unplaced, &of_whole.unplaced);
    let found = piece.verify();
    assert!(found.damage.is_empty(), "{found:?}");
    let figures = dump.cut(&filter).figures();
    assert_eq!(found.events, figures.events + figures.around);
    // A piece of the piece is the piece.
    assert_eq!(json(&read(&cut(&piece, &filter)).unwrap()), json(&piece));
    // The whole one beside it fills it.
    for both in [[whole, &bytes].concat(), [&bytes, whole].concat()] {
        let both = read(&both).unwrap();
        assert_eq!(both.verify().conflicts, 0);
        assert_eq!(json(&both), json(&dump));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_piece_shows_what_the_whole_shows_of_that_time(
        steps in prop::collection::vec((0..3_u8, 0..90_u16, 0..14_u8, 0..8_u8), 1..250),
        bounds in (0..12_000_u64, 0..12_000_u64, 0..4_u8),
        scale in prop_oneof![Just(0), Just(20)],
        is_final: bool,
        overwrites: bool,
    ) {
        let mode = if overwrites { Mode::Overwrite } else { Mode::Discard };
        let whole = RandomTrace::new(mode, 3, scale).finish(&steps, is_final);
        let (from, to) = (bounds.0.min(bounds.1) << scale, bounds.0.max(bounds.1) << scale);
        let from = (bounds.2 & 1 == 0).then_some(from);
        let to = (bounds.2 & 2 == 0).then_some(to);
        check(&whole, (from, to));
    }
}

#[test]
fn nothing_of_other_events_is_in_the_bytes() {
    let steps: Vec<Step> = (0..900)
        .map(|n| (n as u8 % 3, 10, 10, (n % 251) as u8))
        .collect();
    let whole = RandomTrace::new(Mode::Discard, 3, 0).finish(&steps, true);
    let dump = read(&whole).unwrap();
    let bytes = cut(&dump, &filter((Some(3000), Some(3500))));
    let piece = read(&bytes).unwrap();
    assert_eq!(piece.verify().events, 50);
    // Packed blocks are taken apart first.
    let mut reader = BlockReader::new("piece", bytes.as_slice());
    let mut secrets = 0;
    while let Some(Item::Block(block)) = reader.next_item() {
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
    let whole = RandomTrace::new(Mode::Discard, 3, 0).finish(&steps, true);
    for at in (0..whole.len()).step_by(397) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x41;
        let Ok(dump) = read(&damaged) else { continue };
        let bytes = cut(&dump, &filter((Some(1000), Some(4000))));
        if let Ok(piece) = read(&bytes) {
            assert!(
                piece.damage.len() <= dump.damage.len(),
                "{at}: {:?}",
                piece.damage
            );
        }
    }
}
