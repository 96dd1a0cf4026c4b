//! A connection from outside: the collector takes it in or refuses it, and stores whole blocks only.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ringmark_collector::socketless_collector::SocketlessCollector;
use ringmark_collector::store::index;
use ringmark_decoder::store::{dumps_below, load_index};
use ringmark_decoder::{BlockReader, Item};

use crate::repair::repaired;

static COLLECTOR: OnceLock<SocketlessCollector> = OnceLock::new();

/// Says the input as it is, and with its checksums made right; twice: the second time most is there.
pub fn run(input: &[u8]) {
    let root = root();
    for said in [
        input.to_vec(),
        repaired(input, false),
        repaired(input, true),
    ] {
        send(said.clone(), &root);
        send(said, &root);
        let _ = fs::remove_dir_all(&root);
    }
}

/// A directory of this process, in memory where there is one.
fn root() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let parent = if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    };
    let thread = format!("{:?}", std::thread::current().id());
    let digits: String = thread.chars().filter(char::is_ascii_digit).collect();
    parent.join(format!("ringmark-fuzz-{}-{digits}", std::process::id()))
}

fn send(said: Vec<u8>, root: &Path) {
    let collector = COLLECTOR.get_or_init(|| SocketlessCollector::new().expect("a runtime"));
    let refused = collector.receive(said, root).expect("a store");
    assert!(refused.is_none_or(|why| !why.is_empty()));
    for segment in dumps_below(root).expect("a store") {
        let mut reader = BlockReader::new("a segment", File::open(&segment).expect("a segment"));
        while let Some(item) = reader.next_item() {
            assert!(matches!(item, Item::Block(_)), "{item:?}");
        }
        let damage = index::make(&segment).expect("an index, or none");
        assert!(damage.is_none(), "{damage:?}");
        if let Some(made) = load_index(&segment) {
            assert!(!made.bytes().is_empty());
        }
    }
}
