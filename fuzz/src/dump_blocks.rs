//! A dump from outside: read, checked, counted, filtered, shown as text and as JSON.

use ringmark_decoder::{Counted, Dump, DumpBuilder, Filter, JsonWriter, Output, Stats, TextWriter};

use crate::repair::repaired;

/// Reads the input as it is, and with its checksums made right.
pub fn run(input: &[u8]) {
    decode(input);
    let outside = repaired(input, false);
    decode(&outside);
    let inside = repaired(input, true);
    if inside != outside {
        decode(&inside);
    }
}

/// Does everything that can be done with a dump.
pub fn decode(bytes: &[u8]) {
    let mut builder = DumpBuilder::new();
    if let Err(damage) = builder.read("input", bytes) {
        assert!(!damage.to_string().is_empty());
    }
    let dump = builder.finish();
    let events = show(&dump);
    let sum = dump.verify();
    assert_eq!(sum.events, events, "verify counts what is shown");
    assert!(sum.to_json().starts_with('{') && sum.to_string().ends_with('\n'));
    let _ = Stats::collect(dump.events());
    let _ = dump.figures(Counted::default());
    if let Some(filter) = filter() {
        let passed = dump.events().filter(|item| filter.passes_item(item));
        assert!(passed.count() <= dump.events().count());
    }
    let _ = dump.closest_names("request.done", 3);
}

/// Shows every item; returns the number of events.
fn show(dump: &Dump) -> u64 {
    let (mut text, mut json) = (TextWriter::new(), JsonWriter::new());
    let (mut lines, mut events) = (Vec::new(), 0);
    for item in dump.events() {
        events += u64::from(matches!(item, Output::Event(_)));
        lines.clear();
        text.write(&item, &mut lines);
        check_line(&lines);
        lines.clear();
        json.write(&item, &mut lines);
        check_line(&lines);
    }
    events
}

/// One line of UTF-8 that cannot drive a terminal.
fn check_line(line: &[u8]) {
    let (end, line) = line.split_last().expect("a line");
    assert_eq!(*end, b'\n');
    assert!(!line.iter().any(|b| *b < b' ' || *b == 0x7f));
    assert!(std::str::from_utf8(line).is_ok());
}

fn filter() -> Option<Filter> {
    let mut filter = Filter::new();
    filter.name("*t*").level("debug").ok()?;
    filter.condition("n>5").ok()?;
    Some(filter)
}
