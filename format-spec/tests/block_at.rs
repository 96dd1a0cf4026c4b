//! Blocks found in bytes: what the writer makes is found again, and nothing else is.
#![cfg(feature = "codec")]

use proptest::prelude::*;
use ringmark_format::block::{BlockHeader, CONTENT_BYTES_MAX, PageState, codec, kind};
use ringmark_format::block_at::{self, BlockFault, Blocks};
use ringmark_format::codec::{crc32, header_crc, write};
use ringmark_format::{PageNumber, RingId, Uuid};
use zerocopy::{FromZeros, IntoBytes};

const SESSION: Uuid = Uuid([3; 16]);

/// One block of each kind that the writer makes, with its content as stored.
fn written() -> Vec<(u16, Vec<u8>, Vec<u8>)> {
    let content: Vec<u8> = (0..205).map(|n| n as u8).collect();
    let made = |kind, make: &dyn Fn(&mut Vec<u8>)| {
        let mut block = Vec::new();
        make(&mut block);
        (kind, block, content.clone())
    };
    let page = write::page_header(
        SESSION,
        RingId(1),
        PageNumber(9),
        205,
        4096,
        PageState::Sealed,
    );
    vec![
        made(kind::SESSION, &|out| {
            write::session(out, SESSION, &content).unwrap();
        }),
        made(kind::SCHEMA, &|out| {
            write::schema(out, SESSION, 7, &content).unwrap();
        }),
        made(kind::PAGE, &|out| {
            write::block(out, page, &content).unwrap()
        }),
        made(kind::COUNTERS, &|out| {
            write::counters(out, SESSION, &content).unwrap();
        }),
        made(kind::CONTAINER, &|out| {
            write::container(out, SESSION, codec::NONE, &content).unwrap();
        }),
    ]
}

/// The header with its CRC made right.
fn sealed(mut header: BlockHeader) -> BlockHeader {
    header.header_crc = header_crc(&header);
    header
}

#[test]
fn what_is_written_is_found_again() {
    let blocks = written();
    let dump: Vec<u8> = blocks
        .iter()
        .flat_map(|(_, block, _)| block.clone())
        .collect();
    let mut walk = Blocks::new(&dump);
    for (kind, block, content) in &blocks {
        let found = walk.next().expect("a block");
        assert_eq!((found.header.kind, found.bytes), (*kind, &block[..]));
        assert_eq!(found.content(), Ok(&content[..]));
        assert_eq!(found.header.whole_bytes(), block.len());
    }
    assert!(walk.next().is_none() && walk.rest().is_empty());
}

#[test]
fn a_packed_container_is_found_as_it_is_stored() {
    let (mut block, raw) = (Vec::new(), [7; 4096]);
    write::container(&mut block, SESSION, codec::LZ4, &raw).unwrap();
    let found = block_at::checked(&block).unwrap().expect("all of it");
    assert_eq!(found.header.raw_bytes, 4096);
    assert!(found.stored().len() < 4096);
}

#[test]
fn a_block_that_is_not_all_there_is_waited_for() {
    for (_, block, _) in written() {
        for cut in 0..block.len() {
            let front = &block[..cut];
            assert!(matches!(block_at::first(front), Ok(None)), "cut at {cut}");
            let header = block_at::header(front).expect("right so far");
            assert_eq!(header.is_some(), cut >= BlockHeader::BYTES, "cut at {cut}");
            assert_eq!(Blocks::new(front).count(), 0);
        }
    }
}

#[test]
fn no_bit_of_a_header_or_content_can_change() {
    let (_, block, content) = written().remove(2);
    for bit in 0..8 * (BlockHeader::BYTES + content.len()) {
        let mut changed = block.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let found = block_at::checked(&changed).err();
        match (bit / 8, found) {
            (0..4, Some(BlockFault::Magic { found })) => assert_eq!(found, changed[..4]),
            (4..64, Some(BlockFault::HeaderCrc { stored, computed })) => {
                assert_ne!(stored, computed);
            }
            (64.., Some(BlockFault::ContentCrc { stored, computed })) => {
                assert_eq!(
                    (stored, computed),
                    (crc32(&content), crc32(&changed[64..][..205]))
                );
            }
            (byte, found) => panic!("byte {byte}: {found:?}"),
        }
    }
}

#[test]
fn a_wrong_magic_is_found_by_its_first_byte() {
    for front in [&b"G"[..], b"RG", b"RMKA"] {
        let found = front.to_vec();
        let fault = block_at::header(front).unwrap_err();
        assert_eq!(fault, BlockFault::Magic { found });
        assert!(fault.to_string().ends_with("expected \"RMKB\""), "{fault}");
    }
}

#[test]
fn headers_that_contradict_themselves_are_refused_with_both_values() {
    let sound = write::header(kind::PAGE, SESSION);
    let fault = |header: BlockHeader| block_at::checked(sealed(header).as_bytes()).err();
    assert_eq!(fault(sound), None);
    let sizes = BlockHeader {
        stored_bytes: 256,
        raw_bytes: 4105,
        ..sound
    };
    let (stored, raw) = (256, 4105);
    assert_eq!(fault(sizes), Some(BlockFault::Sizes { stored, raw }));
    let (kind, most) = (kind::PAGE, CONTENT_BYTES_MAX);
    for found in [most + 1, u32::MAX] {
        for (stored_bytes, raw_bytes) in [(found, 0), (0, found), (found, found)] {
            let large = BlockHeader {
                stored_bytes,
                raw_bytes,
                ..sound
            };
            assert_eq!(
                fault(large),
                Some(BlockFault::TooLarge { kind, found, most })
            );
        }
    }
    let codec = codec::LZ4;
    let packed = BlockHeader { codec, ..sound };
    assert_eq!(fault(packed), Some(BlockFault::Codec { kind, codec }));
}

#[test]
fn a_caller_may_bound_the_size_further() {
    let header = BlockHeader {
        stored_bytes: 64,
        raw_bytes: 65,
        kind: 99,
        ..BlockHeader::new_zeroed()
    };
    assert_eq!(block_at::check_size(&header, 65), Ok(()));
    let too_large = BlockFault::TooLarge {
        kind: 99,
        found: 65,
        most: 64,
    };
    assert_eq!(block_at::check_size(&header, 64), Err(too_large));
}

proptest! {
    #[test]
    fn any_bytes_are_a_block_or_a_fault_or_too_few(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..400),
        is_sealed in any::<bool>(),
        stored in 0u32..400,
    ) {
        if is_sealed && bytes.len() >= BlockHeader::BYTES {
            bytes[..4].copy_from_slice(b"RMKB");
            bytes[48..52].copy_from_slice(&stored.to_le_bytes());
            let crc = crc32(&bytes[..60]);
            bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        }
        let mut walk = Blocks::new(&bytes);
        let whole: usize = walk.by_ref().map(|block| block.bytes.len()).sum();
        prop_assert_eq!(whole + walk.rest().len(), bytes.len());
        if let Ok(Some(block)) = block_at::first(&bytes) {
            prop_assert_eq!(block.stored().len(), block.header.stored_bytes as usize);
        }
        let _ = block_at::checked(&bytes);
    }
}
