//! Promise: a bit that turns in a store costs the block that it stands in. What follows stays and is read; a page that
//! may be gone is asked for again; people are told, and only a torn end is cut off.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringmark_collector::Figures;
use ringmark_collector::store::{Now, Store};
use ringmark_format::block::{BlockHeader, PageState, kind};
use ringmark_format::codec::write;
use ringmark_format::page::PageHeader;
use ringmark_format::stream::{self, Resume, ResumeSlot};
use ringmark_format::{PageNumber, RingId, Uuid};
use ringmark_reader::Codec;
use ringmark_reader::stream::Address;
use ringmark_tests::collecting::{Collecting, options, segments, stream as streamed};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::open_store::{OpenStore, SESSION, StoredBlock, blocks, flip, pages};
use ringmark_tests::random::Random;
use ringmark_tests::scripted_streamer::{ScriptedStreamer, block};
use ringmark_tests::{binary, is_long, run};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

const EMIT: &str = ringmark_tests::program!("emit");
const HOST: &str = "here";

/// What the next collector says is there, to a streamer that says no more.
fn resumed(socket: &Path, session: &StoredBlock) -> BTreeMap<u32, u64> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    runtime.block_on(async {
        let mut peer = ScriptedStreamer::greeted(socket, HOST).await.unwrap();
        let uuid = Uuid(session.header.session);
        let announced = block(kind::SESSION, uuid, &session.content);
        peer.send(&announced).await.unwrap();
        let resume = peer.hear_of(stream::kind::RESUME).await.unwrap();
        let mut rest = &resume[Resume::BYTES..];
        let mut slots = BTreeMap::new();
        while let Ok((slot, after)) = ResumeSlot::read_from_prefix(rest) {
            let _ = slots.insert(slot.slot, slot.next_page);
            rest = after;
        }
        slots
    })
}

fn verified(fixture: &Fixture, store: &Path, code: i32) -> serde_json::Value {
    let mut command = fixture.command(binary::path());
    let finished = run(command.args(["verify", "--json"]).arg(store), SOON).unwrap();
    let text = finished.expect_code(code).stdout_text();
    serde_json::from_str(&text).unwrap()
}

/// 2,000 pages are acknowledged, the collector ends, a bit turns at a tenth of them, the session is announced again.
#[test]
fn a_bit_that_turned_costs_its_page() {
    let fixture = Fixture::new("bit");
    let ringmark = "mode=discard,ring=32M,page=4K,session=64M,keep=always";
    let program = fixture.start(EMIT, ringmark, "1 340000");
    let _ = program.finish(SOON).expect_code(0);
    let (socket, store) = (fixture.path("socket"), fixture.path("store"));
    let start = || Collecting::with(options(Address::Unix(socket.clone()), &store));
    let collecting = start();
    let _ = streamed(&fixture.ring_file(), &socket, Codec::None);
    drop(collecting);
    let whole = verified(&fixture, &store, 0);
    let number = |of: &serde_json::Value, name: &str| of[name].as_u64().unwrap();
    let pages = number(&whole, "pages");
    assert!(
        number(&whole, "events") == 340_000 && pages > 2000,
        "{whole}"
    );

    let segment = segments(&store).remove(0);
    let bytes = fs::metadata(&segment).unwrap().len();
    let (all, _) = blocks(&segment);
    let is_page = |found: &&StoredBlock| found.header.kind == kind::PAGE && found.at > bytes / 10;
    let hit = all.iter().find(is_page).unwrap();
    flip(&segment, hit.at + 1000, 0x10);
    let damaged = fs::read(&segment).unwrap();
    let _ = fs::remove_file(&socket);
    let mut collecting = start();
    let next = resumed(&socket, &all[0]);
    // A streamer that still had it would send it.
    assert_eq!(next.values().copied().max(), Some(hit.header.page_number));
    assert!(
        fs::read(&segment).unwrap() == damaged,
        "the file is another one"
    );
    let told = collecting.notice();
    assert!(
        told.contains(segment.to_str().unwrap()) && told.contains("crc32"),
        "{told}"
    );
    assert_eq!(collecting.figure("damaged_segments_total"), 1);
    // Announced again, it is told and counted once.
    let _ = resumed(&socket, &all[0]);
    assert_eq!(collecting.figure("damaged_segments_total"), 1);
    drop(collecting);

    let found = verified(&fixture, &store, 1);
    assert_eq!(number(&found, "pages"), pages - 1);
    let (header, _) = PageHeader::read_from_prefix(&hit.content).unwrap();
    let after = all.iter().skip_while(|found| found.at <= hit.at);
    let next = after
        .filter(|found| found.header.kind == kind::PAGE)
        .map(|found| PageHeader::read_from_prefix(&found.content).unwrap().0);
    let of_page = next.map(|next| next.first_event).next().unwrap() - header.first_event;
    assert_eq!(number(&found, "events"), 340_000 - of_page);
    assert_eq!(
        (number(&found, "missing"), number(&found, "damaged")),
        (of_page, 1)
    );
}

/// A page of one of two slots, that has nothing to do with any other one.
fn page(slot: u32, number: u64, random: &mut Random) -> Vec<u8> {
    let ring = u64::from(slot) + 1;
    let header = PageHeader {
        generation: number + 1,
        ring_id: ring,
        slot,
        ..PageHeader::new_zeroed()
    };
    let bytes = 512 + 8 * random.below(200) as usize;
    let mut content = header.as_bytes().to_vec();
    content.resize_with(bytes, || random.below(256) as u8);
    let page = PageNumber(number);
    let header = write::page_header(
        SESSION,
        RingId(ring),
        page,
        bytes as u32,
        4096,
        PageState::Sealed,
    );
    let mut block = Vec::new();
    write::block(&mut block, header, &content).unwrap();
    block
}

/// Pages of one slot.
fn of_slot(pages: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    let mut random = Random::seeded();
    pages.map(|number| page(0, number, &mut random)).collect()
}

/// Flips a bit in a page of the newest segment.
fn spoil(root: &Path, number: u64) -> PathBuf {
    let path = segments(root).pop().unwrap();
    let (all, _) = blocks(&path);
    let is_it = |found: &&StoredBlock| {
        found.header.kind == kind::PAGE && found.header.page_number == number
    };
    flip(&path, all.iter().find(is_it).unwrap().at + 300, 1);
    path
}

/// A streamer that still has a page that may be gone is asked for it, until it came or others came in its place.
#[test]
fn what_a_streamer_still_has_comes_again() {
    let fixture = Fixture::new("again");
    let root = fixture.path("store");
    let sent = of_slot(0..40);
    assert_eq!(OpenStore::at(&root, 1 << 20).add(&sent[..30]), 30);
    let segment = spoil(&root, 10);
    let damaged = fs::read(&segment).unwrap();
    // Nothing comes before the collector is killed again, and again.
    for _ in 0..2 {
        assert_eq!(OpenStore::at(&root, 1 << 20).next().1[&0], 10);
    }
    let opened = OpenStore::at(&root, 1 << 20);
    assert_eq!(
        opened.add(&sent[10..35]),
        1 + 5,
        "one that is gone, and new ones"
    );
    assert_eq!(opened.next().1[&0], 35);
    let all: Vec<_> = opened.pages().into_iter().collect();
    assert_eq!(all, (0..35).map(|n| ((0, n), 1)).collect::<Vec<_>>());
    drop(opened);
    let opened = OpenStore::at(&root, 1 << 20);
    assert_eq!(
        opened.next().1[&0],
        35,
        "it came: it is not asked for any more"
    );
    assert_eq!(opened.figure("damaged_segments_total"), 1);
    assert!(fs::read(&segment).unwrap() == damaged);
    drop(opened);

    // Released long ago: what comes in its place ends the question.
    let segment = spoil(&root, 31);
    assert_eq!(OpenStore::at(&root, 1 << 20).next().1[&0], 31);
    for number in [36, 37] {
        assert_eq!(OpenStore::at(&root, 1).add(&sent[number..=number]), 1);
    }
    for _ in 0..2 {
        let opened = OpenStore::at(&root, 1 << 20);
        assert_eq!(opened.next().1[&0], 38);
        drop(opened);
        let opened = OpenStore::at(&root, 1 << 20);
        assert!(opened.store.tidy(Now::read()).is_empty());
    }
    assert!(!segment.with_extension("idx").exists());
}

/// One way in which a file may be hurt.
fn hurt(path: &Path, random: &mut Random) {
    let bytes = fs::metadata(path).unwrap().len();
    if bytes == 0 {
        return;
    }
    let at = random.below(bytes);
    match random.below(6) {
        // Zeros where a sector was not written.
        0 => {
            let file = OpenOptions::new().write(true).open(path).unwrap();
            let sector = at / 512 * 512;
            let zeros = vec![0; (bytes - sector).min(512) as usize];
            file.write_all_at(&zeros, sector).unwrap();
        }
        1 => OpenOptions::new()
            .write(true)
            .open(path)
            .unwrap()
            .set_len(at)
            .unwrap(),
        _ => flip(path, at, 1 << random.below(8)),
    }
}

/// What was sent in order: schema, then pages of two slots.
fn conversation(random: &mut Random) -> Vec<Vec<u8>> {
    let (mut sent, mut schema, mut next) = (Vec::new(), 0, [0; 2]);
    for _ in 0..40 {
        if random.below(8) == 0 {
            let mut piece = Vec::new();
            write::schema(&mut piece, SESSION, schema, &[schema as u8; 64]).unwrap();
            schema += 64;
            sent.push(piece);
        }
        let slot = random.below(2) as u32;
        sent.push(page(slot, next[slot as usize], random));
        // Now and then there is a gap: pages that are gone.
        next[slot as usize] += 1 + random.below(8) / 7;
    }
    sent
}

/// Damage of any kind in the newest segment: what is valid stays, nothing is claimed that is not there, and with what
/// the streamer has all is there once.
#[test]
fn damage_of_any_kind_costs_what_it_hit() {
    let mut random = Random::seeded();
    let rounds = if is_long() { 20_000 } else { 300 };
    let (mut kept, mut cut) = (0, 0);
    for round in 0..rounds {
        let fixture = Fixture::new("any");
        let root = fixture.path("store");
        let sent = conversation(&mut random);
        let half = random.below(sent.len() as u64) as usize + 1;
        let _ = OpenStore::at(&root, 24 << 10).add(&sent[..half]);
        let mut found = segments(&root);
        found.sort_by_key(|path| path.to_str().map(|name| (name.len(), name.to_owned())));
        let Some(newest) = found.pop() else { continue };
        for _ in 0..=random.below(2) {
            hurt(&newest, &mut random);
        }
        let (hurt, valid) = (fs::read(&newest).unwrap(), pages(&root));
        let opened = OpenStore::at(&root, 24 << 10);
        let (_, next) = opened.next();
        let there = opened.pages();
        assert!(
            valid.keys().all(|page| there.contains_key(page)),
            "{round}: {valid:?} {there:?}"
        );
        let claimed = |slot: u32, number: u64| next.get(&slot).is_some_and(|next| number < *next);
        let names = sent.iter().filter_map(|block| {
            let (header, _) = BlockHeader::read_from_prefix(block).unwrap();
            (header.kind == kind::PAGE)
                .then_some(((header.ring_id as u32).wrapping_sub(1), header.page_number))
        });
        let names: Vec<_> = names.collect();
        let wrong = names.iter().find(|(slot, number)| {
            claimed(*slot, *number) && !there.contains_key(&(*slot, *number))
        });
        assert_eq!(wrong, None, "round {round}: said to be there");
        let now = fs::read(&newest).unwrap_or_default();
        assert!(hurt.starts_with(&now), "round {round}: written to");
        *(if now == hurt { &mut kept } else { &mut cut }) += 1;
        let _ = opened.add(&sent);
        let all = opened.pages();
        assert!(
            names.iter().all(|name| all.get(name) == Some(&1)),
            "{round}: {all:?}"
        );
        let damaged = blocks(&newest_or(&newest, &opened.root)).1;
        let counted = opened.figure("damaged_segments_total");
        assert!(damaged == 0 || counted == 1, "{round}: {damaged} {counted}");
    }
    println!("{rounds} rounds: {kept} files were kept, {cut} cut");
    assert!(kept > 0 && cut > 0);
}

/// The segment, if it is still there.
fn newest_or(newest: &Path, root: &Path) -> PathBuf {
    if newest.exists() {
        newest.to_owned()
    } else {
        segments(root).remove(0)
    }
}

/// Copies of what was cut off are kept beside each other, counted by `verify`, and go with their segment, counted.
#[test]
fn what_is_cut_off_is_kept() {
    let fixture = Fixture::new("copies");
    let root = fixture.path("store");
    let sent = of_slot(0..20);
    assert_eq!(OpenStore::at(&root, 1 << 20).add(&sent[..10]), 10);
    let mut tails = Vec::new();
    for last in [9, 8] {
        let segment = spoil(&root, last);
        let (all, _) = blocks(&segment);
        let end = all
            .last()
            .map(|found| found.at + sent[all_page(found)].len() as u64);
        tails.push(fs::read(&segment).unwrap()[end.unwrap() as usize..].to_vec());
        let opened = OpenStore::at(&root, 1 << 20);
        assert_eq!(opened.next().1[&0], last);
        assert_eq!(opened.figure("damaged_segments_total"), 1);
        assert_eq!(fs::metadata(&segment).unwrap().len(), end.unwrap());
    }
    let copies = |root: &Path| {
        let directory = segments(root).remove(0).parent().unwrap().to_owned();
        let files = fs::read_dir(directory)
            .unwrap()
            .map(|file| file.unwrap().path());
        let mut found: Vec<_> = files
            .filter(|p| p.extension().is_some_and(|e| e == "damaged"))
            .collect();
        found.sort();
        found
    };
    let mut kept: Vec<_> = copies(&root)
        .iter()
        .map(|path| fs::read(path).unwrap())
        .collect();
    kept.sort();
    tails.sort();
    assert!(kept == tails, "{} copies", kept.len());
    // What stands in these pages is no events: damage of another kind.
    let found = verified(&fixture, &root, 1);
    assert_eq!(found["cut_off"], 2, "{found}");

    let opened = OpenStore::at(&root, 1 << 20);
    assert_eq!(opened.add(&sent), 12);
    let directory = segments(&root).remove(0).parent().unwrap().to_owned();
    drop(opened);
    let mut with = options(Address::Unix(fixture.path("socket")), &root).store;
    with.retention.bytes = Some(0);
    let figures = Arc::new(Figures::default());
    let store = Store::open(with, figures.clone()).unwrap();
    assert!(store.tidy(Now::read()).is_empty());
    let left: Vec<_> = fs::read_dir(directory).into_iter().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    let values = figures.values();
    let removed = values
        .iter()
        .find(|(name, _)| *name == "damaged_removed_total");
    assert_eq!(removed.unwrap().1 as u64, 2);
}

/// Number of the page that a block is.
fn all_page(found: &StoredBlock) -> usize {
    found.header.page_number as usize
}

/// A host that announced the session of another one keeps it while it is there, and not afterwards.
#[test]
fn a_session_that_was_announced_and_never_stored_is_free_again() {
    let fixture = Fixture::new("squatted");
    let open = OpenStore::at(&fixture.path("store"), 1 << 20);
    let session = |host| open.store.session(SESSION, host, &[0; 320]);
    let squatted = session("evil").unwrap();
    assert!(session("web-1").is_err());
    drop(squatted);
    let own = session("web-1").unwrap();
    assert!(session("evil").is_err());
    drop(own);
}
