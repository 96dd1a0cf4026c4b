//! What a thread finds of its own events: all kinds of values, and nothing of other threads.
#![forbid(unsafe_code)]

use std::sync::Barrier;
use std::thread;

use ringmark::testing::{Mark, Recorded};
use ringmark::{async_span, counter, event, flow, span};

fn recorded(name: &str, fields: &[(&str, &str)]) -> Recorded {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Recorded {
        name: name.to_owned(),
        fields: fields.iter().map(pair).collect(),
    }
}

#[test]
fn values_are_as_they_were_given() {
    let mark = Mark::here().expect("a session");
    let absent: Option<u32> = None;
    event!(
        "numbers",
        small = -5_i8,
        wide = u128::MAX,
        real = 0.1_f32,
        yes = true,
        sign = 'ä'
    );
    event!(
        "texts",
        text = "a text",
        bytes = &[1_u8, 2][..],
        three = [1_u16, 2, 3]
    );
    event!("options", some = Some(7_u32), absent = absent);
    counter!("depth", 3_u64);
    flow!("job", 42_u64, step = "queued");
    drop(span!("outer", n = 1_u64));
    let wide = u128::MAX.to_string();
    let numbers = [
        ("small", "-5"),
        ("wide", &wide),
        ("real", "0.1"),
        ("yes", "true"),
        ("sign", "ä"),
    ];
    let texts = [
        ("text", "a text"),
        ("bytes", "[1, 2]"),
        ("three", "[1, 2, 3]"),
    ];
    let expected = [
        recorded("numbers", &numbers),
        recorded("texts", &texts),
        recorded("options", &[("some", "7")]),
        recorded("depth", &[("value", "3")]),
        recorded("job", &[("flow", "42"), ("step", "queued")]),
        recorded("outer", &[("n", "1")]),
    ];
    let events = mark.events();
    assert_eq!(events, expected);
    assert_eq!(events[2].field("absent"), None);
    let later = Mark::here().expect("the same session");
    assert_eq!(later.events(), []);
    drop(async_span!("over threads", n = 2_u64));
    let first = &later.events()[0];
    assert_eq!(
        (first.name.as_str(), first.field("n")),
        ("over threads", Some("2"))
    );
}

#[test]
fn other_threads_have_their_own() {
    let together = Barrier::new(4);
    thread::scope(|scope| {
        for number in 0..4_u64 {
            let together = &together;
            scope.spawn(move || {
                let mark = Mark::here().expect("a session");
                together.wait();
                // More than a page of the ring.
                for n in 0..5000 {
                    event!("mine", number, n);
                }
                together.wait();
                let events = mark.events();
                assert_eq!(events.len(), 5000);
                let number = number.to_string();
                for (n, event) in events.iter().enumerate() {
                    let n = n.to_string();
                    assert_eq!(*event, recorded("mine", &[("number", &number), ("n", &n)]));
                }
            });
        }
    });
}

#[test]
#[should_panic(expected = "events since the mark were overwritten")]
fn a_ring_that_is_too_small_says_so() {
    let mark = Mark::here().expect("a session");
    (0..50_000_u64).for_each(|n| event!("many", n));
    drop(mark.events());
}
