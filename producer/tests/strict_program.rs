//! A program that denies every warning of the compiler and the strict lints of clippy can use every
//! macro, under any name of the crate. Clippy checks this file as any other.
#![deny(warnings, clippy::all, clippy::pedantic)]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::shadow_unrelated,
    clippy::unwrap_used,
    elided_lifetimes_in_paths,
    let_underscore_drop,
    rust_2024_compatibility,
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    unused_lifetimes,
    unused_qualifications,
    unused_results
)]
#![forbid(unsafe_code)]

extern crate ringmark as renamed;

use renamed::client::Place;
use renamed::{Event, InSpan as _, Session};

/// A name that derived code could have for an item of its own.
const STATE: usize = 3;

type Maybe = Option<u16>;

#[derive(Event)]
#[repr(C)]
struct Typed {
    first: u32,
    ports: [u16; STATE],
    maybe: Maybe,
}

#[renamed::instrument(fields(number))]
fn instrumented(number: u32) -> bool {
    number > 1
}

#[renamed::instrument]
async fn instrumented_future(number: u32) -> bool {
    std::future::ready(number > 1).await
}

#[renamed::trace_fn]
fn traced(number: u32) -> bool {
    number > 1
}

fn emit_all(number: u32) {
    renamed::event!("plain");
    renamed::event!(level: Warn, target: "t", category: "c", "all", number, ?number, n.m = %number);
    renamed::event!("absent", maybe = None::<u8>, there = Some(number),);
    renamed::event_at!(renamed::ticks(), "at", number);
    renamed::counter!("counter", number);
    renamed::flow!("flow", number, step = "one",);
    {
        let _span = renamed::span!("span", number);
    }
    drop(std::future::ready(3).in_span(renamed::async_span!("async", number)));
    match number {
        0 => renamed::event!("arm"),
        _ => renamed::counter!("arm", 1),
    }
    renamed::emit(&Typed {
        first: number,
        ports: [1; STATE],
        maybe: None,
    });
}

#[test]
fn a_program_that_denies_every_lint_records() {
    assert!(renamed::start_from_env().is_none(), "RINGMARK is not set");
    let Ok(session) = Session::builder().keep(renamed::Keep::Never).start() else {
        unreachable!("a session starts");
    };
    emit_all(7);
    assert!(instrumented(7) && traced(7));
    drop(instrumented_future(7));
    // The span of the future that was never polled: made and closed.
    assert!(session.records() >= 11, "{} records", session.records());
}

#[test]
fn an_option_by_another_name_is_described_as_one() {
    let maybe = Typed::FIELDS.last().map(|field| field.place);
    assert_eq!(maybe, Some(Place::of::<Option<u16>>(10)));
    assert!(maybe.is_some_and(|place| place.optional));
}
