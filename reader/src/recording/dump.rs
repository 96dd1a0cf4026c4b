//! A dump being written: its blocks in their order, its codec, its rotation.
//!
//! Each file of a rotating dump can be decoded alone: it starts with a preamble of the SESSION and
//! SCHEMA blocks of all sessions, and ends with the counters of each.

use std::path::PathBuf;

use ringmark_format::block::BlockHeader;
use ringmark_format::codec::write;
use ringmark_format::ending::Ending;
use ringmark_format::{Uuid, align8};

use crate::error::ReaderError;
use crate::pages::batch::{Batch, fits};
use crate::pages::codec::{Codec, Packer};
use crate::recording::output::{
    Durability, Output, Rotation, create_next, rotate_files, rotated_path,
};
use crate::recording::preambles::Preambles;
use crate::sessions::uuid_owners::UuidOwners;

/// Where a dump goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A file that is created, or emptied if it is there.
    File(PathBuf),
    /// A file that is created with its first bytes. A file that is there then gets the ending
    /// `.old`, unless it is empty.
    Replaced(PathBuf),
    /// Standard output.
    Stdout,
}

impl Destination {
    fn open(&self, durability: Durability) -> Result<Output, ReaderError> {
        match self {
            Self::File(path) => Output::create(path, durability),
            Self::Replaced(path) => Ok(Output::replacing(path, durability)),
            Self::Stdout => Output::stdout(durability),
        }
    }
}

/// A dump being written.
#[derive(Debug)]
pub struct Dump {
    output: Output,
    path: Option<PathBuf>,
    packer: Packer,
    rotation: Option<Rotation>,
    /// Largest size of all files together.
    bytes_max: Option<u64>,
    durability: Durability,
    preambles: Preambles,
    owners: UuidOwners,
    closed: ClosedFiles,
}

/// The files of a rotating dump before the present one, removed ones included.
#[derive(Debug, Default)]
struct ClosedFiles {
    count: u64,
    bytes: u64,
}

impl Dump {
    /// A dump to `destination`.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(destination: &Destination, durability: Durability) -> Result<Self, ReaderError> {
        let output = destination.open(durability)?;
        let path = match destination {
            Destination::File(path) | Destination::Replaced(path) => Some(path.clone()),
            Destination::Stdout => None,
        };
        Ok(Self {
            path,
            durability,
            ..Self::over(output)
        })
    }

    /// A dump to an output that is open already. It cannot rotate.
    #[must_use]
    pub fn over(output: Output) -> Self {
        Self {
            output,
            path: None,
            packer: Packer::default(),
            rotation: None,
            bytes_max: None,
            durability: Durability::System,
            preambles: Preambles::default(),
            owners: UuidOwners::default(),
            closed: ClosedFiles::default(),
        }
    }

    /// Which ring file each uuid in this dump stands for.
    pub(crate) fn owners(&mut self) -> &mut UuidOwners {
        &mut self.owners
    }

    /// Stores pages under this codec from now on.
    pub fn set_codec(&mut self, codec: Codec) {
        self.packer = Packer::new(codec);
    }

    /// Starts a new file whenever one has reached its size. Only a dump to a file rotates.
    pub fn set_rotation(&mut self, rotation: Option<Rotation>) {
        self.rotation = rotation;
    }

    /// Bounds the size of all files together: pages that would exceed it have no room.
    pub fn set_bytes_max(&mut self, bytes: Option<u64>) {
        self.bytes_max = bytes;
    }

    /// Bytes written to all files, removed ones included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.closed.bytes + self.output.bytes()
    }

    /// Whether writing can go on after a failure: the output ends with a whole block.
    #[must_use]
    pub fn can_resume(&self) -> bool {
        self.output.can_resume()
    }

    /// Number of files written, removed ones included; at least 1.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.closed.count + 1
    }

    /// Name of the output, for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        self.output.name()
    }

    /// Writes a SESSION block, once for each session, and again at the start of every further file.
    ///
    /// # Errors
    /// [`ReaderError::Output`].
    pub fn add_session(&mut self, session: Uuid, content: &[u8]) -> Result<(), ReaderError> {
        if self.preambles.has(session) {
            return Ok(());
        }
        let mut blocks = Vec::new();
        fits(write::session(&mut blocks, session, content));
        self.output.write_blocks(&blocks)?;
        self.preambles.begin(session, blocks);
        Ok(())
    }

    /// Writes a SCHEMA block, and again at the start of every further file.
    ///
    /// # Errors
    /// [`ReaderError::Output`].
    pub fn add_schema(
        &mut self,
        session: Uuid,
        offset: u64,
        piece: &[u8],
    ) -> Result<(), ReaderError> {
        let mut block = Vec::new();
        fits(write::schema(&mut block, session, offset, piece));
        self.output.write_blocks(&block)?;
        self.preambles.add(session, &block);
        Ok(())
    }

    /// Writes a WINDOW block, after the SESSION block and before the pages.
    ///
    /// # Errors
    /// [`ReaderError::Output`].
    pub fn add_window(&mut self, session: Uuid, from_mono_ns: u64) -> Result<(), ReaderError> {
        let mut block = Vec::new();
        fits(write::window(&mut block, session, from_mono_ns));
        self.output.write_blocks(&block)?;
        self.preambles.add(session, &block);
        Ok(())
    }

    /// Writes an ENDING block, before the last COUNTERS block of the session. `seen_tick` is the
    /// tick at which the process was found dead; 0: it was not watched.
    ///
    /// # Errors
    /// [`ReaderError::Output`].
    pub fn add_ending(
        &mut self,
        session: Uuid,
        ending: Ending,
        seen_tick: u64,
    ) -> Result<(), ReaderError> {
        let mut block = Vec::new();
        fits(write::ending(&mut block, session, ending, seen_tick));
        self.output.write_blocks(&block)
    }

    /// Writes a COUNTERS block.
    ///
    /// # Errors
    /// [`ReaderError::Output`].
    pub fn add_counters(&mut self, session: Uuid, content: &[u8]) -> Result<(), ReaderError> {
        let mut block = Vec::new();
        fits(write::counters(&mut block, session, content));
        self.output.write_blocks(&block)
    }

    /// Writes whole blocks as they are.
    ///
    /// # Errors
    /// [`ReaderError::Output`].
    pub fn add_blocks(&mut self, blocks: &[u8]) -> Result<(), ReaderError> {
        self.output.write_blocks(blocks)
    }

    /// Writes OPEN_SPANS blocks, after the last pages of their session. A dump that is bounded and
    /// has no room for them goes without: `ending` are the bytes that have to follow.
    ///
    /// # Errors
    /// [`ReaderError::Output`].
    pub(crate) fn add_open_spans(&mut self, blocks: &[u8], ending: u64) -> Result<(), ReaderError> {
        if blocks.is_empty() || self.room(ending).bytes < blocks.len() as u64 {
            return Ok(());
        }
        self.output.write_blocks(blocks)
    }

    /// Leaves a session out of the preambles of further files: it has ended.
    pub fn forget_session(&mut self, session: Uuid) {
        self.preambles.forget(session);
    }

    /// Whether a largest size was set, of one file or of all together.
    pub(crate) fn is_bounded(&self) -> bool {
        self.bytes_max.is_some() || self.rotation.is_some()
    }

    /// How many more bytes of pages can be written. `ending` are the bytes that have to follow them
    /// in the same file: counters.
    #[must_use]
    pub fn room(&self, ending: u64) -> Room {
        let left = |max: u64, now: u64| max.saturating_sub(now).saturating_sub(ending);
        let total = self
            .bytes_max
            .map_or(u64::MAX, |max| left(max, self.bytes()));
        let file = match &self.rotation {
            Some(rotation) => left(rotation.bytes, self.output.bytes()),
            None => u64::MAX,
        };
        let limit = if total <= file {
            Limit::Dump
        } else if self.output.bytes() > self.preambles.written() {
            Limit::File
        } else {
            Limit::EmptyFile
        };
        let bytes = total.min(file);
        Room { bytes, limit }
    }

    /// Writes the pages of a batch, packed if a codec was set. A batch that cannot be packed is
    /// written as it is.
    ///
    /// # Errors
    /// [`ReaderError::Output`].
    pub fn add_pages(&mut self, session: Uuid, batch: &Batch) -> Result<(), ReaderError> {
        if batch.is_empty() {
            return Ok(());
        }
        let blocks = self.packer.pack(session, batch.bytes());
        self.output.write_blocks(blocks)
    }

    /// Closes the present file and starts a new one with all preambles. The caller has written the
    /// counters of every session. After a failure the call can be repeated.
    ///
    /// # Errors
    /// The files cannot be renamed, created or written.
    pub fn rotate(&mut self) -> Result<(), ReaderError> {
        let (Some(rotation), Some(path)) = (&self.rotation, &self.path) else {
            return Ok(());
        };
        self.output.finish()?;
        rotate_files(path, rotation.keep)?;
        let preamble = self.preambles.bytes();
        let next = create_next(path, self.durability, &preamble)?;
        self.closed.bytes += self.output.bytes();
        self.closed.count += 1;
        self.output = next;
        self.preambles.begin_file(&preamble);
        Ok(())
    }

    /// Removes the oldest closed file of a rotating dump, to make room on a full disk. Returns
    /// whether there was one.
    pub fn drop_oldest(&mut self) -> bool {
        let (Some(rotation), Some(path)) = (&self.rotation, &self.path) else {
            return false;
        };
        let oldest = (1..rotation.keep)
            .rev()
            .map(|age| rotated_path(path, age))
            .find(|path| path.exists());
        oldest.is_some_and(|path| std::fs::remove_file(path).is_ok())
    }

    /// Ends the dump: what the output still holds back is written.
    ///
    /// # Errors
    /// [`ReaderError::Output`].
    pub fn finish(&mut self) -> Result<(), ReaderError> {
        self.output.finish()
    }
}

/// Room for pages in a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Bytes of pages that fit.
    pub bytes: u64,
    /// What larger pages would exceed.
    pub limit: Limit,
}

/// What keeps pages from being written: see [`Dump::room`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The largest size of the dump: it takes no more pages.
    Dump,
    /// The size of a file: all counters are to be written, then [`Dump::rotate`] makes room.
    File,
    /// The size of a file that has no page yet: it is smaller than one page and must be exceeded.
    EmptyFile,
}

/// Bytes of a block with `content` bytes of content.
#[must_use]
pub(crate) const fn block_bytes(content: usize) -> usize {
    BlockHeader::BYTES + align8(content)
}
