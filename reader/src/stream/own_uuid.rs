//! Sessions that go on under another uuid: their collector knows the first one as that of another host.
//!
//! A host that was given another name has sessions that began under the old one. The collector refuses them, as
//! it refuses those of a stranger. So they go on under a uuid made of the old one and the new name: the same
//! one in every streamer, whether the ring file is still there or only pages on disk. What was acknowledged
//! under the old uuid is counted there.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ringmark_format::Uuid;
use ringmark_format::block_at::Blocks;
use ringmark_format::codec::header_crc;
use ringmark_format::progress::{GoneRange, cause};
use ringmark_format::session::SessionHeader;
use zerocopy::{FromBytes, IntoBytes};

/// FNV-1a of 128 bits: the start, and the factor.
const FNV: (u128, u128) = (0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, (1 << 88) + 0x13b);

/// The uuid under which a session of this one goes on at a host of this name.
pub(super) fn of(session: Uuid, host: &str) -> Uuid {
    let bytes = session.0.iter().chain(host.as_bytes());
    let hash = bytes.fold(FNV.0, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(FNV.1)
    });
    Uuid(hash.to_be_bytes())
}

/// The blocks of a session under this uuid.
pub(super) fn of_blocks(blocks: &[u8], session: Uuid) -> Cow<'_, [u8]> {
    if Blocks::new(blocks).all(|block| block.header.session == session.0) {
        return Cow::Borrowed(blocks);
    }
    let mut changed = Vec::with_capacity(blocks.len());
    for block in Blocks::new(blocks) {
        let mut header = block.header;
        header.session = session.0;
        header.header_crc = header_crc(&header);
        changed.extend_from_slice(header.as_bytes());
        changed.extend_from_slice(&block.bytes[header.as_bytes().len()..]);
    }
    Cow::Owned(changed)
}

/// The content of a SESSION block under this uuid.
pub(super) fn of_content(content: &[u8], session: Uuid) -> Cow<'_, [u8]> {
    match SessionHeader::read_from_prefix(content) {
        Ok((mut header, rest)) if header.session != session.0 => {
            header.session = session.0;
            Cow::Owned([header.as_bytes(), rest].concat())
        }
        _ => Cow::Borrowed(content),
    }
}

/// The ranges that say what was acknowledged under another uuid: the pages before these.
pub(super) fn elsewhere(acked: &BTreeMap<u32, u64>) -> Vec<GoneRange> {
    let range = |(&slot, &to): (&u32, &u64)| GoneRange {
        slot,
        cause: cause::ELSEWHERE,
        from: 0,
        to,
        events: 0,
    };
    acked
        .iter()
        .map(range)
        .filter(|range| range.to > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use ringmark_format::block::kind;
    use ringmark_format::block_at;
    use ringmark_format::codec::write;

    use super::*;

    const OLD: Uuid = Uuid([1; 16]);

    #[test]
    fn each_host_has_a_uuid_of_its_own_and_keeps_it() {
        let names = ["", "web-1", "web-2"].map(|host| of(OLD, host));
        assert_eq!(of(OLD, "web-1"), names[1]);
        let all: std::collections::HashSet<_> = names.iter().chain(&[OLD]).collect();
        assert_eq!(all.len(), 4);
        assert_ne!(of(Uuid([2; 16]), "web-1"), names[1]);
    }

    #[test]
    fn blocks_are_whole_under_another_uuid() {
        let mut blocks = Vec::new();
        for content in [&b"first"[..], b"second one"] {
            write::block(&mut blocks, write::header(kind::PAGE, OLD), content).unwrap();
        }
        assert!(matches!(of_blocks(&blocks, OLD), Cow::Borrowed(_)));
        let new = of(OLD, "web-1");
        let changed = of_blocks(&blocks, new);
        let first = block_at::checked(&changed).unwrap().unwrap();
        assert_eq!(
            (first.header.session, first.stored()),
            (new.0, &b"first"[..])
        );
        assert_eq!(&*of_blocks(&changed, OLD), &blocks[..]);
    }
}
