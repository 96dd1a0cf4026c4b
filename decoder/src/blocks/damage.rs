//! What is wrong with an input: the place, what was found, what was expected.
//!
//! Damage never ends the reading. It is kept as a [`Damage`], and the reader goes on with the next
//! block, page or schema entry that is sound.

use std::fmt;
use std::sync::Arc;

use ringmark_format::block_at::BlockFault;
use ringmark_format::codec::CodecError;
use ringmark_format::session::RING_FILE_MAGIC;
use ringmark_format::{PageNumber, RingId, Uuid};

/// Something in an input that could not be used, and where it stands.
///
/// Its text is one line for people: source, block, offset, page if known, and the fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The input's name, usually a file's path.
    pub source: Arc<str>,
    /// Number of the block in the input, from 0; containers count as one.
    pub block: u64,
    /// Offset in the input, in bytes; inside a container that of the container.
    pub offset: u64,
    /// The page in the block, as its header says; `None` for other blocks.
    pub page: Option<PageId>,
    /// What is wrong.
    pub fault: Fault,
}

/// Where something was read: what a [`Damage`] says about the place, for faults that are found
/// later.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub source: Arc<str>,
    pub block: u64,
    pub offset: u64,
}

impl Place {
    pub(crate) fn damage(&self, page: Option<PageId>, fault: Fault) -> Damage {
        Damage {
            source: self.source.clone(),
            block: self.block,
            offset: self.offset,
            page,
            fault,
        }
    }
}

/// Identity of a page, the same in every file that holds a copy of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId {
    /// The session.
    pub session: Uuid,
    /// The ring: which claim of the slot wrote the page.
    pub ring: RingId,
    /// The page's number in its slot.
    pub number: PageNumber,
}

/// What is wrong with a block, a page or a session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The input has no bytes.
    #[error("empty, expected a trace file")]
    Empty,
    /// Reading failed.
    #[error("cannot be read: {0}")]
    Io(String),
    /// Pages that were there when the input was read first.
    #[error("changed or removed while it was read: {0}")]
    Gone(String),
    /// No block starts here.
    #[error("no trace file: starts with \"{}\", expected \"RMKB\"{}", .found.escape_ascii(), Looks(.looks_like))]
    WrongMagic {
        /// The first bytes.
        found: Vec<u8>,
        /// What they look like, if they are known.
        looks_like: Option<&'static str>,
    },
    /// The input ends inside a block's header.
    #[error("truncated block header: {found} bytes, expected {expected}")]
    TruncatedHeader {
        /// Bytes that are there.
        found: u64,
        /// Bytes of a header.
        expected: u64,
    },
    /// The input ends inside a block's content.
    #[error("truncated block content: {found} bytes, expected {expected}")]
    TruncatedContent {
        /// Bytes that are there.
        found: u64,
        /// Bytes that the header declares.
        expected: u64,
    },
    /// The block contradicts itself.
    #[error(transparent)]
    Block(BlockFault),
    /// A segment of a store of objects without a valid footer.
    #[error("no valid footer at its end, expected one: which hosts sent it is not proved")]
    NoFooter,
    /// Bytes between two blocks that are no block.
    #[error("{bytes} bytes that are no block, skipped")]
    Skipped {
        /// How many.
        bytes: u64,
    },
    /// A file that is nearly all holes.
    #[error(
        "a file of {bytes} bytes of which {stored} are stored, expected a file as Ringmark writes it: what lies behind as many \
         bytes was not read"
    )]
    Holes {
        /// Its size.
        bytes: u64,
        /// What the file system has of it.
        stored: u64,
    },
    /// Written on a machine of the other byte order.
    #[error("written big-endian, expected little-endian")]
    ForeignEndian,
    /// A newer major version of the format.
    #[error("format version {found}, this decoder reads up to {supported}")]
    NewerMajor {
        /// As declared.
        found: u16,
        /// Largest that is read.
        supported: u16,
    },
    /// A length or size is out of its range.
    #[error("{what} is {found}, expected {expected}")]
    Value {
        /// Which length or size.
        what: &'static str,
        /// As found.
        found: u64,
        /// As expected (a limit, or the exact value).
        expected: u64,
    },
    /// The codec could not be undone.
    #[error("{0}")]
    Codec(CodecError),
    /// A container in a container.
    #[error("a container inside a container")]
    Nested,
    /// A record's header cannot be one.
    #[error("record at offset {at} of the page: {what} ({found:#x})")]
    Record {
        /// Offset in the page, in bytes.
        at: u32,
        /// What is wrong with it.
        what: &'static str,
        /// The header word.
        found: u64,
    },
    /// Two copies of a page say different things about one record.
    #[error("two copies of the page differ at offset {at}: {found:#x}, kept {kept:#x}")]
    Conflict {
        /// Offset in the page, in bytes.
        at: u32,
        /// The word of the later copy.
        found: u64,
        /// The word of the copy that is kept.
        kept: u64,
    },
    /// Two pieces of the schema stream differ where they overlap.
    #[error("two pieces of the schema differ at offset {at} of the stream")]
    SchemaConflict {
        /// Offset in the schema stream.
        at: u64,
    },
    /// A piece of the schema stream is missing; the types after it are unknown.
    #[error("schema stream: bytes {from}..{to} are missing")]
    SchemaGap {
        /// First missing byte.
        from: u64,
        /// First byte that is there again, or the stream's length.
        to: u64,
    },
    /// A schema entry is not well formed.
    #[error("schema entry at offset {at} of the stream: {what}")]
    SchemaEntry {
        /// Offset in the schema stream.
        at: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Pages of a session whose SESSION block is not there.
    #[error("session {0}: no SESSION block; ticks are shown as nanoseconds")]
    NoSession(Uuid),
}

struct Looks<'a>(&'a Option<&'static str>);

impl fmt::Display for Looks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(what) => write!(f, " (looks like {what})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = crate::words::escape::Printable(self.source.as_bytes());
        write!(
            f,
            "{source}: block {} at offset {}: ",
            self.block, self.offset
        )?;
        if let Some(page) = self.page {
            write!(f, "page {} of ring {}: ", page.number, page.ring)?;
        }
        self.fault.fmt(f)
    }
}

impl std::error::Error for Damage {}

/// What a file that is no trace file looks like by its first bytes, for messages; `None`: nothing
/// that is known here.
#[must_use]
pub fn looks_like(front: &[u8]) -> Option<&'static str> {
    const KNOWN: &[(&[u8], &str)] = &[
        (b"\x7fELF", "an ELF file"),
        (b"\x1f\x8b", "gzip"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\x04\x22\x4d\x18", "an LZ4 frame"),
        (b"\xfd7zXZ\0", "xz"),
        (b"BZh", "bzip2"),
        (b"PK\x03\x04", "a zip archive"),
        (b"PAR1", "Parquet"),
        (
            &RING_FILE_MAGIC,
            "a ring file: a live session, record or snapshot it",
        ),
        (b"BKMR", "a trace file of the other byte order"),
        (b"\xc1\x1f\xfc\xc1", "a CTF stream"),
        (b"Ftrace!", "uftrace data"),
        (b"PERFILE2", "perf data"),
        (b"%PDF", "PDF"),
        (b"SQLite format 3", "SQLite"),
    ];
    let known = KNOWN.iter().find(|(magic, _)| front.starts_with(magic));
    known.map(|(_, what)| *what).or_else(|| guess(front))
}

fn guess(front: &[u8]) -> Option<&'static str> {
    if front.is_empty() {
        return None;
    }
    if front.iter().all(|b| *b == 0) {
        return Some("zeros");
    }
    let text = |b: &u8| matches!(b, b' '..=b'~' | b'\t' | b'\n' | b'\r');
    if matches!(front[0], b'{' | b'[') && front.iter().all(text) {
        return Some("JSON");
    }
    front.iter().all(text).then_some("text")
}
