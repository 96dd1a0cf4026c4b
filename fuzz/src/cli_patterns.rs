//! Text of the command line, of the environment and of operators: filters, patterns, sizes, times, options, requests.

use ringmark::Options;
use ringmark_decoder::{Dump, DumpBuilder, Filter, parse_timestamp};
use ringmark_format::session_text::SessionRequest;

#[path = "../../console/src/units.rs"]
#[allow(dead_code, reason = "the command line uses all of it")]
mod units;

/// A dump with events for the filters to look at.
const DUMP: &[u8] = include_bytes!("../../format-spec/vectors/v1/kinds.rmk");

/// The first byte says what the rest is.
pub fn run(input: &[u8]) {
    let Some((what, text)) = input.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    requests(text);
    match what % 4 {
        0 => options(text),
        1 => directives(text),
        2 => filters(text),
        _ => numbers(text),
    }
}

/// A request to a session.
fn requests(text: &str) {
    if let Ok(Some(request)) = SessionRequest::parse(text) {
        assert!(SessionRequest::parse(&request.to_string()).is_ok());
    }
}

/// The value of `RINGMARK`.
fn options(text: &str) {
    match Options::parse(text) {
        Ok(Some(options)) => assert!(options.check().is_ok()),
        Ok(None) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// The value of `RINGMARK_FILTER`.
fn directives(text: &str) {
    if let Err(error) = Options::check_filter(text) {
        assert!(!error.to_string().is_empty());
    }
}

/// Every option of a filter, and what passes it.
fn filters(text: &str) {
    let mut filter = Filter::new();
    let understood = [
        filter.from(text).is_ok(),
        filter.to(text).is_ok(),
        filter.tid(text).is_ok(),
        filter.level(text).is_ok(),
        filter.condition(text).is_ok(),
    ];
    assert_eq!(filter.is_empty(), understood == [false; 5]);
    let mut named = Filter::new();
    named.name(text);
    let dump = dump();
    for filter in [filter, named] {
        let _ = dump.events().filter(|i| filter.passes_item(i)).count();
    }
    assert!(dump.closest_names(text, 3).len() <= 3);
}

fn dump() -> Dump {
    let mut builder = DumpBuilder::new();
    let _ = builder.read("kinds", DUMP);
    builder.finish()
}

/// Sizes, durations and times; what is shown of a size can be read again.
fn numbers(text: &str) {
    if let Ok(bytes) = units::parse_size(text) {
        assert!(bytes > 0);
        assert!(units::parse_size(&units::size(bytes)).is_ok());
    }
    if let Ok(duration) = units::parse_duration(text) {
        assert!(!duration.is_zero());
    }
    if let Some(ns) = parse_timestamp(text) {
        let mut stamper = ringmark_decoder::Stamper::default();
        let again = std::str::from_utf8(stamper.stamp(ns)).ok();
        assert_eq!(again.and_then(parse_timestamp), Some(ns));
    }
}
