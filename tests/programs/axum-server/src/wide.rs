//! What a server reports whose log is compared with its trace, field by field: events with all the fields that
//! there may be, absent ones, long texts, spans without a parent, a client with a registry of its own, a filter
//! that is switched while spans are open.

use std::sync::LazyLock;

use ringmark::Session;
use tracing::field::Empty;
use tracing::{Dispatch, Instrument, info, info_span, warn};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, fmt, registry};

use log_lines::{Fields, Line};

#[path = "../../log_lines.rs"]
mod log_lines;

/// A registry with two layers: the log on standard error, and Ringmark's.
pub(crate) fn registry_with_lines() -> Dispatch {
    let lines = fmt::layer()
        .fmt_fields(Fields)
        .event_format(Line)
        .with_writer(std::io::stderr);
    let registry = registry().with(EnvFilter::new("info")).with(lines);
    Dispatch::new(registry.with(ringmark::tracing::layer()))
}

static OF_CLIENT: LazyLock<Dispatch> = LazyLock::new(registry_with_lines);

/// In a request.
pub(crate) fn report(number: usize) {
    many(number);
    let there = |bit: usize| (number >> bit & 1 == 1).then_some(number);
    let text = number.is_multiple_of(3).then_some("a text");
    info!(
        number,
        o0 = there(0),
        o1 = there(1),
        o2 = there(2),
        o3 = there(3),
        o4 = there(4),
        text,
        "options"
    );
    let text = "y".repeat(700 * (number % 12));
    warn!(number, text, error = %"the reason", list = ?vec![number; 100], "long {text}");
    spans(number);
}

/// As many fields as an event has at most, its message among them.
fn many(number: usize) {
    info!(
        number,
        f02 = 2,
        f03 = 3,
        f04 = 4,
        f05 = 5,
        f06 = 6,
        f07 = 7,
        f08 = 8,
        f09 = 9,
        f10 = 10,
        f11 = 11,
        f12 = 12,
        f13 = 13,
        f14 = 14,
        f15 = 15,
        f16 = 16,
        f17 = 17,
        f18 = 18,
        f19 = 19,
        f20 = 20,
        f21 = 21,
        f22 = 22,
        f23 = 23,
        f24 = 24,
        f25 = 25,
        f26 = 26,
        f27 = 27,
        f28 = 28,
        f29 = 29.5,
        f30 = true,
        f31 = "last",
        "32"
    );
}

fn spans(number: usize) {
    let outer = info_span!("outer", number, late = Empty, other = Empty);
    tracing::record_all!(outer, other = "two", late = 7);
    let _in_outer = outer.enter();
    info!(number, "in outer");
    let root = info_span!(parent: None, "root", number, long = "z".repeat(2000));
    root.in_scope(|| {
        info!(number, "in root");
        info_span!("child", number).in_scope(|| info!(number, "in child"));
    });
    info!(parent: &root, number, "of root");
    info!(parent: None, number, "of none");
}

/// In a client, whose library has a subscriber of its own.
pub(crate) fn report_as_client(number: usize) {
    info_span!("client", number).in_scope(|| {
        tracing::dispatcher::with_default(&OF_CLIENT, || {
            let call = info_span!("client.call", number);
            call.in_scope(|| info!(number, "calling"));
        });
        info!(number, "called");
    });
}

/// The session's filter is switched while jobs are open and suspended.
pub(crate) async fn switch(session: &Session) {
    let set = |filter| {
        session
            .set_filter(filter)
            .unwrap_or_else(|error| panic!("{error}"))
    };
    for round in 0..10 {
        let kept = info_span!("kept", round, late = Empty);
        let job = async {
            info!(round, "in job");
            set("off");
            info!(target: "while_off", round, "in job");
            let ghost = info_span!("ghost", round);
            kept.record("late", 5);
            tokio::task::yield_now().await;
            set("trace");
            info!(round, "in job again");
            ghost.in_scope(|| info!(round, "in ghost"));
            kept.in_scope(|| info!(round, "in kept"));
        };
        job.instrument(info_span!("job", round)).await;
    }
}
