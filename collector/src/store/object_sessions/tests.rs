//! A place for objects that fails as real ones do: before a put, or after it, without an answer.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ringmark_decoder::store::{SegmentFooter, is_raw, schema_session};
use ringmark_decoder::{BlockReader, Item};
use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, PageState, SEALED, kind};
use ringmark_format::codec::write;
use ringmark_format::counters::{CountersHeader, FINAL};
use ringmark_format::page::PageHeader;
use ringmark_format::session::SessionHeader;
use ringmark_format::stream::ack_level;
use zerocopy::{FromZeros, IntoBytes};

use super::*;
use crate::mutex::lock;
use crate::store::{DirectoryOptions, Retention, SyncMode};

const SESSION: Uuid = Uuid([5; 16]);
const WITHIN: Duration = Duration::from_secs(20);

/// Objects in memory. What happens is a function of the seed.
#[derive(Debug, Default)]
struct Faulty {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    seed: Mutex<u64>,
    /// Names that were put with other bytes than before.
    changed: Mutex<Vec<String>>,
    /// Puts that failed before and after the object was there.
    failed: Mutex<[u64; 2]>,
    /// Whether a put panics.
    panics: bool,
}

impl Faulty {
    fn roll(&self) -> u64 {
        let mut seed = lock(&self.seed);
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) % 8
    }

    fn named(&self, is_meant: impl Fn(&str) -> bool) -> Vec<(String, Vec<u8>)> {
        let objects = lock(&self.objects);
        let meant = objects.iter().filter(|(name, _)| is_meant(name));
        meant
            .map(|(name, bytes)| (name.clone(), bytes.clone()))
            .collect()
    }
}

impl ObjectStore for Faulty {
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        assert!(!self.panics, "on purpose");
        let roll = self.roll();
        if roll == 0 {
            lock(&self.failed)[0] += 1;
            return Err(io::Error::other("503 before"));
        }
        let before = lock(&self.objects).insert(name.to_owned(), bytes.to_vec());
        if before.is_some_and(|before| before != bytes) {
            lock(&self.changed).push(name.to_owned());
        }
        match roll {
            1 => {
                lock(&self.failed)[1] += 1;
                Err(io::Error::other("503 after"))
            }
            _ => Ok(()),
        }
    }

    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut objects = lock(&self.objects);
        objects
            .entry(name.to_owned())
            .or_insert_with(|| bytes.to_vec());
        Ok(())
    }

    fn list(&self, _prefix: &str) -> io::Result<Vec<String>> {
        Ok(lock(&self.objects).keys().cloned().collect())
    }

    fn get(&self, name: &str, _range: Range<u64>) -> io::Result<Vec<u8>> {
        lock(&self.objects)
            .get(name)
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        lock(&self.objects)
            .remove(name)
            .map(drop)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn level(&self) -> u32 {
        ack_level::OBJECT
    }
}

fn open(faulty: &Arc<Faulty>, flush: Duration) -> Objects {
    open_with(faulty, flush, 64 << 20, Arc::default())
}

fn open_with(
    faulty: &Arc<Faulty>,
    flush: Duration,
    session_bytes: u64,
    figures: Arc<Figures>,
) -> Objects {
    let options = StoreOptions {
        root: "memory".into(),
        sync: SyncMode::Disk,
        segment_bytes: 2000,
        segment_age: Duration::from_secs(1),
        retention: Retention::default(),
        session_bytes,
        directory: DirectoryOptions::default(),
    };
    let of = ObjectOptions {
        flush,
        memory_bytes: 0,
    };
    let collector = identity::random().unwrap();
    Objects::over(faulty.clone(), collector, options, &of, figures).unwrap()
}

fn announce(objects: &Objects, host: &str) -> SharedSession {
    let header = SessionHeader {
        session: SESSION.0,
        ..SessionHeader::new_zeroed()
    };
    objects.session(SESSION, host, header.as_bytes()).unwrap()
}

fn add(session: &SharedSession, header: BlockHeader, content: &[u8]) -> bool {
    let mut block = Vec::new();
    write::block(&mut block, header, content).unwrap();
    let whole = BlockReader::new("a block", block.as_slice())
        .next_item()
        .map(|item| match item {
            Item::Block(block) => block.header,
            Item::Damage(damage) => panic!("{damage}"),
        });
    lock(session).add(&whole.unwrap(), content, &block).unwrap()
}

fn add_page(session: &SharedSession, number: u64, state: PageState) -> bool {
    add_page_of(session, (0, number), state, 96)
}

fn add_page_of(
    session: &SharedSession,
    (slot, number): (u32, u64),
    state: PageState,
    extent: u32,
) -> bool {
    let ring_id = 9 + u64::from(slot);
    let page = PageHeader {
        generation: number + 1,
        ring_id,
        slot,
        ..PageHeader::new_zeroed()
    };
    let mut content = page.as_bytes().to_vec();
    content.resize(extent as usize, 0);
    let header = BlockHeader {
        ring_id,
        page_number: number,
        extent,
        page_bytes: 4096,
        flags: state.flags(),
        ..write::header(kind::PAGE, SESSION)
    };
    add(session, header, &content)
}

/// Waits until all that is in the lane is durable.
fn settle(objects: &Objects, segment: Option<u64>) {
    let (durable, begun) = (objects.durable(), Instant::now());
    while segment.is_some_and(|segment| durable.borrow().segments <= segment) {
        objects.hurry();
        assert!(begun.elapsed() < WITHIN, "it is not put");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The pages in all segments, by number, and whether each is sealed.
fn pages(faulty: &Faulty) -> Vec<(u64, bool)> {
    let mut found = Vec::new();
    for (_, bytes) in faulty.named(is_raw) {
        let mut reader = BlockReader::new("a segment", bytes.as_slice());
        while let Some(item) = reader.next_item() {
            let Item::Block(block) = item else {
                panic!("damage")
            };
            if block.header.kind == kind::PAGE {
                found.push((block.header.page_number, block.header.flags & SEALED != 0));
            }
        }
    }
    found
}

#[test]
fn what_is_durable_is_there_whatever_puts_do() {
    let mut failed = [0; 2];
    for seed in 1..=12 {
        let faulty = Arc::new(Faulty {
            seed: Mutex::new(seed),
            ..Faulty::default()
        });
        let objects = open(&faulty, Duration::from_millis(2));
        let durable = objects.durable();
        let session = announce(&objects, "web-1");
        for number in 0..60 {
            if number % 20 == 0 {
                let piece = BlockHeader {
                    page_number: number,
                    ..write::header(kind::SCHEMA, SESSION)
                };
                assert!(add(&session, piece, &[0; 20]));
            }
            assert!(add_page(&session, number, PageState::Sealed));
            assert!(
                !add_page(&session, number, PageState::Sealed),
                "it came before"
            );
            let (known, there) = (durable.borrow().segments, faulty.named(is_raw).len() as u64);
            assert!(there >= known, "{known} are durable and {there} there");
        }
        let last = lock(&session).segment();
        settle(&objects, last);
        let wanted: Vec<_> = (0..60).map(|number| (number, true)).collect();
        assert_eq!(pages(&faulty), wanted, "seed {seed}");
        assert_eq!(
            faulty
                .named(|name| schema_session(name) == Some(SESSION))
                .len(),
            3
        );
        assert!(lock(&faulty.changed).is_empty());
        for (name, bytes) in faulty.named(is_raw) {
            let end = bytes.len() - SegmentFooter::end_bytes(&bytes).expect("a footer");
            let footer = SegmentFooter::read(&bytes[end..]).expect("a footer");
            assert_eq!(footer.sessions[0].host, b"web-1", "{name}");
        }
        let now = *lock(&faulty.failed);
        failed = [failed[0] + now[0], failed[1] + now[1]];
    }
    println!("{failed:?} puts failed before and after the object was there");
    assert!(failed.iter().all(|failed| *failed >= 10), "{failed:?}");
}

#[test]
fn an_open_page_is_stored_once_when_nothing_fuller_comes() {
    let faulty = Arc::new(Faulty {
        seed: Mutex::new(3),
        ..Faulty::default()
    });
    let objects = open(&faulty, Duration::from_secs(60));
    let session = announce(&objects, "web-1");
    for _ in 0..5 {
        assert!(add_page(&session, 0, PageState::Open));
    }
    assert_eq!(lock(&session).segment(), None, "it waits");
    assert!(add_page(&session, 0, PageState::Sealed));
    assert!(add_page(&session, 1, PageState::Open));
    let counters = CountersHeader {
        flags: FINAL,
        ..CountersHeader::new_zeroed()
    };
    assert!(add(
        &session,
        write::header(kind::COUNTERS, SESSION),
        counters.as_bytes()
    ));
    settle(&objects, Some(0));
    assert_eq!(pages(&faulty), [(0, true), (1, false)]);
    // A connection that ends says the same.
    let session = announce(&objects, "web-1");
    assert!(add_page(&session, 2, PageState::Open));
    drop(session);
    settle(&objects, Some(1));
    assert_eq!(pages(&faulty), [(0, true), (1, false), (2, false)]);
}

/// A flight recorder is faster than its stream: pages between are overwritten, and the open copy alone
/// has its events.
#[test]
fn an_open_page_that_its_ring_has_gone_past_is_stored() {
    let faulty = Arc::new(Faulty {
        seed: Mutex::new(3),
        ..Faulty::default()
    });
    let objects = open(&faulty, Duration::from_secs(60));
    let session = announce(&objects, "web-1");
    assert!(add_page(&session, 4, PageState::Open));
    assert!(add_page(&session, 7, PageState::Sealed));
    assert!(add_page(&session, 8, PageState::Open));
    assert!(add_page(&session, 9, PageState::Open));
    drop(session);
    settle(&objects, Some(0));
    assert_eq!(
        pages(&faulty),
        [(4, false), (7, true), (8, false), (9, false)]
    );
}

#[test]
fn two_hosts_with_one_uuid_are_told_apart() {
    let faulty = Arc::new(Faulty {
        seed: Mutex::new(3),
        ..Faulty::default()
    });
    let objects = open(&faulty, Duration::from_secs(60));
    let sessions = ["web-1", "web-2"].map(|host| announce(&objects, host));
    for session in &sessions {
        assert!(add_page(session, 0, PageState::Sealed));
    }
    settle(&objects, Some(1));
    let hosts: BTreeSet<_> = faulty
        .named(is_raw)
        .iter()
        .map(|(_, bytes)| {
            let end = bytes.len() - SegmentFooter::end_bytes(bytes).expect("a footer");
            SegmentFooter::read(&bytes[end..])
                .expect("a footer")
                .sessions[0]
                .host
                .clone()
        })
        .collect();
    assert_eq!(hosts.len(), 2);
}

/// Open pages are not what is known of sessions: those of many threads leave room for that, and are bounded by the
/// memory for what waits.
#[test]
fn open_pages_of_many_threads_take_no_session_memory() {
    const SLOTS: u32 = 1000;
    let faulty = Arc::new(Faulty {
        seed: Mutex::new(3),
        ..Faulty::default()
    });
    let figures = Arc::new(Figures::default());
    // One host has an eighth: 128 KiB.
    let objects = open_with(&faulty, Duration::from_secs(60), 1 << 20, figures.clone());
    let session = announce(&objects, "web-1");
    for slot in 0..SLOTS {
        assert!(add_page_of(&session, (slot, 0), PageState::Open, 4096));
    }
    let figure = |name| {
        let values = figures.values().into_iter();
        let mut of = values.filter(|(of, _)| *of == name);
        of.next().map(|(_, value)| value as u64)
    };
    let waiting = figure("waiting_bytes").unwrap();
    assert!(waiting <= 8 << 20, "{waiting} bytes wait");
    assert!(figure("session_bytes").unwrap() < 128 << 10);
    let is_some_stored = lock(&session).segment().is_some();
    assert!(is_some_stored, "what was not kept is stored as it is");
    drop(session);
    let _ = announce(&objects, "web-1");
    let begun = Instant::now();
    while figure("waiting_bytes").unwrap() > 0 {
        objects.hurry();
        assert!(begun.elapsed() < WITHIN, "it is not put");
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(pages(&faulty).len(), SLOTS as usize);
}

#[test]
fn schema_in_small_pieces_is_one_object() {
    let faulty = Arc::new(Faulty {
        seed: Mutex::new(3),
        ..Faulty::default()
    });
    let objects = open(&faulty, Duration::from_secs(60));
    let session = announce(&objects, "web-1");
    for place in 0..50 {
        let piece = BlockHeader {
            page_number: 20 * place,
            ..write::header(kind::SCHEMA, SESSION)
        };
        assert!(add(&session, piece, &[place as u8; 20]));
    }
    settle(&objects, Some(0));
    let found = faulty.named(|name| schema_session(name) == Some(SESSION));
    assert_eq!(found.len(), 1);
    assert!(found[0].0.contains("/0-1000-"), "{}", found[0].0);
    let mut reader = BlockReader::new("schema", found[0].1.as_slice());
    let mut schema = Vec::new();
    while let Some(item) = reader.next_item() {
        let Item::Block(block) = item else {
            panic!("damage")
        };
        if block.header.kind == kind::SCHEMA {
            schema.extend_from_slice(block.content);
        }
    }
    let wanted: Vec<_> = (0..1000).map(|at| (at / 20) as u8).collect();
    assert_eq!(schema, wanted);
}

#[test]
fn a_panic_while_putting_is_told_and_nothing_more_is_durable() {
    let faulty = Arc::new(Faulty {
        panics: true,
        ..Faulty::default()
    });
    let figures = Arc::new(Figures::default());
    let objects = open_with(&faulty, Duration::ZERO, 64 << 20, figures.clone());
    let (notices, mut heard) = tokio::sync::mpsc::unbounded_channel();
    objects.send_notices_to(notices);
    let session = announce(&objects, "web-1");
    assert!(add_page(&session, 0, PageState::Sealed));
    let notice = heard.blocking_recv().unwrap().to_string();
    assert!(
        notice.contains("on purpose") && notice.contains("restart"),
        "{notice}"
    );
    let (durable, begun) = (objects.durable(), Instant::now());
    while !durable.borrow().is_over {
        assert!(begun.elapsed() < WITHIN, "connections are not told");
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(durable.borrow().segments, 0);
    assert!(
        figures
            .not_ready()
            .is_some_and(|why| why.contains("restart"))
    );
}
