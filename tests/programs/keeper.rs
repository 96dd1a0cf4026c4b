//! A traced program that knows a secret: the first line of its input. It hands it to everything that
//! is traced and never declares it; the second line, which is none, it records. It ends with its input.

use std::hint::black_box;
use std::io::BufRead;

use ringmark::{Event, event, instrument, redact, span};

/// A record whose fields are left out, or described and never recorded.
#[derive(Event)]
#[repr(C)]
#[event(name = "keeper.login")]
struct Login {
    #[event(redact)]
    token: u64,
    #[event(skip)]
    session: u64,
    status: u64,
}

#[instrument(fields(length = secret.len()))]
fn undeclared(secret: &str, copy: String) -> usize {
    black_box(secret.len() + copy.len())
}

#[instrument(skip(secret), fields(redacted = redact(&secret)))]
fn skipped(secret: String) -> String {
    secret
}

#[tracing::instrument(skip(secret))]
fn bridged(secret: &str, shown: usize) -> usize {
    tracing::info!(length = secret.len(), "no secret here");
    black_box(shown)
}

#[tracing::instrument(skip_all)]
fn bridged_without(secret: &str) -> usize {
    black_box(secret.len())
}

/// The first eight bytes, as a number that has them in memory.
fn as_number(text: &str) -> u64 {
    let first = text.as_bytes().first_chunk().expect("eight bytes");
    u64::from_ne_bytes(*first)
}

fn main() {
    let mut lines = std::io::stdin().lock().lines();
    let mut line = || lines.next().and_then(Result::ok);
    let (secret, shown) = (line().expect("a secret"), line().expect("a text"));
    let _ = ringmark::tracing::init();
    ringmark::start_from_env();
    for round in 0..50_u64 {
        undeclared(&secret, secret.clone());
        skipped(secret.clone());
        bridged(&secret, 1);
        bridged_without(&secret);
        event!("keeper.redacted", secret = redact(&secret), round = round);
        // Its type is off: the argument is not even looked at.
        event!(level: Trace, "keeper.off", secret = secret.as_str());
        let _span = span!(
            "keeper.span",
            round = round,
            secret = redact(secret.as_str())
        );
        if let Some(place) = ringmark::reserve::<Login>() {
            let login = Login {
                token: as_number(&secret),
                session: as_number(&secret),
                status: round,
            };
            place.write(&login).commit();
        }
        event!("keeper.shown", text = shown.as_str());
    }
    println!("ready");
    while line().is_some() {}
}
