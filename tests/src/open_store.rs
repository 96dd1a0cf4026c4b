//! A store that a test opens itself, without a collector, and the blocks of its files.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ringmark_collector::Figures;
use ringmark_collector::store::{DirectoryOptions, Retention, Store, StoreOptions, SyncMode};
use ringmark_decoder::{BlockReader, Item};
use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, kind};
use zerocopy::FromBytes;

use crate::collecting::segments;

/// The session of such a store.
pub const SESSION: Uuid = Uuid([9; 16]);

/// A block of a segment.
#[derive(Debug, Clone)]
pub struct StoredBlock {
    /// Its header.
    pub header: BlockHeader,
    /// Its content.
    pub content: Vec<u8>,
    /// Where it begins in the file.
    pub at: u64,
}

/// The valid blocks of a file, and how many damages lie between them.
///
/// # Panics
/// When it cannot be read.
#[must_use]
pub fn blocks(path: &Path) -> (Vec<StoredBlock>, usize) {
    let bytes = fs::read(path).unwrap();
    let mut reader = BlockReader::new("a segment", bytes.as_slice());
    let (mut found, mut damaged) = (Vec::new(), 0);
    while let Some(item) = reader.next_item() {
        match item {
            Item::Block(block) => found.push(StoredBlock {
                header: block.header,
                content: block.content.to_vec(),
                at: block.offset,
            }),
            Item::Damage(_) => damaged += 1,
        }
    }
    (found, damaged)
}

/// Turns bits of one byte of a file.
///
/// # Panics
/// When it cannot.
pub fn flip(path: &Path, at: u64, mask: u8) {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ mask], at).unwrap();
}

/// A store without a collector around it, opened anew each time.
#[derive(Debug)]
pub struct OpenStore {
    /// Where it is.
    pub root: PathBuf,
    /// What is counted.
    pub figures: Arc<Figures>,
    /// It itself.
    pub store: Store,
}

impl OpenStore {
    /// Opens it.
    ///
    /// # Panics
    /// When it cannot.
    #[must_use]
    pub fn at(root: &Path, segment_bytes: u64) -> Self {
        let options = StoreOptions {
            root: root.to_owned(),
            sync: SyncMode::Cache,
            segment_bytes,
            segment_age: Duration::from_secs(3600),
            retention: Retention::default(),
            session_bytes: 16 << 20,
            directory: DirectoryOptions::default(),
        };
        let figures = Arc::new(Figures::default());
        Self {
            root: root.to_owned(),
            store: Store::open(options, figures.clone()).unwrap(),
            figures,
        }
    }

    /// One of its figures.
    ///
    /// # Panics
    /// When there is none of this name.
    #[must_use]
    pub fn figure(&self, name: &str) -> u64 {
        let values = self.figures.values();
        values.iter().find(|(of, _)| *of == name).unwrap().1 as u64
    }

    /// Where a streamer is told to go on: in the schema, in each slot.
    ///
    /// # Panics
    /// When it is refused.
    #[must_use]
    pub fn next(&self) -> (u64, BTreeMap<u32, u64>) {
        let session = self.store.session(SESSION, "here", &[0; 320]).unwrap();
        let known = session.lock().unwrap().known();
        let slots = known.slots.iter().map(|at| (at.slot, at.next_page));
        (known.schema_bytes, slots.collect())
    }

    /// A streamer sends this; how many blocks were new.
    ///
    /// # Panics
    /// When one is refused.
    pub fn add<'a>(&self, blocks: impl IntoIterator<Item = &'a Vec<u8>>) -> usize {
        let session = self.store.session(SESSION, "here", &[0; 320]).unwrap();
        let mut session = session.lock().unwrap();
        let add = |block: &&Vec<u8>| {
            let (header, _) = BlockHeader::read_from_prefix(block).unwrap();
            let content = &block[BlockHeader::BYTES..][..header.stored_bytes as usize];
            session.add(&header, content, block).unwrap()
        };
        blocks.into_iter().filter(add).count()
    }

    /// The pages that are there, and how often.
    ///
    /// # Panics
    /// As [`blocks`].
    #[must_use]
    pub fn pages(&self) -> BTreeMap<(u32, u64), usize> {
        pages(&self.root)
    }
}

/// The pages of a store by slot and number, and how often each is there.
///
/// # Panics
/// As [`blocks`].
#[must_use]
pub fn pages(root: &Path) -> BTreeMap<(u32, u64), usize> {
    let mut pages = BTreeMap::new();
    for found in segments(root).iter().flat_map(|path| blocks(path).0) {
        if found.header.kind == kind::PAGE {
            let slot = found.header.ring_id as u32 - 1;
            *pages.entry((slot, found.header.page_number)).or_default() += 1;
        }
    }
    pages
}
