//! A segment in memory, from its first block to the object.

use std::collections::BTreeMap;
use std::time::Instant;

use ringmark_decoder::store::{
    FooterEntry, IndexBuilder, SegmentFooter, SegmentIndex, raw_object, schema_object,
};
use ringmark_decoder::{BlockReader, Item};
use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, CONTENT_BYTES_MAX};
use ringmark_format::codec::{crc32, write};

/// What a segment says of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Owner {
    pub(in crate::store) session: Uuid,
    pub(in crate::store) host: String,
    pub(in crate::store) service: String,
    pub(in crate::store) epoch: u32,
    /// Bytes of the schema stream that came so far.
    pub(in crate::store) schema_bytes: u64,
    /// The segment that has its latest block; 0: none has, or the first.
    pub(in crate::store) from: u64,
}

/// Bytes of footers from which on a segment is closed, indexes not counted; a block has room for them.
const FOOTER_BYTES: usize = CONTENT_BYTES_MAX as usize / 2;
/// Bytes of a session in a footer, but for its names and its index.
const ENTRY_BYTES: usize = 72;

/// Most bytes of schema in an object that is made of several pieces.
const SCHEMA_OBJECT_BYTES: usize = 1 << 20;

/// A piece of schema, which gets an object of its own. One that goes on where it ends joins it.
#[derive(Debug)]
pub(super) struct SchemaPiece {
    session: Uuid,
    host: String,
    /// Content of the SESSION block.
    content: Vec<u8>,
    from: u64,
    schema: Vec<u8>,
}

impl SchemaPiece {
    /// The schema stream from `from` on, of a session with this content of SESSION.
    pub(super) fn new(owner: &Owner, content: &[u8], from: u64, piece: &[u8]) -> Self {
        Self {
            session: owner.session,
            host: owner.host.clone(),
            content: content.to_vec(),
            from,
            schema: piece.to_vec(),
        }
    }

    /// Bytes of its object, but for padding.
    pub(super) fn bytes(&self) -> u64 {
        (2 * BlockHeader::BYTES + self.content.len() + self.schema.len()) as u64
    }

    const fn to(&self) -> u64 {
        self.from + self.schema.len() as u64
    }

    /// Whether another piece of the same session continues it, and both are not too much for an object.
    fn is_continued_by(&self, next: &Self) -> bool {
        self.to() == next.from && self.schema.len() + next.schema.len() <= SCHEMA_OBJECT_BYTES
    }

    /// Its object: SESSION and SCHEMA.
    fn object(self) -> Upload {
        let mut bytes = Vec::with_capacity(self.bytes() as usize);
        // Both came in blocks, so they fit into blocks.
        let _ = write::session(&mut bytes, self.session, &self.content);
        let _ = write::schema(&mut bytes, self.session, self.from, &self.schema);
        let range = (self.from, self.to());
        Upload {
            name: schema_object(&self.host, self.session, range, crc32(&bytes)),
            bytes,
        }
    }
}

/// An object that is to be put.
#[derive(Debug)]
pub(in crate::store) struct Upload {
    pub(in crate::store) name: String,
    pub(in crate::store) bytes: Vec<u8>,
}

/// What a segment holds of a session. It goes into the object as one piece.
///
/// Each block has memory of its own: one that grew would take up to twice what is counted for it.
#[derive(Debug)]
struct Part {
    owner: Owner,
    blocks: Vec<Box<[u8]>>,
}

/// A segment that is being filled.
#[derive(Debug)]
pub(super) struct OpenSegment {
    pub(super) number: u64,
    pub(super) begun: Instant,
    parts: BTreeMap<Uuid, Part>,
    /// Bytes of all parts.
    bytes: u64,
    schema: Vec<SchemaPiece>,
    /// Place of the last piece of each session.
    last_schema: BTreeMap<Uuid, usize>,
    schema_bytes: u64,
    /// Bytes of its footer, but for indexes.
    footer_bytes: usize,
}

impl OpenSegment {
    pub(super) fn new(number: u64, now: Instant) -> Self {
        Self {
            number,
            begun: now,
            parts: BTreeMap::new(),
            bytes: 0,
            schema: Vec::new(),
            last_schema: BTreeMap::new(),
            schema_bytes: 0,
            footer_bytes: 0,
        }
    }

    /// Whether its footer has no room for more sessions.
    pub(super) const fn has_full_footer(&self) -> bool {
        self.footer_bytes >= FOOTER_BYTES
    }

    /// Bytes of memory that it takes.
    pub(super) fn held(&self) -> u64 {
        self.bytes + self.schema_bytes
    }

    /// Whether the session of another host is here that has the same uuid.
    pub(super) fn has_other(&self, owner: &Owner) -> bool {
        let known = self.parts.get(&owner.session);
        known.is_some_and(|known| known.owner.host != owner.host)
    }

    /// Appends a whole block, after `preamble` if it is the session's first one.
    pub(super) fn append(
        &mut self,
        owner: &Owner,
        block: &[u8],
        preamble: impl FnOnce() -> Vec<u8>,
    ) {
        let part = self.part_of(owner, preamble);
        if !block.is_empty() {
            part.blocks.push(block.into());
        }
        self.bytes += block.len() as u64;
    }

    #[cfg(feature = "models")]
    /// Counts bytes of blocks that are not there, likewise: models of many hosts have none.
    pub(super) fn count(&mut self, owner: &Owner, bytes: u64, preamble: impl FnOnce() -> Vec<u8>) {
        let _ = self.part_of(owner, preamble);
        self.bytes += bytes;
    }

    /// What it holds of a session, which begins with `preamble`.
    fn part_of(&mut self, owner: &Owner, preamble: impl FnOnce() -> Vec<u8>) -> &mut Part {
        let part = self.parts.entry(owner.session).or_insert_with(|| {
            self.footer_bytes += ENTRY_BYTES + owner.host.len() + owner.service.len();
            let blocks = preamble();
            self.bytes += blocks.len() as u64;
            Part {
                owner: owner.clone(),
                blocks: vec![blocks.into()],
            }
        });
        part.owner.clone_from(owner);
        part
    }

    /// Adds schema, which is put before this segment.
    pub(super) fn add_schema(&mut self, owner: &Owner, piece: SchemaPiece, preamble: Vec<u8>) {
        let last = self.last_schema.get(&piece.session);
        let last = last.and_then(|place| self.schema.get_mut(*place));
        match last.filter(|last| last.is_continued_by(&piece)) {
            Some(last) => {
                self.schema_bytes += piece.schema.len() as u64;
                last.schema.extend_from_slice(&piece.schema);
            }
            None => {
                self.schema_bytes += piece.bytes();
                let _ = self.last_schema.insert(piece.session, self.schema.len());
                self.schema.push(piece);
            }
        }
        self.append(owner, &[], || preamble);
    }

    /// The objects to be put: its schema, and the segment.
    pub(super) fn objects(self, hour: &str, collector: Uuid) -> (Vec<Upload>, Upload) {
        let schema = self.schema.into_iter().map(SchemaPiece::object).collect();
        let mut parts: Vec<_> = self.parts.into_values().collect();
        // The sessions of a host lie together, so that one read gets them.
        parts.sort_by(|a, b| a.owner.host.cmp(&b.owner.host));
        let (mut bytes, mut sessions) = (Vec::with_capacity(self.bytes as usize), Vec::new());
        for part in parts {
            let begin = bytes.len();
            for block in part.blocks {
                bytes.extend_from_slice(&block);
            }
            sessions.push(entry(part.owner, &bytes[begin..]));
        }
        let footer = SegmentFooter {
            segment_bytes: self.bytes,
            sessions,
            is_grouped: true,
        };
        let footer = footer.block();
        bytes.reserve_exact(footer.len());
        bytes.extend_from_slice(&footer);
        let name = raw_object(hour, collector, self.number);
        (schema, Upload { name, bytes })
    }
}

/// What a segment has of a session.
fn entry(owner: Owner, blocks: &[u8]) -> FooterEntry {
    FooterEntry {
        session: owner.session,
        host: owner.host.into_bytes(),
        service: owner.service.into_bytes(),
        schema_bytes: owner.schema_bytes,
        epoch: owner.epoch,
        bytes: u32::try_from(blocks.len()).unwrap_or(u32::MAX),
        index: index(blocks),
    }
}

/// The index of the blocks of a session; `None`: they cannot be understood.
fn index(blocks: &[u8]) -> Option<SegmentIndex> {
    let mut index = IndexBuilder::default();
    let mut reader = BlockReader::new("a segment", blocks);
    while let Some(item) = reader.next_item() {
        if let Item::Block(block) = item {
            index.take(&block)?;
        }
    }
    index.finish_object()
}
