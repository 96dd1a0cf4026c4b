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
    DirectorySource, ListedObject, ObjectSource, Opened, Unreadable, read,
};
use ringmark_decoder::{Dump, DumpBuilder, Filter, Output, SessionChoice};

use crate::common;

use common::many_hosts::{EVENTS, HOSTS, PAGES, SEGMENTS, STEP, WHOLE, fill};

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
