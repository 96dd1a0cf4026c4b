//! A place for objects that is as slow as a bucket: the schema of many sessions is put at the same time, and what needs
//! it only after all of it.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use ringmark_decoder::store::{SegmentFooter, is_raw, schema_session};
use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::codec::write;
use ringmark_format::session::SessionHeader;
use ringmark_format::stream::ack_level;
use zerocopy::{FromZeros, IntoBytes};

use super::{ObjectOptions, Objects};
use crate::mutex::lock;
use crate::store::objects::uploader::PUTS_AT_ONCE;
use crate::store::objects::{ObjectStore, identity};
use crate::store::options::StoreOptions;
use crate::store::session::SharedSession;
use crate::store::{DirectoryOptions, Retention, SyncMode};

const SESSIONS: usize = 40;
const WITHIN: Duration = Duration::from_secs(20);
const PUT: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
struct Seen {
    /// Puts under way.
    now: usize,
    /// The most of them at the same time.
    most: usize,
    /// Sessions whose schema is there.
    schema: BTreeSet<Uuid>,
    /// Sessions that were in a segment before their schema was there.
    early: usize,
    segments: usize,
}

#[derive(Debug, Default)]
struct Slow {
    seen: Mutex<Seen>,
    identity: Mutex<Vec<u8>>,
}

impl ObjectStore for Slow {
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let begin = || {
            let mut seen = lock(&self.seen);
            seen.now += 1;
            seen.most = seen.most.max(seen.now);
            if is_raw(name) {
                let end = bytes.len() - SegmentFooter::end_bytes(bytes).expect("a footer");
                let footer = SegmentFooter::read(&bytes[end..]).expect("a whole footer");
                let sessions = footer.sessions.iter().map(|entry| entry.session);
                seen.early += sessions.filter(|of| !seen.schema.contains(of)).count();
                seen.segments += 1;
            }
        };
        begin();
        thread::sleep(PUT);
        let mut seen = lock(&self.seen);
        seen.now -= 1;
        seen.schema.extend(schema_session(name));
        Ok(())
    }

    fn create(&self, _name: &str, bytes: &[u8]) -> io::Result<()> {
        *lock(&self.identity) = bytes.to_vec();
        Ok(())
    }

    fn list(&self, _prefix: &str) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn get(&self, _name: &str, _range: Range<u64>) -> io::Result<Vec<u8>> {
        let identity = lock(&self.identity).clone();
        match identity.is_empty() {
            true => Err(io::ErrorKind::NotFound.into()),
            false => Ok(identity),
        }
    }

    fn delete(&self, _name: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn level(&self) -> u32 {
        ack_level::OBJECT
    }
}

fn open(place: &Arc<Slow>) -> Objects {
    let options = StoreOptions {
        root: "memory".into(),
        sync: SyncMode::Disk,
        segment_bytes: 1 << 20,
        segment_age: Duration::from_secs(1),
        retention: Retention::default(),
        session_bytes: 64 << 20,
        directory: DirectoryOptions::default(),
    };
    let of = ObjectOptions {
        flush: Duration::from_secs(60),
        memory_bytes: 0,
    };
    let collector = identity::random().unwrap();
    Objects::over(place.clone(), collector, options, &of, Arc::default()).unwrap()
}

/// Announces a session, and sends its schema.
fn begin(objects: &Objects, number: usize) -> SharedSession {
    let uuid = Uuid([number as u8 + 1; 16]);
    let content = SessionHeader {
        session: uuid.0,
        ..SessionHeader::new_zeroed()
    };
    let session = objects.session(uuid, "web-1", content.as_bytes()).unwrap();
    let mut block = Vec::new();
    write::schema(&mut block, uuid, 0, &[number as u8; 1000]).unwrap();
    let (header, rest) = <BlockHeader as zerocopy::FromBytes>::read_from_prefix(&block).unwrap();
    assert_eq!(header.kind, kind::SCHEMA);
    let content = &rest[..header.stored_bytes as usize];
    lock(&session).add(&header, content, &block).unwrap();
    session
}

#[test]
fn the_schema_of_many_sessions_is_put_at_the_same_time_and_their_segment_after_it() {
    let place = Arc::new(Slow::default());
    let objects = open(&place);
    let sessions: Vec<_> = (0..SESSIONS)
        .map(|number| begin(&objects, number))
        .collect();
    let (durable, begun) = (objects.durable(), Instant::now());
    while durable.borrow().segments == 0 {
        objects.hurry();
        assert!(begun.elapsed() < WITHIN, "it is not put");
        thread::sleep(Duration::from_millis(1));
    }
    let seen = lock(&place.seen);
    assert_eq!((seen.schema.len(), seen.segments), (SESSIONS, 1));
    assert_eq!(seen.early, 0, "a segment came before the schema of it");
    assert!(
        seen.most > 1 && seen.most <= PUTS_AT_ONCE,
        "{} at the same time",
        seen.most
    );
    drop(sessions);
}
