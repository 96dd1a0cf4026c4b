//! Spans of futures: new, then enter and exit for each poll, on the thread that polls, then close.
#![forbid(unsafe_code)]

mod common;

use std::future::{Future, poll_fn};
use std::panic::{self, AssertUnwindSafe};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::thread;

use common::{Record, Recorded};
use ringmark::Level;
use ringmark::client::Shape;
use ringmark::{AsyncSpan, InSpan, async_span, event, instrument};
use ringmark_format::schema::semantic;

/// Pending once.
fn pause() -> impl Future<Output = ()> + Send {
    let mut polled = false;
    poll_fn(move |_| {
        if std::mem::replace(&mut polled, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls until it is ready; returns how often.
fn run<F: Future>(future: F) -> (F::Output, u32) {
    let mut future = pin!(future);
    for polls in 1.. {
        if let Poll::Ready(output) = poll(future.as_mut()) {
            return (output, polls);
        }
    }
    unreachable!("a future is ready at some poll")
}

/// Which span of the session this is, from 1; 0: none.
fn rank(all: &Recorded, id: u64) -> usize {
    let has_id = |r: &&Record| all.event_type(all.name(r)).shape == Shape::SpanNew;
    let records = all.records.iter().filter(has_id);
    let mut ids: Vec<u64> = records.map(|r| all.number(r, "span_id")).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.iter().filter(|known| **known <= id).count()
}

/// The records between two events, one word each: `name`, or `enter 3`.
struct Story<'r> {
    all: &'r Recorded,
}

impl Story<'_> {
    fn word(&self, record: &Record) -> String {
        let name = self.all.name(record);
        let found = self.all.event_type(name);
        if found.fields.iter().all(|f| f.name != "span_id") {
            return name.to_owned();
        }
        let id = rank(self.all, self.all.number(record, "span_id"));
        match found.shape {
            Shape::SpanNew => {
                let parent = rank(self.all, self.all.number(record, "parent_id"));
                format!("{name} {id}<{parent}")
            }
            _ => format!("{} {id}", found.shape.name().trim_start_matches("span_")),
        }
    }

    /// From the event `begin` to the event `end`, in the order of ticks.
    fn between(&self, begin: &str, end: &str) -> String {
        let (begin, end) = (self.all.one(begin).tick, self.all.one(end).tick);
        let mut records: Vec<_> = self.all.records.iter().collect();
        records.sort_by_key(|r| r.tick);
        let inside = records.iter().filter(|r| begin < r.tick && r.tick < end);
        inside.map(|r| self.word(r)).collect::<Vec<_>>().join(", ")
    }
}

async fn inner_work(steps: u32) -> u32 {
    for _ in 0..steps {
        pause().await;
    }
    event!("in.poll");
    steps
}

fn by_hand() {
    event!("hand.begin");
    let span = async_span!(level: Debug, category: "net", "request", id = 9_u32, path = "/x");
    assert!(span.id().is_some());
    let (output, polls) = run(inner_work(1).in_span(span));
    assert_eq!((output, polls), (1, 2));
    event!("hand.end");
}

#[instrument(level = "debug", fields(n, text))]
async fn outer(n: u32, text: String) -> Result<u32, std::num::ParseIntError> {
    let parsed: u32 = text.parse()?;
    drop(text);
    Ok(nested(n).await + parsed)
}

#[instrument(name = "nested")]
async fn nested(n: u32) -> u32 {
    pause().await;
    n
}

fn instrumented() {
    event!("outer.begin");
    let future = outer(2, "40".to_owned());
    event!("not.polled");
    let (output, polls) = run(future);
    assert_eq!((output, polls), (Ok(42), 2));
    event!("outer.end");
}

fn dropped_early() {
    event!("drop.begin");
    {
        let mut future = pin!(nested(0));
        assert!(poll(future.as_mut()).is_pending());
    }
    drop(nested(0)); // Never polled: no span.
    drop(pause().in_span(async_span!("unpolled")));
    event!("drop.end");
}

fn across_threads() {
    event!("threads.begin");
    let mut future = Box::pin(outer(0, "1".to_owned()));
    assert!(poll(future.as_mut()).is_pending());
    let other = thread::spawn(move || assert!(poll(future.as_mut()).is_ready()));
    other.join().expect("the other thread polls");
    event!("threads.end");
}

fn panicking() {
    event!("panic.begin");
    let bad = async { panic::resume_unwind(Box::new(())) };
    let future = AsyncSpan::in_test(bad);
    let result = panic::catch_unwind(AssertUnwindSafe(|| run(future)));
    assert!(result.is_err());
    // The thread is in no span any more.
    drop(async_span!("after.panic"));
    event!("panic.end");
}

trait InTest {
    fn in_test<F: Future<Output = ()>>(future: F) -> impl Future<Output = ()>;
}

impl InTest for AsyncSpan {
    fn in_test<F: Future<Output = ()>>(future: F) -> impl Future<Output = ()> {
        future.in_span(async_span!("panics"))
    }
}

fn entered_and_follows() {
    event!("enter.begin");
    let first = async_span!("first");
    let second = {
        let _entered = first.enter();
        async_span!("second")
    };
    second.follows(&first);
    second.follows(&AsyncSpan::none());
    drop((first, second));
    event!("enter.end");
}

#[instrument]
async fn coerced(
    fail: bool,
) -> Result<Box<dyn Fn() -> u8 + Send>, Box<dyn std::error::Error + Send + Sync>> {
    if fail {
        return Err("failed".into());
    }
    pause().await;
    Ok(Box::new(|| 3))
}

struct Store {
    rows: Vec<u32>,
}

impl Store {
    #[instrument(fields(by, rows = self.rows.len()))]
    async fn add(&mut self, mut by: u32, _unused: String) -> &mut u32 {
        by += 1;
        pause().await;
        self.rows.push(by);
        &mut self.rows[0]
    }

    #[instrument]
    async fn borrowed<'s>(&'s self, extra: impl Iterator<Item = u32>) -> impl Iterator<Item = u32> {
        pause().await;
        self.rows.iter().copied().chain(extra)
    }
}

trait Load {
    async fn load(&self) -> Option<Box<dyn Fn(u32) -> u32 + '_>>;
}

impl Load for Store {
    #[instrument(name = "Store::load")]
    async fn load(&self) -> Option<Box<dyn Fn(u32) -> u32 + '_>> {
        let first = self.rows.first()?;
        Some(Box::new(move |n| n + first))
    }
}

fn methods() {
    let mut store = Store { rows: Vec::new() };
    assert_eq!(*run(store.add(4, "x".to_owned())).0, 5);
    assert_eq!(run(store.borrowed([7].into_iter())).0.sum::<u32>(), 12);
    let load = run(store.load()).0;
    assert_eq!(load.map(|add| add(1)), Some(6));
}

fn is_send<T: Send>(value: T) -> T {
    value
}

fn types_are_known() {
    let (good, _) = run(is_send(coerced(false)));
    assert_eq!(good.expect("it succeeds")(), 3);
    let (bad, _) = run(is_send(coerced(true)));
    assert_eq!(bad.err().expect("it fails").to_string(), "failed");
}

fn off(session: &ringmark::Session) {
    session.set_filter("warn").expect("a filter");
    let span = async_span!("request.off", n = never_evaluated());
    assert_eq!(span.id(), None);
    run(inner_work(1).in_span(span));
    session.set_filter("").expect("a filter");
}

fn never_evaluated() -> u8 {
    panic!("arguments of a span that is off are not evaluated")
}

#[test]
fn spans_of_futures() {
    drop(async_span!("no.session", n = never_evaluated()));
    assert_eq!(run(nested(4)).0, 4);
    let session = common::start(|builder| builder);
    by_hand();
    instrumented();
    dropped_early();
    across_threads();
    panicking();
    entered_and_follows();
    types_are_known();
    methods();
    off(&session);
    let all = common::read(&session);
    schema(&all);
    stories(&all);
    threads(&all);
}

fn schema(all: &Recorded) {
    let request = all.event_type("request");
    assert_eq!(request.shape, Shape::SpanNew);
    assert_eq!(
        (request.level, request.category.as_str()),
        (Level::Debug, "net")
    );
    assert_eq!(
        request.layout(),
        "span_id:u64@0 parent_id:u64@8 id:u32@16 path:str@24"
    );
    let semantics: Vec<u32> = request.fields.iter().map(|f| f.semantic).collect();
    assert_eq!(semantics, [semantic::SPAN_ID, semantic::PARENT_ID, 0, 0]);
    let request = all.one("request");
    assert_eq!(
        (all.text(request, "id"), all.text(request, "path")),
        ("9".into(), "/x".into())
    );
    assert_ne!(all.number(request, "span_id"), 0);
    for (name, shape) in [
        ("span.enter", Shape::SpanEnter),
        ("span.exit", Shape::SpanExit),
        ("span.close", Shape::SpanClose),
    ] {
        let found = all.event_type(name);
        assert_eq!((found.shape, found.fixed_bytes), (shape, 8), "{name}");
        assert_eq!(found.field("span_id").semantic, semantic::SPAN_ID);
        assert!(
            all.of(name).iter().all(|r| r.payload.len() == 8),
            "16 bytes with the header"
        );
    }
    let add = all.one("add");
    assert_eq!(
        (all.text(add, "by"), all.text(add, "rows")),
        ("4".into(), "0".into())
    );
    assert_eq!(all.of("borrowed").len() + all.of("Store::load").len(), 2);
    let follows = all.event_type("span.follows");
    assert_eq!(follows.shape, Shape::SpanFollows);
    let (record, first) = (all.one("span.follows"), all.one("first"));
    assert_eq!(
        all.number(record, "follows_id"),
        all.number(first, "span_id")
    );
    assert!(all.of("request.off").is_empty() && all.of("no.session").is_empty());
}

fn stories(all: &Recorded) {
    let story = Story { all };
    let tell = |begin: &str, end: &str| story.between(begin, end);
    assert_eq!(
        tell("hand.begin", "hand.end"),
        "request 1<0, enter 1, exit 1, enter 1, in.poll, exit 1, close 1"
    );
    assert_eq!(
        tell("outer.begin", "outer.end"),
        "not.polled, outer 2<0, enter 2, nested 3<2, enter 3, exit 3, exit 2, \
         enter 2, enter 3, exit 3, close 3, exit 2, close 2",
        "the span is made at the first poll, inside its parent"
    );
    assert_eq!(
        tell("drop.begin", "drop.end"),
        "nested 4<0, enter 4, exit 4, close 4, unpolled 5<0, close 5"
    );
    assert_eq!(
        tell("panic.begin", "panic.end"),
        "panics 8<0, enter 8, exit 8, close 8, after.panic 9<0, close 9"
    );
    assert_eq!(
        tell("enter.begin", "enter.end"),
        "first 10<0, enter 10, second 11<10, exit 10, follows 11, close 10, close 11"
    );
}

fn threads(all: &Recorded) {
    let story = Story { all };
    assert_eq!(
        story.between("threads.begin", "threads.end"),
        "outer 6<0, enter 6, nested 7<6, enter 7, exit 7, exit 6, \
         enter 6, enter 7, exit 7, close 7, exit 6, close 6"
    );
    let of_six = |name: &str| -> Vec<u32> {
        let records = all
            .of(name)
            .into_iter()
            .filter(|r| rank(all, all.number(r, "span_id")) == 6);
        let mut records: Vec<_> = records.collect();
        records.sort_by_key(|r| r.tick);
        records.iter().map(|r| r.tid).collect()
    };
    let (enters, exits) = (of_six("span.enter"), of_six("span.exit"));
    assert_eq!(enters.len(), 2);
    assert_ne!(enters[0], enters[1], "two polls, two threads");
    assert_eq!(enters, exits);
    let first = all.of("outer")[1];
    assert_eq!(first.tid, enters[0]);
}
