//! Events and spans of `tracing` under registries that have two layers each: `fmt`, which writes its lines to
//! standard output, and Ringmark's. Each line has the level, the target, the spans with their fields, the fields.
#![forbid(unsafe_code)]

mod log_lines;

use ringmark::Session;
use tracing::field::Empty;
use tracing::{Dispatch, Span, debug, info, info_span, warn};
use tracing_subscriber::layer::SubscriberExt;

use log_lines::{Fields, Line};

fn registry() -> Dispatch {
    let lines = tracing_subscriber::fmt::layer()
        .fmt_fields(Fields)
        .event_format(Line);
    let registry = tracing_subscriber::registry().with(lines);
    Dispatch::new(registry.with(ringmark::tracing::layer()))
}

fn fields() {
    warn!(
        unsigned = u64::MAX,
        signed = -5,
        real = 1.5,
        yes = true,
        text = "text",
        "kinds"
    );
    info!(debug = ?Some(3), display = %4.25, wide = u64::MAX, "said {}", "it");
    info!("no fields");
    info!(a = 1);
    for bits in 0..64_u64 {
        let there = |bit: u64| (bits >> bit & 1 == 1).then_some(bits);
        let text = (bits % 3 == 0).then_some("a text");
        info!(
            o0 = there(0),
            o1 = there(1),
            o2 = there(2),
            o3 = there(3),
            o4 = there(4),
            o5 = there(5),
            text,
            "options"
        );
    }
}

fn many_and_long() {
    info!(
        f01 = 1,
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
        f29 = 29,
        f30 = 30,
        f31 = "last",
        "32"
    );
    for length in [100, 3000, 5000, 20_000] {
        let text = "y".repeat(length);
        info!(text, error = %"the reason", list = ?vec![1; length / 4], code = 7, "long {text}");
    }
}

fn spans() {
    let outer = info_span!("outer", a = 1, late = Empty, other = Empty, last = Empty);
    tracing::record_all!(outer, other = "two", late = 7);
    tracing::record_all!(outer, last = 3, late = 8);
    let _in_outer = outer.enter();
    info!("in outer");
    let root = info_span!(parent: None, "root", long = "z".repeat(4000));
    root.in_scope(|| {
        info!("in root");
        info_span!("child").in_scope(|| info!("in child"));
    });
    let child = info_span!(parent: &root, "child.of.root", x = 1.5);
    info!(parent: &child, "of child");
    info!(parent: None, "of none");
    child.in_scope(|| {
        info!(parent: &outer, "of outer");
        debug!("in child of root");
    });
    for depth in 0..3 {
        let wide = info_span!("wide", depth, text = (depth == 1).then_some("there"));
        wide.in_scope(|| info!("in wide"));
    }
}

/// A client library with a subscriber of its own.
fn two_registries() {
    let other = registry();
    let in_other = |work: fn()| tracing::dispatcher::with_default(&other, work);
    let request = info_span!("request", id = 1);
    let in_request = request.enter();
    let call = tracing::dispatcher::with_default(&other, || info_span!("client.call"));
    let in_call = call.enter();
    info!("while the client is in a call");
    info_span!("query").in_scope(|| info!("querying"));
    in_other(|| info!("calling"));
    drop(in_call);
    for _ in 0..3 {
        in_other(|| info_span!("client.again").in_scope(|| info!("calling again")));
    }
    info!("answer");
    drop(in_request);
    drop((request, call));
    info!("after the request");
}

fn switched(session: &Session) {
    let set = |filter| {
        session
            .set_filter(filter)
            .unwrap_or_else(|error| panic!("{error}"))
    };
    for _ in 0..3 {
        let kept = info_span!("kept", late = Empty);
        let [first, second] = [(); 2].map(|()| info_span!("job"));
        let in_first = first.enter();
        info!("in job");
        set("off");
        info!(target: "while_off", "in job");
        let in_second = second.enter();
        let ghost = info_span!(parent: None, "ghost");
        kept.record("late", 5);
        drop((in_second, in_first));
        drop((second, first));
        set("trace");
        info!("outside");
        ghost.in_scope(|| info!("in ghost"));
        kept.in_scope(|| info!("in kept"));
        assert!(Span::current().is_none());
    }
}

fn main() {
    let session = ringmark::start_from_env().expect("a session");
    tracing::dispatcher::with_default(&registry(), || {
        fields();
        many_and_long();
        spans();
        two_registries();
        switched(&session);
    });
}
