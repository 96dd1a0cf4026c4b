//! SWITCHES, WAITS and SAMPLES blocks: what is refused of them, and what spans and calls show of them.

use crate::common;

use common::*;
use ringmark_decoder::{Counted, Dump, Filter, Output, Span, ThreadTimes};
use ringmark_format::attribute::tag;
use ringmark_format::block::kind;
use ringmark_format::codec::write;
use ringmark_format::samples::{HAS_KERNEL, Sample, Samples};
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::seen_waits::{SeenWait, SeenWaits};
use ringmark_format::session::{Clock, Mode};
use ringmark_format::switches::{Switch, Switches, turn};
use zerocopy::{FromZeros, IntoBytes};

const SPAN: u32 = 16;
const MS: u64 = 1_000_000;

/// The tick of a time after the session's start; ticks begin at 1000.
const fn tick(ms: u64) -> u32 {
    (ms * MS) as u32
}

/// A session with native spans of thread 77: when each ended and how long it took, in ms.
fn spans(clock: Clock, spans: &[(u64, u64)]) -> Vec<u8> {
    let header = ringmark_format::session::SessionHeader {
        clock: clock as u32,
        ..session_header(Mode::Discard)
    };
    let duration = semantic::DURATION.to_le_bytes();
    let extra = &[(tag::SEMANTIC, &duration[..])];
    let field = FieldOf {
        extra,
        ..field("duration", Kind::U64, 0)
    };
    let schema = event_entry(SPAN, "work", Level::Info, Shape::Span, &[field]);
    let mut out = Vec::new();
    write::session(&mut out, SESSION, &session_content(header)).unwrap();
    write::schema(&mut out, SESSION, 0, &schema).unwrap();
    let mut page = PageOf::new(0, 0);
    for (end, took) in spans {
        page.event(tick(*end), SPAN, &[took * MS]);
    }
    page.write(false, &mut out);
    out
}

/// A switch of a thread, at ms since the session's start.
fn switch(ms: u64, tid: u32, turn: u16) -> Switch {
    Switch {
        mono_ns: MONO_ZERO_NS + ms * MS,
        tid,
        turn,
        cpu: 3,
    }
}

/// The head of a block of this time, in ms.
fn head(from: u64, to: u64, lost: u64) -> Switches {
    Switches {
        from_mono_ns: MONO_ZERO_NS + from * MS,
        to_mono_ns: MONO_ZERO_NS + to * MS,
        lost,
        switches: 0,
        reserved: 0,
    }
}

fn add(out: &mut Vec<u8>, head: Switches, switches: &[Switch]) {
    write::switches(out, SESSION, &head, switches).unwrap();
}

/// A thread that waits from 20 to 40 ms and is preempted from 50 to 54 ms.
fn turns() -> [Switch; 5] {
    [
        switch(1, 77, turn::SEEN),
        switch(20, 77, turn::WAITS),
        switch(40, 77, turn::RUNS),
        switch(50, 77, turn::READY),
        switch(54, 77, turn::RUNS),
    ]
}

fn sum(dump: &Dump) -> (Option<ThreadTimes>, u64, u64) {
    let figures = dump.figures(Counted::default());
    let spans = &figures.spans[0];
    (spans.did(), spans.unknown_times, spans.total_ns)
}

#[test]
fn times_of_spans_add_up_to_their_total() {
    let mut bytes = spans(Clock::Monotonic, &[(45, 30), (60, 50), (80, 10)]);
    add(&mut bytes, head(0, 100, 0), &turns());
    let dump = read(&bytes).unwrap();
    assert!(dump.damage.is_empty() && dump.unknown_blocks == 0);
    let (did, unknown, total_ns) = sum(&dump);
    let did = did.unwrap();
    assert_eq!((did.all_ns(), unknown), (total_ns, 0));
    // The first one lies in the second, which has its name.
    assert_eq!(total_ns, 60 * MS);
    assert_eq!((did.ready_ns, did.waiting_ns), (4 * MS, 20 * MS));
    assert_eq!((did.waits, did.preemptions), (1, 1));
}

#[test]
fn of_a_time_with_lost_switches_nothing_is_said() {
    let mut bytes = spans(Clock::Monotonic, &[(19, 10), (60, 50)]);
    add(&mut bytes, head(0, 30, 0), &turns()[..2]);
    add(&mut bytes, head(30, 100, 1), &turns()[2..]);
    let dump = read(&bytes).unwrap();
    assert_eq!(dump.sessions[0].switches_lost(), 1);
    let (did, unknown, _) = sum(&dump);
    assert_eq!((did.unwrap().running_ns, unknown), (10 * MS, 1));
}

#[test]
fn a_session_without_times_and_one_without_switches_say_nothing() {
    let mut bytes = spans(Clock::None, &[(60, 50)]);
    add(&mut bytes, head(0, 100, 0), &turns());
    let dump = read(&bytes).unwrap();
    assert!(dump.sessions[0].has_switches());
    assert_eq!(dump.sessions[0].thread_times(77, 10, 20), None);
    let dump = read(&spans(Clock::Tsc, &[(60, 50)])).unwrap();
    assert!(!dump.sessions[0].has_switches());
    assert_eq!(sum(&dump).0, None);
}

#[test]
fn spans_are_chosen_by_what_their_threads_did() {
    let mut bytes = spans(Clock::Monotonic, &[(45, 30), (60, 50), (80, 10)]);
    add(&mut bytes, head(0, 100, 0), &turns());
    let dump = read(&bytes).unwrap();
    let count = |condition: &str| {
        let mut filter = Filter::default();
        filter.condition(condition).unwrap();
        let counted = Counted {
            conditions: Some(filter),
            ..Counted::default()
        };
        let figures = dump.figures(counted);
        figures.spans.iter().map(|spans| spans.spans()).sum::<u64>()
    };
    assert_eq!(count("waiting>5ms"), 2);
    assert_eq!(count("ready>1ms"), 1);
    assert_eq!(count("running<=10ms"), 2);
    assert_eq!(count("waits=0"), 1);
    assert_eq!(count("preempted>=1"), 1);
}

/// What each span's thread did, by the end of the span.
fn did(dump: &Dump) -> Vec<(u64, Option<ThreadTimes>)> {
    let spans = dump.events().filter_map(|item| match item {
        Output::Event(event) => Span::of_event(&event),
        Output::Lost(_) => None,
    });
    spans.map(|span| (span.end.tick, span.times)).collect()
}

#[test]
fn a_piece_says_what_the_whole_says() {
    let mut bytes = spans(
        Clock::Monotonic,
        &[(5, 1), (19, 10), (45, 30), (60, 50), (80, 10), (99, 1)],
    );
    add(&mut bytes, head(0, 90, 0), &turns());
    add(&mut bytes, head(90, 95, 7), &[]);
    add(&mut bytes, head(95, 200, 0), &[switch(96, 77, turn::SEEN)]);
    let dump = read(&bytes).unwrap();
    let whole = did(&dump);
    assert!(whole.iter().all(|(_, did)| did.is_some()));
    for (from, to) in [(0, 200), (15, 62), (50, 85), (70, 200), (98, 200), (3, 20)] {
        let mut filter = Filter::new();
        let at = |ms: u64| format!("{ms}ms");
        filter.from(&at(from)).unwrap().to(&at(to)).unwrap();
        let mut piece = Vec::new();
        let written = dump.cut(&filter).write(|blocks| {
            piece.extend_from_slice(blocks);
            Ok::<(), ()>(())
        });
        written.unwrap();
        let piece = read(&piece).unwrap();
        assert_eq!(piece.damage, []);
        let inside = |tick: u64| (from * MS..to * MS).contains(&(tick - 1000));
        let expected: Vec<_> = whole
            .iter()
            .filter(|(tick, _)| inside(*tick))
            .copied()
            .collect();
        assert_eq!(did(&piece), expected, "{from}..{to}");
        let lost = if to == 200 { 7 } else { 0 };
        assert_eq!(piece.sessions[0].switches_lost(), lost);
    }
}

#[test]
fn the_line_of_a_span_says_what_its_thread_did() {
    let mut bytes = spans(Clock::Monotonic, &[(60, 50)]);
    assert!(!text(&read(&bytes).unwrap()).contains("running"));
    add(&mut bytes, head(0, 100, 0), &turns());
    let line = text(&read(&bytes).unwrap());
    let expected = "took=50000000ns running=26000000ns ready=4000000ns waiting=20000000ns}";
    assert!(line.contains(expected), "{line}");
}

#[test]
fn many_switches_are_written_as_several_blocks() {
    let mut bytes = spans(Clock::Monotonic, &[(99, 98)]);
    let each = |n: u64| Switch {
        mono_ns: MONO_ZERO_NS + n * 100,
        tid: 77,
        cpu: 0,
        turn: if n.is_multiple_of(2) {
            turn::RUNS
        } else {
            turn::WAITS
        },
    };
    let switches: Vec<_> = (0..300_001).map(each).collect();
    add(&mut bytes, head(0, 100, 0), &switches);
    let dump = read(&bytes).unwrap();
    assert_eq!(dump.damage, []);
    let times = did(&dump)[0].1.unwrap();
    assert_eq!(times.all_ns(), 98 * MS);
    // From 1 to 30 ms it waits every second time, for 100 ns.
    assert_eq!((times.waits, times.waiting_ns), (145_000, 14_500_000));
}

#[test]
fn a_wrong_block_is_damage_with_its_place() {
    let block = |head: Switches, switches: &[Switch]| {
        let mut bytes = spans(Clock::Monotonic, &[(60, 50)]);
        let content = [head.as_bytes(), switches.as_bytes()].concat();
        let header = write::header(ringmark_format::block::kind::SWITCHES, SESSION);
        write::block(&mut bytes, header, &content).unwrap();
        let dump = read(&bytes).unwrap();
        assert!(!dump.sessions[0].has_switches());
        dump.damage[0].to_string()
    };
    let with = |switches| Switches {
        switches,
        ..head(10, 20, 0)
    };
    let one = [switch(15, 77, turn::RUNS)];
    for (head, switches, said) in [
        (
            with(0),
            &one[..],
            "size of a SWITCHES block is 48, expected 32",
        ),
        (
            with(2),
            &one[..],
            "size of a SWITCHES block is 48, expected 64",
        ),
        (with(u32::MAX), &one[..], "size of a SWITCHES block is 48"),
        (with(1), &[switch(9, 77, turn::RUNS)], "time of a switch"),
        (with(1), &[switch(20, 77, turn::RUNS)], "time of a switch"),
        (
            with(2),
            &[switch(16, 77, turn::WAITS), switch(15, 77, turn::RUNS)],
            "time of a switch",
        ),
        (head(20, 10, 0), &[], "end of a SWITCHES block"),
        (
            Switches {
                to_mono_ns: 1 << 61,
                ..with(0)
            },
            &[],
            "end of a SWITCHES block",
        ),
    ] {
        let found = block(head, switches);
        assert!(found.contains(said), "{found}");
        assert!(found.contains("block 3 at offset"), "{found}");
    }
}

/// A wait of the thread that was seen, in ms since the session's start.
fn seen(from: u64, to: u64) -> SeenWait {
    SeenWait {
        from_mono_ns: MONO_ZERO_NS + from * MS,
        to_mono_ns: MONO_ZERO_NS + to * MS,
        tid: 77,
        text: 0,
        text_bytes: 0,
        reserved: 0,
    }
}

/// One wait in two parts, and another one.
fn waits() -> [(SeenWait, &'static [u8]); 3] {
    let text = b"read a\nf\ng";
    [
        (seen(25, 30), text),
        (seen(30, 33), text),
        (seen(70, 75), b"read b"),
    ]
}

/// What the thread waited for between two times in ms: in ms, and how often.
fn waited(dump: &Dump, from: u64, to: u64) -> Vec<(String, u64, u64)> {
    let session = &dump.sessions[0];
    let found = session.waited_for(77, from * MS, to * MS);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let row = |of: &ringmark_decoder::WaitedFor<'_>| (text(of.text.what), of.ns / MS, of.times);
    found.iter().map(row).collect()
}

#[test]
fn what_a_thread_waited_for_is_exact_with_switches_and_at_least_without() {
    let row = |what: &str, ms, times| (what.to_owned(), ms, times);
    let mut bytes = spans(Clock::Monotonic, &[(60, 50)]);
    write::seen_waits(&mut bytes, SESSION, waits()).unwrap();
    let without = read(&bytes).unwrap();
    assert!(without.damage.is_empty() && without.unknown_blocks == 0);
    assert_eq!(waited(&without, 10, 60), [row("read a", 8, 2)]);
    assert_eq!(waited(&without, 28, 31), [row("read a", 3, 2)]);
    let both = [row("read a", 8, 2), row("read b", 2, 1)];
    assert_eq!(waited(&without, 10, 72), both);
    assert_eq!(waited(&without, 34, 69), []);
    add(&mut bytes, head(0, 100, 0), &turns());
    let with = read(&bytes).unwrap();
    // It waited from 20 to 40 ms; at 70 it ran, whatever was seen.
    assert_eq!(waited(&with, 10, 60), [row("read a", 20, 1)]);
    assert_eq!(waited(&with, 10, 80), [row("read a", 20, 1)]);
    let found = with.sessions[0].waited_for(77, 10 * MS, 60 * MS);
    let functions: Vec<_> = found[0].text.functions().collect();
    assert_eq!(functions, [b"f", b"g"]);
}

#[test]
fn a_piece_has_the_waits_of_its_time() {
    let mut bytes = spans(Clock::Monotonic, &[(29, 3), (60, 50), (80, 10)]);
    write::seen_waits(&mut bytes, SESSION, waits()).unwrap();
    let dump = read(&bytes).unwrap();
    let mut filter = Filter::new();
    filter.from("15ms").unwrap().to("62ms").unwrap();
    let mut piece = Vec::new();
    let written = dump.cut(&filter).write(|blocks| {
        piece.extend_from_slice(blocks);
        Ok::<(), ()>(())
    });
    written.unwrap();
    let piece = read(&piece).unwrap();
    assert_eq!(piece.damage, []);
    assert_eq!(waited(&piece, 10, 72), [("read a".to_owned(), 8, 2)]);
}

#[test]
fn a_wrong_block_of_waits_is_damage() {
    let block = |head: SeenWaits, waits: &[SeenWait], texts: &[u8]| {
        let mut bytes = spans(Clock::Monotonic, &[(60, 50)]);
        let content = [head.as_bytes(), waits.as_bytes(), texts].concat();
        let header = write::header(kind::WAITS, SESSION);
        write::block(&mut bytes, header, &content).unwrap();
        let dump = read(&bytes).unwrap();
        assert!(!dump.sessions[0].has_waits());
        dump.damage[0].to_string()
    };
    let head = |waits, texts_bytes| SeenWaits { waits, texts_bytes };
    let with_text = |text, text_bytes| SeenWait {
        text,
        text_bytes,
        ..seen(1, 2)
    };
    let one = [seen(1, 2)];
    for (head, waits, texts, said) in [
        (
            head(0, 0),
            &one[..],
            &b""[..],
            "size of a WAITS block is 40",
        ),
        (head(1, 2), &one, b"a", "size of a WAITS block is 41"),
        (head(u32::MAX, 0), &one, b"", "size of a WAITS block is 40"),
        (head(1, 1), &[with_text(1, 1)], b"a", "end of a wait's text"),
        (
            head(1, 1),
            &[with_text(u32::MAX, u32::MAX)],
            b"a",
            "end of a wait's text",
        ),
        (head(1, 0), &[seen(2, 1)], b"", "end of a wait is"),
        (head(1, 0), &[seen(1, 1 << 42)], b"", "end of a wait is"),
    ] {
        let found = block(head, waits, texts);
        assert!(found.contains(said), "{found}");
    }
}

fn sample(ms: u64, tid: u32) -> Sample {
    Sample {
        mono_ns: MONO_ZERO_NS + ms * MS,
        tid,
        ..Sample::new_zeroed()
    }
}

/// The head of a block whose samples stand for so many ms each.
fn every(ms: u64, lost: u64) -> Samples {
    Samples {
        period_ns: ms * MS,
        lost,
        ..Samples::new_zeroed()
    }
}

/// Samples of two threads: of one in `g`, which `f` had called, in `f`, and in the kernel.
fn samples() -> [(Sample, &'static [u8]); 5] {
    [
        (sample(12, 77), b"g\nf"),
        (sample(14, 77), b"g\nf"),
        (sample(50, 77), b"[kernel]\ng\nf"),
        (sample(70, 77), b"f\nf"),
        (sample(14, 78), b"h"),
    ]
}

/// Where the thread ran between two times in ms: functions, samples, ms.
fn ran(dump: &Dump, from: u64, to: u64) -> Vec<(String, u64, u64)> {
    let found = dump.sessions[0].ran_in(77, from * MS, to * MS);
    let row = |of: &ringmark_decoder::RanIn<'_>| {
        let functions: Vec<_> = of.stack.functions().collect();
        let functions = String::from_utf8(functions.join(&b' ')).unwrap();
        (functions, of.samples, of.ns / MS)
    };
    found.iter().map(row).collect()
}

/// Own time, time and samples of each function, in ms.
fn sums(dump: &Dump, counted: Counted) -> Vec<(String, u64, u64, u64)> {
    let ran = dump.figures(counted).ran.unwrap();
    let row = |of: &ringmark_decoder::RanFunction| {
        let name = String::from_utf8(of.name.clone()).unwrap();
        (name, of.self_ns / MS, of.running_ns / MS, of.samples)
    };
    ran.functions.iter().map(row).collect()
}

#[test]
fn what_ran_is_summed_up_by_stack_and_by_function() {
    let mut bytes = spans(Clock::Monotonic, &[(13, 3), (15, 9), (60, 2)]);
    let head = Samples {
        flags: HAS_KERNEL,
        ..every(2, 3)
    };
    write::samples(&mut bytes, SESSION, &head, samples()).unwrap();
    let dump = read(&bytes).unwrap();
    assert!(dump.damage.is_empty() && dump.unknown_blocks == 0);
    let row = |functions: &str, samples, ms| (functions.to_owned(), samples, ms);
    assert_eq!(ran(&dump, 12, 14), [row("g f", 1, 2)]);
    let all = [
        row("g f", 2, 4),
        row("[kernel] g f", 1, 2),
        row("f f", 1, 2),
    ];
    assert_eq!(ran(&dump, 0, 100), all);
    let sum = |name: &str, own, all, samples| (name.to_owned(), own, all, samples);
    let of_all = [
        sum("g", 4, 6, 3),
        sum("f", 2, 8, 4),
        sum("[kernel]", 2, 2, 1),
        sum("h", 2, 2, 1),
    ];
    assert_eq!(sums(&dump, Counted::default()), of_all);
    // Of two spans that hold a sample it counts once; the third one holds none.
    let mut conditions = Filter::new();
    conditions.name("work");
    let counted = Counted {
        conditions: Some(conditions),
        ..Counted::default()
    };
    assert_eq!(sums(&dump, counted), [sum("g", 4, 4, 2), sum("f", 0, 4, 2)]);
    let figures = dump.figures(Counted::default()).ran.unwrap();
    assert_eq!((figures.samples, figures.lost), (5, 3));
    assert!(figures.has_kernel);
}

#[test]
fn a_piece_has_the_samples_of_its_time() {
    let mut bytes = spans(Clock::Monotonic, &[(29, 3), (60, 50), (80, 10)]);
    write::samples(&mut bytes, SESSION, &every(2, 1), samples()).unwrap();
    write::samples(
        &mut bytes,
        SESSION,
        &every(5, 0),
        [(sample(55, 77), &b"f"[..])],
    )
    .unwrap();
    let dump = read(&bytes).unwrap();
    let mut filter = Filter::new();
    filter.from("15ms").unwrap().to("62ms").unwrap();
    let mut piece = Vec::new();
    let written = dump.cut(&filter).write(|blocks| {
        piece.extend_from_slice(blocks);
        Ok::<(), ()>(())
    });
    written.unwrap();
    let piece = read(&piece).unwrap();
    assert_eq!(piece.damage, []);
    let row = |functions: &str, samples, ms| (functions.to_owned(), samples, ms);
    let expected = [row("f", 1, 5), row("g f", 2, 4), row("[kernel] g f", 1, 2)];
    assert_eq!(ran(&piece, 0, 100), expected);
}

#[test]
fn a_wrong_block_of_samples_is_damage() {
    let block = |head: Samples, samples: &[Sample], texts: &[u8]| {
        let mut bytes = spans(Clock::Monotonic, &[(60, 50)]);
        let content = [head.as_bytes(), samples.as_bytes(), texts].concat();
        let header = write::header(kind::SAMPLES, SESSION);
        write::block(&mut bytes, header, &content).unwrap();
        let dump = read(&bytes).unwrap();
        assert!(!dump.sessions[0].has_samples());
        dump.damage[0].to_string()
    };
    let head = |samples, texts_bytes| Samples {
        samples,
        texts_bytes,
        ..every(2, 0)
    };
    let one = [sample(1, 77)];
    let with_text = |text, text_bytes| Sample {
        text,
        text_bytes,
        ..sample(1, 77)
    };
    for (head, samples, texts, said) in [
        (head(0, 0), &one[..], &b""[..], "size of a SAMPLES block is"),
        (head(1, 2), &one, b"a", "size of a SAMPLES block is"),
        (head(u32::MAX, 0), &one, b"", "size of a SAMPLES block is"),
        (
            head(1, 1),
            &[with_text(1, 1)],
            b"a",
            "end of a sample's text",
        ),
        (
            head(1, 1),
            &[with_text(u32::MAX, u32::MAX)],
            b"a",
            "end of a sample's text",
        ),
        (
            head(1, 0),
            &[sample(1 << 42, 77)],
            b"",
            "time of a sample is",
        ),
        (every(1 << 30, 0), &[], b"", "period of samples is"),
    ] {
        let found = block(head, samples, texts);
        assert!(found.contains(said), "{found}");
    }
}

#[test]
fn what_was_throttled_is_ready_and_said() {
    let mut bytes = spans(Clock::Monotonic, &[(60, 50)]);
    let mut turns = turns();
    turns[4].turn = turn::UNTHROTTLED;
    add(&mut bytes, head(0, 100, 0), &turns);
    let did = sum(&read(&bytes).unwrap()).0.unwrap();
    assert_eq!((did.ready_ns, did.throttled_ns), (4 * MS, 4 * MS));
    assert_eq!((did.all_ns(), did.preemptions), (50 * MS, 1));
}
