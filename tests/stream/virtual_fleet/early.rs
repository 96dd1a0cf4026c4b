//! A planted fault of collectors: the last words of a session are visible before the pages that come first.

use ringmark_decoder::store::{FooterEntry, SegmentFooter, raw_object};
use ringmark_format::Uuid;
use ringmark_format::block_at::Blocks;

/// A segment with the last words alone.
pub(crate) fn object(last: &[u8], life: u64, connection: u64) -> (String, Vec<u8>) {
    let block = Blocks::new(last).next().expect("COUNTERS");
    let session = Uuid(block.header.session);
    let entry = FooterEntry {
        session,
        host: format!("host-{}", session.0[0]).into_bytes(),
        service: Vec::new(),
        schema_bytes: 0,
        epoch: 1,
        bytes: last.len() as u32,
        index: None,
    };
    let footer = SegmentFooter {
        segment_bytes: last.len() as u64,
        sessions: vec![entry],
        is_grouped: true,
    };
    let collector = Uuid((u128::from(life) << 8 | 4).to_be_bytes());
    let name = raw_object("2026-11-26-19", collector, connection);
    (name, [last, &footer.block()].concat())
}
