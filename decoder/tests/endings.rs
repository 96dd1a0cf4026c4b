//! ENDING blocks: the end that counts of several, ends of kinds that are not known, short ones, panics before
//! an end.

use crate::common;

use common::{PageOf, SESSION, function_schema, schema, start};
use ringmark_decoder::{Dump, DumpBuilder};
use ringmark_format::attribute::{self, tag};
use ringmark_format::block::kind;
use ringmark_format::codec::write;
use ringmark_format::ending::{Ending, EndingBlock};
use ringmark_format::panics;
use ringmark_format::schema::{EventEntry, FieldEntry, Kind, Level, Shape, entry_kind};
use ringmark_format::session::Mode;
use zerocopy::IntoBytes;

fn decoded(blocks: &[u8]) -> Dump {
    let mut builder = DumpBuilder::new();
    builder.read("blocks", blocks).expect("blocks");
    builder.finish()
}

fn of(endings: &[Ending]) -> Option<Ending> {
    let mut blocks = Vec::new();
    for ending in endings {
        write::ending(&mut blocks, SESSION, *ending, 0).expect("a block");
    }
    decoded(&blocks).sessions[0].ending
}

#[test]
fn a_known_end_counts_before_one_that_is_not() {
    let (exit, segv) = (
        Ending::Exited(2),
        Ending::of_wait_status(11).expect("a signal"),
    );
    assert_eq!(of(&[exit]), Some(exit));
    assert_eq!(of(&[Ending::Gone]), Some(Ending::Gone));
    assert_eq!(of(&[Ending::Gone, exit, Ending::Untold]), Some(exit));
    assert_eq!(of(&[exit, segv]), Some(segv));
    assert_eq!(of(&[Ending::Gone, Ending::Untold]), Some(Ending::Untold));
}

#[test]
fn an_end_of_an_unknown_kind_is_none_and_a_short_block_is_damage() {
    let unknown = EndingBlock {
        how: 99,
        ..Ending::Closed.block()
    };
    let mut blocks = Vec::new();
    let header = write::header(kind::ENDING, SESSION);
    write::block(&mut blocks, header, unknown.as_bytes()).expect("a block");
    let dump = decoded(&blocks);
    assert_eq!(dump.sessions[0].ending, None);
    assert!(dump.endings().is_empty());
    let damage = dump.damage.len();
    write::block(&mut blocks, header, &unknown.as_bytes()[..16]).expect("a block");
    let dump = decoded(&blocks);
    assert_eq!(dump.damage.len(), damage + 1, "{:?}", dump.damage);
    let text = dump.damage.iter().map(ToString::to_string);
    assert!(
        text.into_iter().any(|t| t.contains("ENDING block")),
        "{:?}",
        dump.damage
    );
}

#[test]
fn verify_tells_the_ends_as_text_and_as_json() {
    let mut blocks = Vec::new();
    let killed = Ending::of_wait_status(0x8B).expect("a signal");
    write::ending(&mut blocks, SESSION, killed, 0).expect("a block");
    let found = decoded(&blocks).verify();
    let text = found.to_string();
    assert!(
        text.contains("ended: [0]: ended by SIGSEGV (core dumped)\n"),
        "{text}"
    );
    let json = found.to_json();
    let end =
        "\"endings\":[{\"how\":\"signal\",\"status\":null,\"signal\":\"SIGSEGV\",\"core\":true,";
    assert!(json.contains(end), "{json}");
}

/// A thread that records a panic at tick 1100, and an event some ticks later if it goes on; the process was
/// seen dead some ticks after the panic.
fn after_a_panic(ending: Ending, goes_on: Option<u32>, dead_after: u64) -> Dump {
    let field = |name: &str, kind: Kind, offset| {
        let entry = FieldEntry {
            kind: kind as u8,
            flags: 0,
            count: 0,
            offset,
            bytes: kind.fixed_bytes() as u32,
            reserved: 0,
        };
        let mut value = entry.as_bytes().to_vec();
        attribute::push(&mut value, tag::NAME, name.as_bytes());
        value
    };
    let line = field(panics::FIELDS[2], Kind::U64, 0);
    let fixed = EventEntry {
        level: Level::Error as u8,
        shape: Shape::Instant as u8,
        flags: 0,
        fixed_payload_bytes: 0,
    };
    let attributes = [
        (tag::NAME, panics::NAME.as_bytes()),
        (tag::CATEGORY, panics::CATEGORY.as_bytes()),
        (tag::FIELD, &line[..]),
    ];
    let panic = function_schema::entry(entry_kind::EVENT, 30, fixed.as_bytes(), &attributes);
    let mut blocks = start(Mode::Discard);
    write::schema(&mut blocks, SESSION, schema().len() as u64, &panic).expect("a block");
    let mut page = PageOf::new(0, 0);
    page.event(100, 30, &[4]);
    if let Some(ticks) = goes_on {
        page.event(100 + ticks, 16, &[1]);
    }
    page.close().write(true, &mut blocks);
    write::ending(&mut blocks, SESSION, ending, 1100 + dead_after).expect("a block");
    decoded(&blocks)
}

#[test]
fn a_caught_panic_is_no_cause_of_a_later_abort() {
    let abort = Ending::of_wait_status(6).expect("a signal");
    let is_named = |goes_on, dead_after| {
        let dump = after_a_panic(abort, goes_on, dead_after);
        let ends = dump.endings();
        assert_eq!(ends.len(), 1);
        ends[0].panic.is_some()
    };
    assert!(is_named(None, 3_000_000), "seen dead 3 ms later");
    assert!(!is_named(None, 5_000_000_000), "it lived 5 s longer");
    assert!(!is_named(Some(50), 3_000_000), "its thread went on");
    // The status is that of a panic, whenever it was seen.
    let dump = after_a_panic(Ending::Exited(101), None, 5_000_000_000);
    assert!(dump.endings()[0].panic.is_some());
}
