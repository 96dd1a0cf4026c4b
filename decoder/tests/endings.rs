//! ENDING blocks: the end that counts of several, ends of kinds that are not known, short ones.

use ringmark_decoder::{Dump, DumpBuilder};
use ringmark_format::Uuid;
use ringmark_format::block::kind;
use ringmark_format::codec::write;
use ringmark_format::ending::{Ending, EndingBlock};
use zerocopy::IntoBytes;

const SESSION: Uuid = Uuid([7; 16]);

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
