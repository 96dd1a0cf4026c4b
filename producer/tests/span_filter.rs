//! Filters by spans: what is recorded inside spans with certain fields, and that nothing else is.
#![cfg(feature = "tracing")]
#![forbid(unsafe_code)]

mod common;

use std::sync::Barrier;
use std::thread;

use common::Recorded;
use ringmark::{InSpan, Session, async_span, event, event_at, span, ticks};
use tracing::field::Empty;
use tracing_subscriber::prelude::*;

const ORDERS: u64 = 200;

fn start(filter: &str) -> Session {
    common::start(|builder| builder.filter(filter))
}

/// The names of the records of events, sorted: those that say what becomes of spans left out.
fn names(all: &Recorded) -> Vec<String> {
    let names = all.records.iter().map(|record| all.name(record).to_owned());
    let mut names: Vec<_> = names.filter(|name| !name.starts_with("span.")).collect();
    names.sort();
    names
}

fn native_order(id: u64) {
    event!("outside", id);
    let _order = span!(
        "order",
        id,
        customer = format!("c{id}"),
        paid = id.is_multiple_of(2)
    );
    event!(level: Debug, "inside", id);
    let _query = span!("query", id);
    event_at!(ticks(), level: Debug, "at", id);
}

#[test]
fn events_inside_native_spans() {
    let session = start("order[id=42]=debug");
    thread::scope(|scope| {
        for first in 0..4 {
            scope.spawn(move || (first..ORDERS).step_by(4).for_each(native_order));
        }
    });
    let all = common::read(&session);
    assert_eq!(names(&all), ["at", "inside", "order", "query"]);
    assert_eq!(all.line("inside"), "id=42");
    assert_eq!(all.text(all.one("order"), "customer"), "c42");
}

#[test]
fn values_of_every_kind_are_compared() {
    for (filter, count) in [
        ("order[id=42]", 1),
        ("order{id}", ORDERS),
        ("[order]", ORDERS),
        ("order[customer=c4?]", 10),
        ("order[customer=\"c42\",paid=true]", 1),
        ("order[customer=c42,paid=false]", 0),
        ("order[paid=false]", ORDERS / 2),
        ("{customer=c7}", 1),
        ("order[number=42]", 0),
    ] {
        let session = Session::current().unwrap_or_else(|| start("off"));
        let before = names(&common::read(&session)).len() as u64;
        session.set_filter(filter).expect(filter);
        (0..ORDERS).for_each(native_order);
        let records = names(&common::read(&session)).len() as u64 - before;
        assert_eq!(records, 4 * count, "{filter}");
    }
}

#[test]
fn levels_and_targets_count_inside() {
    let session = start("warn,order[id=42]=info,gone[order{id=43}]");
    (0..ORDERS).for_each(native_order);
    event!(level: Warn, "everywhere");
    let all = common::read(&session);
    // A span that the filter names is recorded whatever its level and target.
    assert_eq!(names(&all), ["everywhere", "order", "order", "query"]);
}

#[test]
fn native_spans_take_it_to_other_threads() {
    let session = start("request[id=42]");
    let poll = |future: &mut (dyn Future<Output = ()> + Unpin)| {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let _ = std::pin::Pin::new(future).poll(&mut context);
    };
    for id in 40..45_u64 {
        let mut job = Box::pin(
            async move {
                event!("first", id);
                let child = async_span!("child", id);
                thread::spawn(move || {
                    let _in_child = child.enter();
                    event!("in.child", id);
                })
                .join()
                .expect("the thread");
                std::future::pending::<()>().await;
            }
            .in_span(async_span!("request", id)),
        );
        thread::spawn(move || poll(&mut job))
            .join()
            .expect("the thread");
        event!("between", id);
    }
    let all = common::read(&session);
    assert_eq!(names(&all), ["child", "first", "in.child", "request"]);
    assert_eq!(all.line("in.child"), "id=42");
    let request = all.number(all.one("request"), "span_id");
    assert_eq!(all.number(all.one("child"), "parent_id"), request);
    for of in ["span.enter", "span.exit", "span.close"] {
        assert_eq!(all.of(of).len(), 2, "{of}");
    }
}

/// One order through `tracing`: its span is entered on two threads, has a child, and gets a value late.
fn traced_order(id: u64) {
    tracing::info!(target: "outside", id);
    let order = tracing::info_span!("order", id, state = Empty, %id);
    order.in_scope(|| {
        tracing::debug!(target: "inside", id);
        tracing::info!(target: "text", id, text = ?("a", id));
        let child = tracing::debug_span!("child", id);
        thread::scope(|scope| {
            scope.spawn(|| child.in_scope(|| tracing::debug!(target: "in.child", id)));
            scope.spawn(|| tracing::info!(target: "stated", parent: &order, id));
            scope.spawn(|| order.in_scope(|| tracing::trace!(target: "too.low", id)));
        });
        tracing::info!(target: "of.none", parent: None, id);
    });
    thread::scope(|scope| {
        scope.spawn(|| order.record("state", "done"));
    });
}

/// Target of a record, or the name of a span.
fn targets(all: &Recorded) -> Vec<String> {
    let of = |record: &common::Record| {
        let info = all
            .types
            .iter()
            .find(|t| t.id == record.type_id)
            .expect("its type");
        match info.target.as_str() {
            "span_filter" => info.name.clone(),
            target => target.to_owned(),
        }
    };
    let mut targets: Vec<_> = all.records.iter().map(of).collect();
    targets.retain(|target| target != "ringmark::span");
    targets.sort();
    targets
}

const OF_ORDER: [&str; 7] = [
    "child", "in.child", "inside", "order", "order", "stated", "text",
];

#[test]
fn events_inside_spans_of_tracing() {
    let session = start("order[id=42]=debug");
    ringmark::tracing::init().expect("bridged");
    (0..ORDERS).for_each(traced_order);
    assert_eq!(targets(&common::read(&session)), OF_ORDER);
}

#[test]
fn events_inside_spans_of_a_layer() {
    let session = start("order[id=42]=debug");
    tracing_subscriber::registry()
        .with(ringmark::tracing::layer())
        .init();
    (0..ORDERS).for_each(traced_order);
    let all = common::read(&session);
    assert_eq!(targets(&all), OF_ORDER);
    let records = |of: &str| all.of(of).len();
    assert_eq!(
        ["span.enter", "span.exit", "span.close"].map(records),
        [3, 3, 2]
    );
}

#[test]
fn a_value_that_comes_late_begins_the_span() {
    for layer in [false, true] {
        let session = Session::current().unwrap_or_else(|| start("request[number=42]"));
        let before = targets(&common::read(&session)).len();
        let dispatch = match layer {
            true => tracing::Dispatch::new(
                tracing_subscriber::registry().with(ringmark::tracing::layer()),
            ),
            false => tracing::Dispatch::new(ringmark::tracing::recorder()),
        };
        tracing::dispatcher::with_default(&dispatch, || {
            for number in 0..ORDERS {
                let request = tracing::info_span!("request", path = "/", number = Empty);
                request.in_scope(|| {
                    tracing::info!(target: "early", number);
                    tracing::Span::current().record("number", number);
                    tracing::info!(target: "late", number);
                    tracing::info_span!("child")
                        .in_scope(|| tracing::info!(target: "in.child", number));
                });
                request.in_scope(|| tracing::info!(target: "again", number));
                tracing::info!(target: "after", number);
            }
        });
        let all = targets(&common::read(&session)).len() - before;
        assert_eq!(
            all,
            ["again", "child", "in.child", "late", "request"].len(),
            "{layer}"
        );
    }
}

/// Threads that run when the filter comes take the slow way from their next record on, and the fast one when it is gone.
#[test]
fn a_filter_comes_while_threads_record() {
    let session = start("info");
    let (begun, switched, back) = (Barrier::new(5), Barrier::new(5), Barrier::new(5));
    thread::scope(|scope| {
        for id in 40..44_u64 {
            let (begun, switched, back) = (&begun, &switched, &back);
            scope.spawn(move || {
                event!("before", id);
                begun.wait();
                switched.wait();
                for _ in 0..1000 {
                    native_order(id);
                    event_at!(ticks(), "outside.at", id);
                }
                begun.wait();
                back.wait();
                event!("after", id);
            });
        }
        begun.wait();
        session.set_filter("order[id=42]=debug").expect("a filter");
        switched.wait();
        begun.wait();
        session.set_filter("info").expect("a filter");
        back.wait();
    });
    let all = common::read(&session);
    let count = |name: &str| all.of(name).len();
    assert_eq!(
        [
            "before",
            "order",
            "query",
            "inside",
            "at",
            "outside",
            "outside.at",
            "after"
        ]
        .map(count),
        [4, 1000, 1000, 1000, 1000, 0, 0, 4]
    );
    assert_eq!(
        session
            .ring_counts()
            .iter()
            .map(|ring| ring.records)
            .sum::<u64>(),
        session.records()
    );
}

#[test]
fn filters_that_cannot_be_used_are_refused() {
    use ringmark::{Clock, StartError};

    let without_clock = Session::builder()
        .clock(Clock::None)
        .filter("order[id=42]")
        .start();
    let said = without_clock.expect_err("no clock").to_string();
    assert!(said.contains("a session with a clock"), "{said}");
    let many = |count| -> String { (0..count).map(|id| format!("order[id={id}],")).collect() };
    let too_many = Session::builder().filter(many(31)).start();
    assert!(matches!(too_many, Err(StartError::Option(_))));
    let session = start(&many(30));
    for round in 1..4 {
        // Places of conditions that no filter has any more are used again.
        let shifted: String = (0..30)
            .map(|id| format!("order[id={}],", id + 30 * round))
            .collect();
        session.set_filter(&shifted).expect("30 conditions");
        let before = session.records();
        (0..ORDERS).for_each(native_order);
        assert_eq!(session.records() - before, 4 * 30, "{round}");
    }
}
