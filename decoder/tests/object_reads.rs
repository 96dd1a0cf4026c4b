//! Promise: of a store of objects, a hundredth of the time of one host of two hundred takes a twentieth of the bytes at
//! most and three requests for each segment, and shows what reading everything shows.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ringmark_decoder::store::{
    DirectorySource, FooterEntry, ListedObject, ObjectSource, Opened, SegmentFooter, Unreadable,
    raw_object, read, schema_object,
};
use ringmark_decoder::{
    BlockReader, Dump, DumpBuilder, Filter, IndexBuilder, Item, Output, SessionChoice,
};
use ringmark_format::Uuid;
use ringmark_format::attribute::{self, tag};
use ringmark_format::codec::write;
use ringmark_format::session::Mode;
use zerocopy::IntoBytes;

mod common;

use common::{PageOf, schema, session_header};

const HOSTS: u8 = 200;
const SEGMENTS: u64 = 20;
/// Pages of a host in a segment, and of these one in ten comes later.
const PAGES: u64 = 2;
const LATE_BY: u64 = 3;
const PAGE_BYTES: u32 = 8192;
/// Events of a page, and ticks between them, which are ns: a segment lasts for 16 s.
const EVENTS: u64 = 16;
const STEP: u64 = 500_000_000;
const WHOLE: u64 = SEGMENTS * PAGES * EVENTS * STEP;

/// Requests and bytes of a reader.
#[derive(Default)]
struct Cost {
    requests: Cell<u64>,
    bytes: Cell<u64>,
}

impl Cost {
    fn add(&self, bytes: u64) {
        self.requests.set(self.requests.get() + 1);
        self.bytes.set(self.bytes.get() + bytes);
    }
}

/// A store that counts what is read of it.
struct Counting(DirectorySource, Rc<Cost>);

impl ObjectSource for Counting {
    fn list(&self, prefix: &str) -> io::Result<Vec<ListedObject>> {
        self.0.list(prefix)
    }

    fn get(&self, name: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.1.add(range.end - range.start);
        self.0.get(name, range)
    }

    fn open(&self, name: &str) -> io::Result<File> {
        let file = self.0.open(name)?;
        self.1.add(file.metadata()?.len());
        Ok(file)
    }

    fn open_range(&self, name: &str, range: Range<u64>) -> io::Result<File> {
        self.1.add(range.end - range.start);
        self.0.open_range(name, range)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }
}

fn uuid(host: u8) -> Uuid {
    Uuid([host + 1; 16])
}

fn session(host: u8) -> Vec<u8> {
    let mut header = session_header(Mode::Discard);
    (header.session, header.pid) = (uuid(host).0, 100 + u32::from(host));
    let mut attributes = Vec::new();
    attribute::push(&mut attributes, tag::SERVICE_NAME, b"shop");
    header.attributes_bytes = attributes.len() as u32;
    let content = [header.as_bytes(), &attributes].concat();
    let mut out = Vec::new();
    write::session(&mut out, uuid(host), &content).unwrap();
    out
}

fn page(host: u8, number: u64, out: &mut Vec<u8>) {
    let mut page = PageOf::new(number, number * EVENTS);
    page.session = uuid(host);
    page.page_bytes = PAGE_BYTES;
    page.header.tick_base = 1000 + number * EVENTS * STEP;
    for event in 0..EVENTS {
        page.event(
            (event * STEP) as u32,
            16 + (event % 2) as u32,
            &[number * EVENTS + event],
        );
    }
    page.close();
    page.write(true, out);
}

/// The segment in which a page comes.
fn place(host: u8, number: u64) -> u64 {
    let is_late = (u64::from(host) * 7 + number).is_multiple_of(10);
    let place = number / PAGES + if is_late { LATE_BY } else { 0 };
    place.min(SEGMENTS - 1)
}

fn entry(host: u8, blocks: &[u8]) -> FooterEntry {
    let mut index = IndexBuilder::default();
    let mut reader = BlockReader::new("a segment", blocks);
    while let Some(Item::Block(block)) = reader.next_item() {
        index.take(&block).unwrap();
    }
    FooterEntry {
        session: uuid(host),
        host: format!("host-{host}").into_bytes(),
        service: b"shop".to_vec(),
        schema_bytes: schema().len() as u64,
        epoch: 1,
        bytes: blocks.len() as u32,
        index: index.finish_object(),
    }
}

fn put(root: &Path, name: &str, bytes: &[u8]) -> u64 {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
    bytes.len() as u64
}

/// Puts all hosts' segments and schema; returns the bytes of all.
fn fill(root: &Path) -> u64 {
    let mut total = 0;
    for host in 0..HOSTS {
        let mut bytes = session(host);
        write::schema(&mut bytes, uuid(host), 0, &schema()).unwrap();
        let range = (0, schema().len() as u64);
        let name = schema_object(&format!("host-{host}"), uuid(host), range, 7);
        total += put(root, &name, &bytes);
    }
    for segment in 0..SEGMENTS {
        let (mut bytes, mut sessions) = (Vec::new(), Vec::new());
        for host in 0..HOSTS {
            let mut blocks = session(host);
            let numbers = (0..SEGMENTS * PAGES).filter(|number| place(host, *number) == segment);
            numbers.for_each(|number| page(host, number, &mut blocks));
            sessions.push(entry(host, &blocks));
            bytes.extend(blocks);
        }
        let footer = SegmentFooter {
            segment_bytes: bytes.len() as u64,
            sessions,
            is_grouped: true,
        };
        bytes.extend(footer.block());
        let name = raw_object("2026-11-26-19", Uuid([1; 16]), segment);
        total += put(root, &name, &bytes);
    }
    total
}

fn read_all(root: &Path, filter: &Filter, hosts: &[&str]) -> (Dump, Rc<Cost>) {
    let choice = SessionChoice {
        hosts: hosts.iter().map(ToString::to_string).collect(),
        ..SessionChoice::default()
    };
    let cost = Rc::new(Cost::default());
    let open = |_: &Path| -> Result<Opened, Unreadable> {
        let source = Counting(DirectorySource::new(root), cost.clone());
        Ok(Opened::Objects(Box::new(source)))
    };
    let files = [PathBuf::from("counted")];
    let dump = read(DumpBuilder::new(), &files, (filter, &choice), open).unwrap();
    assert_eq!(dump.damage, []);
    (dump, cost)
}

/// Hosts and numbers of the events of type `tick` of a host in a window.
fn events(dump: &Dump, filter: &Filter, host: Option<&[u8]>) -> BTreeSet<(Vec<u8>, u64)> {
    let passed = dump.events().filter_map(|item| match item {
        Output::Event(event) if filter.passes(&event) => {
            let of = event.session.host().to_vec();
            host.is_none_or(|host| host == of)
                .then_some((of, event.t_ns))
        }
        _ => None,
    });
    passed.collect()
}

#[test]
fn a_hundredth_of_the_time_of_one_host() {
    let name = format!("ringmark-object-reads-{}", std::process::id());
    let root = std::env::temp_dir().join(name);
    let total = fill(&root);
    let all = Filter::new();
    let (everything, whole) = read_all(&root, &all, &[]);
    let count = events(&everything, &all, None).len() as u64;
    assert_eq!(count, u64::from(HOSTS) * SEGMENTS * PAGES * EVENTS);
    assert!(whole.bytes.get() >= total);
    for (hosts, from, most) in [
        (&["host-77"][..], 45, 5.0),
        (&["host-0"][..], 3, 5.0),
        (&[][..], 45, 25.0),
    ] {
        let mut window = Filter::new();
        window.from(&format!("{}ns", WHOLE / 100 * from)).unwrap();
        window
            .to(&format!("{}ns", WHOLE / 100 * (from + 1)))
            .unwrap();
        let _ = window.name("tick");
        let (part, cost) = read_all(&root, &window, hosts);
        let host = hosts.first().map(|host| host.as_bytes());
        let found = events(&part, &window, host);
        assert_eq!(found, events(&everything, &window, host));
        assert!(!found.is_empty());
        let (requests, bytes) = (cost.requests.get(), cost.bytes.get());
        let share = 100.0 * bytes as f64 / total as f64;
        println!("{hosts:?} at {from} %: {share:.1} % of {total} bytes, {requests} requests");
        assert!(share <= most, "{share}");
        if host.is_some() {
            assert!(requests <= 3 * SEGMENTS + 1, "{requests}");
        }
    }
    let last = everything.verify().last_ns.unwrap();
    for (hosts, most) in [(&["host-77"][..], 2.0), (&[][..], 35.0)] {
        let (mut of_end, mut end) = (Filter::new(), Filter::new());
        of_end.reads_end(STEP);
        end.from_wall_ns(last - STEP);
        let (part, cost) = read_all(&root, &of_end, hosts);
        let host = hosts.first().map(|host| host.as_bytes());
        assert_eq!(part.verify().last_ns, Some(last));
        assert_eq!(events(&part, &end, host), events(&everything, &end, host));
        let share = 100.0 * cost.bytes.get() as f64 / total as f64;
        println!("{hosts:?}, the end: {share:.1} %");
        assert!(share <= most, "{share}");
    }
    fs::remove_dir_all(&root).unwrap();
}
