//! The whole grammar of `event!`, `event_at!`, `span!`, `counter!`, `flow!`: what the schema says,
//! and the payload bytes. A program that forbids `unsafe` can use all of it.
#![forbid(unsafe_code)]

mod common;

use std::cell::Cell;
use std::sync::OnceLock;

use common::Recorded;
use ringmark::client::Shape;
use ringmark::{Kind, Level, counter, event, event_at, flow, redact, span};
use ringmark_format::schema::semantic;

const CATEGORY: &str = "category of a constant";
const AT: u64 = 5;
/// Names that a macro's own items could have.
const STATE: &str = "state.of.a.constant";
#[allow(non_upper_case_globals, reason = "the name is what is tested")]
const Here: &str = "here";

fn emit_all() {
    values();
    texts();
    options();
    arguments();
    others();
}

fn values() {
    event!(
        "ints",
        a = 1_u8,
        b = 2_u16,
        c = 3_u32,
        d = 4_u64,
        e = 5_usize
    );
    event!(
        "signed",
        a = -1_i8,
        b = -2_i16,
        c = -3_i32,
        d = -4_i64,
        e = -5_isize
    );
    event!("wide", a = 1_u8, b = u128::MAX - 1, c = i128::MIN, d = 7_u8);
    event!("floats", a = 1.5_f32, b = -2.25_f64);
    event!("others", a = true, b = false, c = 'ß');
    event!(
        "arrays",
        a = [1_u8, 2, 3],
        b = [-1_i32; 2],
        c = [0.5_f64],
        d = [true, false],
        e = [u128::MAX; 2]
    );
    event!(
        "twelve",
        a = 1_u8,
        b = 2_u8,
        c = 3_u8,
        d = 4_u8,
        e = 5_u8,
        f = 6_u8,
        g = 7_u8,
        h = 8_u8,
        i = 9_u64,
        j = 10_u8,
        k = 11_u8,
        l = 12_u8
    );
}

fn texts() {
    let owned = String::from("eight by");
    event!(
        "texts",
        a = "",
        b = "äöü",
        c = &owned,
        d = owned.as_str(),
        e = 1_u8,
        f = owned.clone()
    );
    event!("bytes", a = &[1_u8, 2, 255][..], b = &[0_u8; 0][..]);
    event!("text.arrays", a = ["one", "three", ""], b = 9_u8);
    event!("sigils", a = ?Some("x"), b = %format_args!("{}!", 3), c = ?owned, d = %1.5);
    event!("long", a = %"ä".repeat(600), b = ?[0; 2]);
    event!("huge", a = "x".repeat(5000), b = 1_u8);
    event!("secret", password = redact("hunter2"), user = "me");
}

fn options() {
    event!(target: "t", category: "c", level: Warn, "any.order", n = 1_u8);
    counter!(target: "t", level: Debug, "counter.options", 1_u8, pool = "http");
    flow!(category: "c", level: Warn, "flow.options", 1_u8);
    event_at!(AT, target: "t", level: Warn, "at.options");
    event!("plain");
    event!("comma",);
    event!(level: Error, "level");
    event!(level: Trace, category: "db", target: "other::place", "all", n = 1_u8,);
    event!(category: CATEGORY, "category");
    event!(target: Here, category: STATE, STATE, n = STATE);
    event!(target: "only.target", "target", n = 1_u8);
    event!(level: Warn, target: "t", "level.target");
    event!(category: "c", target: "t", "category.target");
}

struct Place {
    id: u16,
    path: &'static str,
}

fn arguments() {
    let (shorthand, other) = (7_u16, "text");
    event!("shorthand", shorthand, other);
    event!("dotted", http.request.status = 200_u16, shorthand, http.path = ?"/", url.full = %other);
    event!(
        "expression",
        a = {
            let x = 2;
            x * 3_u32
        },
        b = if shorthand > 1 { 1_u8 } else { 2 },
        c = (shorthand..9).len()
    );
    event!("comma.too", a = 1_u8,);
    let place = Place {
        id: 5_u16,
        path: "/",
    };
    event!("shorthand.text", ?shorthand, %other, place.id, ?place.path);
    event!("raw", r#type = 1_u8);
}

fn others() {
    event_at!(AT + 1, "at", n = 3_u8);
    event_at!(AT, level: Debug, "at.level");
    let depth = 17_i64;
    counter!("depth", depth);
    counter!("ratio", 0.5_f32,);
    flow!("job", 99_u64);
    flow!("job.step", 100_u32, step = "queued", n = 1_u8,);
    {
        let _outer = span!("outer", rows = 3_u32, what = ?'x');
        let _inner = span!(level: Debug, category: "c", target: "t", "inner");
        event!("inside");
    }
    span!("cancelled").cancel();
    let mut late = span!("late", rows = 0_u64);
    late.set((42,));
    drop(late);
}

fn recorded() -> &'static Recorded {
    static RECORDED: OnceLock<Recorded> = OnceLock::new();
    RECORDED.get_or_init(|| {
        off_without_a_session();
        let session = common::start(|builder| builder);
        off_by_filter(&session);
        emit_all();
        common::read(&session)
    })
}

thread_local! {
    static EVALUATED: Cell<u32> = const { Cell::new(0) };
}

fn evaluated() -> u32 {
    EVALUATED.set(EVALUATED.get() + 1);
    EVALUATED.get()
}

fn off_without_a_session() {
    event!("off", n = evaluated());
    event!("off.sigil", n = ?evaluated(), m = %evaluated());
    let _span = span!("off.span", n = evaluated());
    counter!("off.counter", evaluated());
    flow!("off.flow", evaluated(), n = evaluated());
    event_at!(1, "off.at", n = evaluated());
    assert_eq!(
        EVALUATED.get(),
        0,
        "arguments of events that are off are not evaluated"
    );
}

fn off_by_filter(session: &ringmark::Session) {
    let event = || event!("switched", n = evaluated());
    session.set_filter("off").unwrap();
    event();
    assert_eq!(EVALUATED.get(), 0);
    session.set_filter("").unwrap();
    event();
    assert_eq!(EVALUATED.get(), 1, "evaluated once");
}

#[track_caller]
fn check(name: &str, layout: &str, line: &str) {
    let all = recorded();
    assert_eq!(all.event_type(name).layout(), layout);
    assert_eq!(all.line(name), line);
}

#[test]
fn numbers() {
    check(
        "ints",
        "a:u8@0 b:u16@2 c:u32@4 d:u64@8 e:u64@16",
        "a=1 b=2 c=3 d=4 e=5",
    );
    check(
        "signed",
        "a:i8@0 b:i16@2 c:i32@4 d:i64@8 e:i64@16",
        "a=-1 b=-2 c=-3 d=-4 e=-5",
    );
    check("floats", "a:f32@0 b:f64@8", "a=1.5 b=-2.25");
    check("others", "a:bool@0 b:bool@1 c:char@4", "a=true b=false c=ß");
    let wide = format!("a=1 b={} c={} d=7", u128::MAX - 1, i128::MIN);
    check("wide", "a:u8@0 b:u128@8 c:i128@24 d:u8@40", &wide);
    let max = u128::MAX;
    check(
        "arrays",
        "a:u8x3@0 b:i32x2@4 c:f64x1@16 d:boolx2@24 e:u128x2@32",
        &format!("a=[1, 2, 3] b=[-1, -1] c=[0.5] d=[true, false] e=[{max}, {max}]"),
    );
    check(
        "twelve",
        "a:u8@0 b:u8@1 c:u8@2 d:u8@3 e:u8@4 f:u8@5 g:u8@6 h:u8@7 i:u64@8 j:u8@16 k:u8@17 l:u8@18",
        "a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8 i=9 j=10 k=11 l=12",
    );
}

#[test]
fn payload_bytes() {
    let all = recorded();
    assert_eq!(
        all.one("ints").payload,
        [
            1, 0, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0,
        ]
    );
    assert_eq!(all.event_type("ints").fixed_bytes, 24);
    assert_eq!(
        all.one("bytes").payload,
        [
            16, 0, 0, 0, 3, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, 1, 2, 255, 0, 0, 0, 0, 0,
        ]
    );
    assert_eq!(all.event_type("bytes").fixed_bytes, 16);
    assert_eq!(all.one("others").payload, [1, 0, 0, 0, 0xDF, 0, 0, 0]);
    assert_eq!(all.event_type("twelve").fixed_bytes, 19);
    assert_eq!(all.one("twelve").payload.len(), 24);
    assert!(all.one("plain").payload.is_empty());
}

#[test]
fn texts_and_bytes() {
    check(
        "texts",
        "a:str@0 b:str@8 c:str@16 d:str@24 e:u8@32 f:str@40",
        "a= b=äöü c=eight by d=eight by e=1 f=eight by",
    );
    check("bytes", "a:bytes@0 b:bytes@8", "a=0102ff b=");
    check("text.arrays", "a:strx3@0 b:u8@24", "a=[one, three, ] b=9");
    check(
        "sigils",
        "a:str@0 b:str@8 c:str@16 d:str@24",
        "a=Some(\"x\") b=3! c=\"eight by\" d=1.5",
    );
    check(
        "huge",
        "a:str@0 b:u8@8",
        &format!("a={} b=1", "x".repeat(5000)),
    );
    let cut = format!("a={}… b=[0, 0]", "ä".repeat(254));
    check("long", "a:str@0 b:str@8", &cut);
}

#[test]
fn redacted_values_never_arrive() {
    check(
        "secret",
        "password:str@0 user:str@8",
        "password=[redacted] user=me",
    );
    let secret = recorded().event_type("secret");
    assert!(secret.field("password").redacted);
    assert!(!secret.field("user").redacted);
}

#[track_caller]
fn facts(name: &str, level: Level, category: &str, target: &str) {
    let found = recorded().event_type(name);
    let facts = (found.level, found.category.as_str(), found.target.as_str());
    assert_eq!(facts, (level, category, target));
    assert_eq!(recorded().of(name).len(), 1);
}

#[test]
fn options_and_their_defaults() {
    let here = module_path!();
    facts("plain", Level::Info, "", here);
    facts("comma", Level::Info, "", here);
    facts("level", Level::Error, "", here);
    facts("all", Level::Trace, "db", "other::place");
    facts("category", Level::Info, CATEGORY, here);
    facts(STATE, Level::Info, STATE, Here);
    facts("target", Level::Info, "", "only.target");
    facts("level.target", Level::Warn, "", "t");
    facts("category.target", Level::Info, "c", "t");
    facts("inner", Level::Debug, "c", "t");
    facts("at.level", Level::Debug, "", here);
    facts("any.order", Level::Warn, "c", "t");
    facts("counter.options", Level::Debug, "", "t");
    facts("flow.options", Level::Warn, "c", here);
    facts("at.options", Level::Warn, "", "t");
    check(
        "counter.options",
        "value:u8@0 pool:str@8",
        "value=1 pool=http",
    );
    let plain = recorded().event_type("plain");
    assert!(plain.file.ends_with("macros_grammar.rs"));
    let line = include_str!("macros_grammar.rs")
        .lines()
        .position(|l| l.contains("event!(\"plain\")"));
    assert_eq!(plain.line as usize, line.unwrap() + 1);
}

#[test]
fn names_of_arguments() {
    check(
        "shorthand",
        "shorthand:u16@0 other:str@8",
        "shorthand=7 other=text",
    );
    check(
        "dotted",
        "http.request.status:u16@0 shorthand:u16@2 http.path:str@8 url.full:str@16",
        "http.request.status=200 shorthand=7 http.path=\"/\" url.full=text",
    );
    check("expression", "a:u32@0 b:u8@4 c:u64@8", "a=6 b=1 c=2");
    check("comma.too", "a:u8@0", "a=1");
    check(
        "shorthand.text",
        "shorthand:str@0 other:str@8 place.id:u16@16 place.path:str@24",
        "shorthand=7 other=text place.id=5 place.path=\"/\"",
    );
    check("raw", "type:u8@0", "type=1");
}

#[track_caller]
fn shape(name: &str, shape: Shape, semantics: &[u32]) {
    let found = recorded().event_type(name);
    assert_eq!(found.shape, shape);
    let all: Vec<u32> = found.fields.iter().map(|f| f.semantic).collect();
    assert_eq!(all, semantics);
}

#[test]
fn shapes() {
    shape("ints", Shape::Instant, &[0; 5]);
    shape("at", Shape::Instant, &[0]);
    shape("depth", Shape::Counter, &[semantic::COUNTER]);
    shape("ratio", Shape::Counter, &[semantic::COUNTER]);
    shape("job", Shape::Flow, &[semantic::FLOW]);
    shape("job.step", Shape::Flow, &[semantic::FLOW, 0, 0]);
    shape("outer", Shape::Span, &[semantic::DURATION, 0, 0]);
    shape("inner", Shape::Span, &[semantic::DURATION]);
    check("depth", "value:i64@0", "value=17");
    check("ratio", "value:f32@0", "value=0.5");
    check("job", "flow:u64@0", "flow=99");
    check(
        "job.step",
        "flow:u32@0 step:str@8 n:u8@16",
        "flow=100 step=queued n=1",
    );
    check("at", "n:u8@0", "n=3");
}

#[test]
fn ticks_of_event_at() {
    // Both lie before the page's base: the full tick stands in front of the record.
    assert_eq!(recorded().one("at").tick, AT + 1);
    assert_eq!(recorded().one("at.level").tick, AT);
}

#[test]
fn spans_are_one_record_with_their_duration() {
    let all = recorded();
    let outer = all.event_type("outer");
    assert_eq!(outer.layout(), "duration:u64@0 rows:u32@8 what:str@16");
    assert_eq!(outer.field("duration").unit, "ticks");
    let (outer, inner, inside) = (all.one("outer"), all.one("inner"), all.one("inside"));
    assert_eq!(all.text(outer, "rows"), "3");
    assert_eq!(all.text(outer, "what"), "'x'");
    let start = |r| all.one(r).tick - all.number(all.one(r), "duration");
    assert!(start("outer") <= start("inner") && start("inner") <= inside.tick);
    assert!(inside.tick <= inner.tick && inner.tick <= outer.tick);
    assert!(all.of("cancelled").is_empty());
    assert_eq!(all.text(all.one("late"), "rows"), "42");
    assert_eq!(all.event_type("late").field("rows").kind, Kind::U64);
}

#[test]
fn what_is_off_is_not_recorded() {
    let all = recorded();
    for name in [
        "off",
        "off.sigil",
        "off.span",
        "off.counter",
        "off.flow",
        "off.at",
    ] {
        assert!(all.of(name).is_empty(), "{name}");
    }
    check("switched", "n:u32@0", "n=1");
}
