//! Events and spans of `tracing` as records: kinds of fields, parents, late values, threads.
#![cfg(feature = "tracing")]
#![forbid(unsafe_code)]

mod common;

use std::cell::Cell;
use std::fmt;
use std::sync::OnceLock;
use std::thread;

use common::{Record, Recorded};
use ringmark::Kind;
use ringmark::Session;
use ringmark::client::Shape;
use ringmark_format::schema::NO_SPAN;
use tracing::{Level, Span, event, info, info_span, span};

/// The session of this process, with the subscriber installed.
fn session() -> Session {
    static SESSION: OnceLock<Session> = OnceLock::new();
    *SESSION.get_or_init(|| {
        let session = common::start(|builder| builder.warm(0));
        tracing::subscriber::set_global_default(ringmark::tracing::recorder())
            .expect("the first subscriber");
        session
    })
}

/// Records of event types with this target and shape.
fn of<'a>(all: &'a Recorded, target: &str, shape: Shape) -> Vec<&'a Record> {
    let is_it = |id| {
        let found = all.types.iter().find(|t| t.id == id);
        found.is_some_and(|t| t.target == target && t.shape == shape)
    };
    let records = all.records.iter();
    records.filter(|record| is_it(record.type_id)).collect()
}

fn one<'a>(all: &'a Recorded, target: &str, shape: Shape) -> &'a Record {
    let found = of(all, target, shape);
    assert_eq!(found.len(), 1, "{target} {shape:?}");
    found[0]
}

/// `a=1 b=x` of a record, without its head.
fn line(all: &Recorded, record: &Record) -> String {
    let fields = &all
        .types
        .iter()
        .find(|t| t.id == record.type_id)
        .unwrap()
        .fields;
    let fields = fields.iter().filter(|field| field.semantic == 0);
    let all: Vec<String> = fields
        .map(|field| format!("{}={}", field.name, all.text(record, &field.name)))
        .collect();
    all.join(" ")
}

/// Names of the records about one span, in the order of their ticks.
fn life(all: &Recorded, id: u64) -> Vec<(String, u32)> {
    let shapes = [
        Shape::SpanNew,
        Shape::SpanEnter,
        Shape::SpanExit,
        Shape::SpanClose,
        Shape::SpanRecord,
    ];
    let mut found: Vec<_> = all
        .records
        .iter()
        .filter_map(|record| {
            let info = all.types.iter().find(|t| t.id == record.type_id)?;
            let known = shapes.contains(&info.shape) && all.number(record, "span_id") == id;
            known.then_some((record.tick, info.shape.name().to_owned(), record.tid))
        })
        .collect();
    found.sort_by_key(|(tick, ..)| *tick);
    found
        .into_iter()
        .map(|(_, name, tid)| (name, tid))
        .collect()
}

#[derive(Debug)]
struct Outer(fmt::Error);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no table")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn every_kind_of_field() {
    let session = session();
    let error = Outer(fmt::Error);
    let error: &(dyn std::error::Error + 'static) = &error;
    event!(
        target: "kinds",
        Level::WARN,
        unsigned = u64::MAX,
        signed = i64::MIN,
        wide = u128::MAX - 1,
        wide_signed = i128::MIN + 1,
        real = -0.25,
        yes = true,
        text = "żółw",
        bytes = &[1_u8, 254][..],
        error,
        debug = ?Some(3),
        display = %4.5,
        absent = None::<u64>,
        "the {}", "message"
    );
    let all = common::read(&session);
    let record = one(&all, "kinds", Shape::Instant);
    let wide = format!("wide={} wide_signed={}", u128::MAX - 1, i128::MIN + 1);
    let message = "message=the message";
    let rest = format!(
        "unsigned={} signed={} {wide} real=-0.25 yes=true text=żółw bytes=01fe \
         error={} debug=Some(3) display=4.5",
        u64::MAX,
        i64::MIN,
        "no table: an error occurred when formatting an argument",
    );
    let found = line(&all, record);
    let expected = [format!("{message} {rest}"), format!("{rest} {message}")];
    assert!(expected.contains(&found), "{found}");
    let info = all.types.iter().find(|t| t.id == record.type_id).unwrap();
    assert_eq!(info.level, ringmark::Level::Warn);
    assert!(info.file.ends_with("tracing_records.rs"));
}

/// An event whose one value is of many kinds: numbers straight, then in other combinations, then
/// more combinations than get a type.
#[test]
fn combinations_of_kinds() {
    let session = session();
    let emit = |bits: u32| {
        let field = |bit: u32| (bits >> bit & 1 == 1).then_some(u64::from(bits));
        info!(target: "combined", a = field(0), b = field(1), c = field(2), d = field(3), e = field(4));
    };
    (1..32).chain(1..32).for_each(emit);
    let all = common::read(&session);
    let records = of(&all, "combined", Shape::Instant);
    assert_eq!(
        records.len(),
        62,
        "one record each, whatever the combination"
    );
    for (record, bits) in records.iter().zip((1..32_u32).chain(1..32)) {
        let names = ["a", "b", "c", "d", "e"].into_iter().enumerate();
        let present = names.filter(|(bit, _)| bits >> bit & 1 == 1);
        let expected: Vec<_> = present.map(|(_, name)| format!("{name}={bits}")).collect();
        let found = line(&all, record);
        let found: Vec<_> = found.split(' ').filter(|f| !f.ends_with("=none")).collect();
        assert_eq!(found, expected);
    }
    let types: Vec<_> = all
        .types
        .iter()
        .filter(|t| t.target == "combined")
        .collect();
    assert!(
        types.len() <= 4 + 5,
        "combinations are bounded: {}",
        types.len()
    );
    let fields = types.iter().flat_map(|t| &t.fields);
    assert!(
        fields.into_iter().all(|field| field.kind == Kind::U64),
        "numbers stay numbers"
    );
}

/// A site whose fields change their types, as in a generic function.
#[test]
fn kinds_that_change() {
    fn emit<T: tracing::Value>(value: T, number: u64) {
        let there = (!number.is_multiple_of(3)).then_some(number);
        info!(target: "changing", value, there);
    }
    let session = session();
    let mut expected = Vec::new();
    for number in 0..40_u64 {
        match number % 4 {
            0 => emit(number, number),
            1 => emit(-1.5, number),
            2 => emit("text", number),
            _ => emit(i128::MAX, number),
        }
        let value = ["", "-1.5", "text", &i128::MAX.to_string()][number as usize % 4].to_owned();
        let value = if value.is_empty() {
            number.to_string()
        } else {
            value
        };
        expected.push(if number.is_multiple_of(3) {
            format!("value={value}")
        } else {
            format!("value={value} there={number}")
        });
    }
    let all = common::read(&session);
    let records = of(&all, "changing", Shape::Instant);
    let lines = records
        .iter()
        .map(|record| line(&all, record).replace(" there=none", ""));
    assert_eq!(lines.collect::<Vec<_>>(), expected);
}

/// 32 fields and more: those that have no place of their own are one text.
#[test]
fn many_fields() {
    let session = session();
    info!(
        target: "wide", a01 = 1, a02 = 2, a03 = 3, a04 = 4, a05 = 5, a06 = 6, a07 = 7, a08 = 8, a09 = 9, a10 = 10,
        a11 = 11, a12 = 12, a13 = 13, a14 = 14, a15 = 15, a16 = 16, a17 = 17, a18 = 18, a19 = 19, a20 = 20,
        a21 = 21, a22 = 22, a23 = 23, a24 = 24, a25 = 25, a26 = 26, a27 = 27, a28 = 28, a29 = 29, a30 = 30,
        a31 = 31, a32 = "last"
    );
    let all = common::read(&session);
    let expected: Vec<_> = (1..32).map(|n| format!("a{n:02}={n}")).collect();
    let found = line(&all, one(&all, "wide", Shape::Instant));
    assert_eq!(found, format!("{} a32=last", expected.join(" ")));
}

/// More fields than have a place of their own, made by hand: macros do not reach them.
#[test]
fn further_fields_are_one_text() {
    let session = session();
    for present in [70, 70, 60, 59, 58] {
        wide::event(present);
    }
    let all = common::read(&session);
    let records = of(&all, "further", Shape::Instant);
    let texts = [0, 1, 2].map(|at| all.text(records[at], "…"));
    let further = |last: usize| {
        let each = (59..last).map(|n| format!("f{n}={n}"));
        each.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(texts, [further(70), further(70), further(60)]);
    assert!(records.iter().all(|record| all.number(record, "f57") == 57));
    assert_eq!(all.number(records[3], "f58"), 58);
}

#[test]
fn long_texts_are_whole_up_to_what_a_record_holds() {
    let session = session();
    let emit = |length: usize| {
        let text = "ä".repeat(length / 2);
        let bytes = vec![7_u8; length];
        let list = vec![1_u8; length / 3];
        info!(target: "long", short = 1, text, bytes = &bytes[..], debug = ?list, behind = "here", "said {text}");
    };
    // On the stack, in the record, and more than a page of 64 KiB holds.
    [90, 9000, 90_000].into_iter().for_each(emit);
    let all = common::read(&session);
    let records = of(&all, "long", Shape::Instant);
    assert_eq!(records.len(), 3);
    for (record, length) in records.iter().zip([90, 9000]) {
        let text = "ä".repeat(length / 2);
        assert_eq!(all.text(record, "text"), text);
        assert_eq!(all.text(record, "message"), format!("said {text}"));
        assert_eq!(all.text(record, "bytes"), "07".repeat(length));
        assert_eq!(
            all.text(record, "debug"),
            format!("{:?}", vec![1_u8; length / 3])
        );
    }
    for record in &records {
        assert_eq!(all.text(record, "behind"), "here");
        assert_eq!(all.text(record, "short"), "1");
    }
    let last = records[2];
    let [text, message, debug] = ["text", "message", "debug"].map(|name| all.text(last, name));
    assert!(text.ends_with("ä…") && text.starts_with("ää") && text.len() > 10_000);
    assert!(message.ends_with("ä…") && message.starts_with("said ä"));
    assert!(debug.ends_with('…') && debug.starts_with("[1, 1"));
    let bytes = all.text(last, "bytes");
    assert!(bytes.ends_with("07e280a6") && bytes.starts_with("0707"));
}

#[test]
fn late_values_in_any_order_and_twice() {
    let session = session();
    let empty = tracing::field::Empty;
    let span = info_span!(target: "any_order", "any", a = empty, b = empty, c = empty);
    tracing::record_all!(span, c = 3, a = 1);
    tracing::record_all!(span, b = "two", a = 4, a = 5, c = 6);
    let all = common::read(&session);
    let late = of(&all, "any_order", Shape::SpanRecord);
    let lines: Vec<_> = late.iter().map(|record| line(&all, record)).collect();
    assert_eq!(lines, ["c=3", "a=1", "b=two", "a=4", "a=5 c=6"]);
}

#[test]
fn parents() {
    let session = session();
    let outer = info_span!(target: "outer", "outer");
    let root = outer.in_scope(|| {
        let inner = info_span!(target: "inner", "inner", n = 1);
        inner.in_scope(|| info!(target: "contextual", n = 1));
        let _explicit = info_span!(target: "explicit", parent: &inner, "explicit");
        info!(target: "of_span", parent: &outer, n = 1);
        info!(target: "of_none", parent: None, n = 1);
        info_span!(target: "root", parent: None, "root")
    });
    drop(root);
    let all = common::read(&session);
    let new = |target| one(&all, target, Shape::SpanNew);
    let (outer, inner) = (new("outer"), new("inner"));
    let id = |record| all.number(record, "span_id");
    let parent = |record| all.number(record, "parent_id");
    assert_eq!(parent(outer), 0);
    assert_eq!(parent(inner), id(outer));
    assert_eq!(parent(new("explicit")), id(inner));
    assert_eq!(parent(new("root")), NO_SPAN);
    assert_eq!(id(one(&all, "of_span", Shape::Instant)), id(outer));
    assert_eq!(id(one(&all, "of_none", Shape::Instant)), NO_SPAN);
    let contextual = one(&all, "contextual", Shape::Instant);
    assert_eq!(
        contextual.payload.len(),
        8,
        "its parent follows from the order"
    );
    let names: Vec<_> = life(&all, id(inner)).into_iter().map(|(n, _)| n).collect();
    assert_eq!(names, ["span_new", "span_enter", "span_exit", "span_close"]);
    let exits = |tick: &u64| *tick;
    let ticks: Vec<u64> = [outer.tick, inner.tick, contextual.tick].to_vec();
    assert!(ticks.iter().map(exits).is_sorted());
}

#[test]
fn spans_left_in_another_order() {
    let session = session();
    let [a, b] = [
        info_span!(target: "order_a", "a"),
        info_span!(target: "order_b", "b"),
    ];
    let first = a.enter();
    let second = b.enter();
    drop(first);
    drop(info_span!(target: "order_c", "c"));
    drop(second);
    drop(info_span!(target: "order_d", "d"));
    let all = common::read(&session);
    let new = |target| one(&all, target, Shape::SpanNew);
    let b = all.number(new("order_b"), "span_id");
    assert_eq!(all.number(new("order_c"), "parent_id"), b);
    assert_eq!(all.number(new("order_d"), "parent_id"), 0);
}

#[test]
fn deep_spans_keep_their_parents() {
    let session = session();
    fn nest(depth: u64) {
        if depth > 0 {
            info_span!(target: "deep", "deep", depth).in_scope(|| nest(depth - 1));
        }
    }
    nest(200);
    let all = common::read(&session);
    let spans = of(&all, "deep", Shape::SpanNew);
    assert_eq!(spans.len(), 200);
    for pair in spans.windows(2) {
        assert_eq!(
            all.number(pair[1], "parent_id"),
            all.number(pair[0], "span_id")
        );
    }
    drop(info_span!(target: "after_deep", "after"));
    let all = common::read(&session);
    assert_eq!(
        all.number(one(&all, "after_deep", Shape::SpanNew), "parent_id"),
        0
    );
}

#[test]
fn late_values_and_follows_from() {
    let session = session();
    let empty = tracing::field::Empty;
    let span = info_span!(target: "late", "late", early = 1, later = empty, text = empty);
    span.record("later", 7_u64).record("text", "done");
    span.in_scope(|| {
        Span::current().record("later", 8_u64);
    });
    let cause = info_span!(target: "cause", "cause");
    span.follows_from(&cause);
    let all = common::read(&session);
    let id = all.number(one(&all, "late", Shape::SpanNew), "span_id");
    assert_eq!(line(&all, one(&all, "late", Shape::SpanNew)), "early=1");
    let late = of(&all, "late", Shape::SpanRecord);
    let lines: Vec<_> = late.iter().map(|record| line(&all, record)).collect();
    assert_eq!(lines, ["later=7", "text=done", "later=8"]);
    assert!(
        late.iter()
            .all(|record| all.number(record, "span_id") == id)
    );
    let cause = all.number(one(&all, "cause", Shape::SpanNew), "span_id");
    let follows = all.of("span.follows");
    let pairs: Vec<_> = follows
        .iter()
        .map(|record| {
            (
                all.number(record, "span_id"),
                all.number(record, "follows_id"),
            )
        })
        .collect();
    assert_eq!(pairs, [(id, cause)]);
}

#[test]
fn a_span_entered_on_several_threads() {
    let session = session();
    let span = info_span!(target: "shared", "shared");
    let here = span.clone();
    let enter =
        |span: Span| thread::spawn(move || span.in_scope(|| info!(target: "in_shared", n = 1)));
    let threads: Vec<_> = (0..3).map(|_| enter(span.clone())).collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    drop(span);
    let id = |all: &Recorded| all.number(one(all, "shared", Shape::SpanNew), "span_id");
    let all = common::read(&session);
    assert!(
        life(&all, id(&all))
            .iter()
            .all(|(name, _)| name != "span_close")
    );
    drop(here);
    let all = common::read(&session);
    let life = life(&all, id(&all));
    let count = |wanted: &str| life.iter().filter(|(name, _)| name == wanted).count();
    assert_eq!(
        (count("span_enter"), count("span_exit"), count("span_close")),
        (3, 3, 1)
    );
    let mut tids: Vec<_> = life
        .iter()
        .filter(|(n, _)| n == "span_enter")
        .map(|(_, t)| *t)
        .collect();
    tids.sort_unstable();
    tids.dedup();
    assert_eq!(tids.len(), 3);
    assert_eq!(life.last().unwrap().0, "span_close");
}

#[test]
fn many_living_spans_have_their_own_ids() {
    session();
    let spans: Vec<Span> = (0..5000)
        .map(|_| span!(target: "many", Level::INFO, "many"))
        .collect();
    let ids: std::collections::HashSet<_> =
        spans.iter().map(|s| s.id().unwrap().into_u64()).collect();
    assert_eq!(ids.len(), 5000);
    drop(spans);
    let again: Vec<Span> = (0..5000)
        .map(|_| span!(target: "many", Level::INFO, "many"))
        .collect();
    assert!(
        again
            .iter()
            .all(|s| !ids.contains(&s.id().unwrap().into_u64()))
    );
}

/// A call site with 70 fields.
mod wide {
    use tracing::callsite::{DefaultCallsite, Identifier};
    use tracing::field::{FieldSet, Value};
    use tracing::metadata::Kind;
    use tracing::{Event, Level, Metadata};

    const NAMES: [&str; 70] = {
        const DIGITS: &[u8; 280] = &digits();
        let mut names = [""; 70];
        let mut n = 0;
        while n < 70 {
            let (_, from) = DIGITS.split_at(4 * n);
            let (name, _) = from.split_at(if n < 10 { 2 } else { 3 });
            names[n] = match str::from_utf8(name) {
                Ok(name) => name,
                Err(_) => "",
            };
            n += 1;
        }
        names
    };

    const fn digits() -> [u8; 280] {
        let mut all = [0; 280];
        let mut n = 0;
        while n < 70 {
            all[4 * n] = b'f';
            if n < 10 {
                all[4 * n + 1] = b'0' + n as u8;
            } else {
                all[4 * n + 1] = b'0' + (n / 10) as u8;
                all[4 * n + 2] = b'0' + (n % 10) as u8;
            }
            n += 1;
        }
        all
    }

    static CALLSITE: DefaultCallsite = DefaultCallsite::new(&METADATA);
    static METADATA: Metadata<'static> = Metadata::new(
        "wide",
        "further",
        Level::INFO,
        None,
        None,
        None,
        FieldSet::new(&NAMES, Identifier(&CALLSITE)),
        Kind::EVENT,
    );

    /// With so many of the fields.
    pub(super) fn event(present: usize) {
        let _ = CALLSITE.register();
        let fields: Vec<_> = METADATA.fields().iter().collect();
        let numbers: Vec<u64> = (0..70).collect();
        let value = |n: usize| (n < present).then_some(&numbers[n] as &dyn Value);
        let values: [_; 70] = std::array::from_fn(|n| (&fields[n], value(n)));
        Event::dispatch(&METADATA, &METADATA.fields().value_set(&values));
    }
}

/// A new span costs much the same however many live.
#[test]
fn a_million_living_spans() {
    session();
    let make = |count: usize| -> (Vec<Span>, std::time::Duration) {
        let start = std::time::Instant::now();
        let spans = (0..count).map(|_| span!(target: "million", Level::INFO, "living"));
        (spans.collect(), start.elapsed())
    };
    let (_few, first) = make(20_000);
    let (living, _) = make(1_100_000);
    let (_more, last) = make(20_000);
    let ids: std::collections::HashSet<_> = living.iter().map(|s| s.id()).collect();
    assert_eq!(ids.len(), living.len());
    // It was a factor of thousands where all regions were searched.
    assert!(last < 50 * first, "{last:?}, and {first:?} where few live");
}

/// Threads that live at one time, and one that makes spans while its thread locals are destroyed.
#[test]
fn spans_of_many_threads_have_their_own_ids() {
    use std::sync::{Arc, Barrier, Mutex};
    session();
    let threads = 1100;
    let all = Arc::new((Barrier::new(threads), Mutex::new(Vec::new())));
    struct Late(Arc<(Barrier, Mutex<Vec<u64>>)>);
    impl Drop for Late {
        fn drop(&mut self) {
            note(&self.0.1);
        }
    }
    fn note(ids: &Mutex<Vec<u64>>) -> Span {
        let span = info_span!(target: "of_threads", "of a thread");
        ids.lock().unwrap().push(span.id().unwrap().into_u64());
        span
    }
    thread_local!(static LATE: Cell<Option<Late>> = const { Cell::new(None) });
    let work = |all: Arc<(Barrier, Mutex<Vec<u64>>)>| {
        move || {
            let span = note(&all.1);
            LATE.set(Some(Late(all.clone())));
            all.0.wait();
            drop(span);
        }
    };
    let started: Vec<_> = (0..threads)
        .map(|_| {
            let builder = thread::Builder::new().stack_size(64 << 10);
            builder.spawn(work(all.clone())).expect("a thread")
        })
        .collect();
    started
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    let mut ids = all.1.lock().unwrap().clone();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 2 * threads);
}

thread_local!(static DEPTH: Cell<u32> = const { Cell::new(0) });

/// Its `Debug` emits events and spans, of its own site, too.
struct Talkative;

impl fmt::Debug for Talkative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let depth = DEPTH.get();
        if depth < 3 {
            DEPTH.set(depth + 1);
            info_span!(target: "talk_span", "talk").in_scope(talk);
            DEPTH.set(depth);
        }
        write!(f, "at {depth}")
    }
}

fn talk() {
    info!(target: "talk", talkative = ?Talkative);
}

#[test]
fn a_debug_that_emits() {
    let session = session();
    talk();
    talk();
    let all = common::read(&session);
    let records = of(&all, "talk", Shape::Instant);
    let texts: Vec<_> = records.iter().map(|record| line(&all, record)).collect();
    let once = ["at 3", "at 2", "at 1", "at 0"].map(|text| format!("talkative={text}"));
    assert_eq!(texts, [once.clone(), once].concat());
    assert_eq!(of(&all, "talk_span", Shape::SpanNew).len(), 6);
}
