//! Pages that wait on disk for a collector that is away or slow: `DIR/SESSION.N.rmk`, each file a
//! dump of its own.
//!
//! Pages are released to their program when they are in a file, not when the file is durable. They
//! then outlive this process, as they did in the ring file, and like there not a power loss. A file
//! is removed when the collector has all of it. A file that no streamer made is neither sent nor
//! removed.
//!
//! How the collector's RESUME and the files fit together is the business of the
//! [`StreamedSession`](super::streamed_session::StreamedSession).

mod directory;
mod part;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::{self, File};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ringmark_format::Uuid;
use ringmark_format::block::kind;
use ringmark_format::block_at::Blocks;
use ringmark_format::codec::write;
use ringmark_format::progress::GoneRange;

pub use directory::SpillOptions;

use super::delivered::ranges_of;
use super::ledger::Ledger;
use super::own_uuid;
use super::positions::{SlotPage, SpillPosition, page_of};
use super::spilled_gone::SpilledGone;
use crate::error::{ReaderError, io_at};
use crate::pages::batch::fits;
use crate::pages::drain::{SchemaPiece, SessionDrain};
use crate::pages::positions::SlotPosition;
use crate::recording::output::{Durability, Output};
pub(super) use directory::SpillDirectory;
use directory::SpillFile;
use part::Part;

/// A directory of spills that was opened.
pub(super) struct OpenedSpills {
    pub(super) directory: Arc<SpillDirectory>,
    /// What an earlier process left in it, by session.
    pub(super) sessions: HashMap<Uuid, Spill>,
}

/// Opens a directory of spills, with what an earlier process left in it.
///
/// # Errors
/// It cannot be made or read, or another process uses it.
pub(super) fn open(options: SpillOptions) -> Result<OpenedSpills, ReaderError> {
    let mut directory = SpillDirectory::lock(options)?;
    let files = directory.files()?;
    let directory = Arc::new(directory);
    let mut sessions: HashMap<Uuid, Spill> = HashMap::new();
    for file in files {
        let spill = sessions.entry(file.session);
        let spill = spill.or_insert_with(|| Spill::new(directory.clone(), file.session));
        spill.take_up(file)?;
    }
    sessions.retain(|_, spill| !spill.is_empty());
    Ok(OpenedSpills {
        directory,
        sessions,
    })
}

/// Whether pages were appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Appended {
    /// All of them were.
    All,
    /// Not all were: the directory has its largest size, or the disk is full.
    NoRoom,
}

/// What waits on disk of one session: written at one end, read at the other.
#[derive(Debug)]
pub(super) struct Spill {
    directory: Arc<SpillDirectory>,
    session: Uuid,
    /// Content of its SESSION block, if an earlier process left files.
    content: Vec<u8>,
    parts: VecDeque<Part>,
    /// The last part, while it grows.
    writing: Option<WrittenPart>,
    /// Preamble bytes of the last part; the next part will need as many.
    preamble_bytes: u64,
    next_number: u64,
    /// The page after the last one of each slot that was put here.
    ends: BTreeMap<u32, u64>,
    /// The first page of each slot that was put here, or is gone before it.
    begins: BTreeMap<u32, u64>,
    /// Pages between those here that are gone.
    gone: SpilledGone,
    /// Where reading goes on.
    read_to: SpillPosition,
    /// The part that was read last, open.
    reading: Option<OpenPart>,
}

/// A part that grows.
#[derive(Debug)]
struct WrittenPart {
    output: Output,
    /// Bytes of the schema stream in it.
    schema_bytes: u64,
}

/// A part that is open to be read.
#[derive(Debug)]
struct OpenPart {
    number: u64,
    file: File,
}

impl Spill {
    /// A spill without files.
    pub(super) fn new(directory: Arc<SpillDirectory>, session: Uuid) -> Self {
        Self {
            directory,
            session,
            content: Vec::new(),
            parts: VecDeque::new(),
            writing: None,
            preamble_bytes: 8 << 10,
            next_number: 0,
            ends: BTreeMap::new(),
            begins: BTreeMap::new(),
            gone: SpilledGone::default(),
            read_to: SpillPosition::default(),
            reading: None,
        }
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether everything in it was read.
    pub(super) fn is_read(&self) -> bool {
        let last = self.parts.back();
        last.is_none_or(|part| part.end() <= self.read_to)
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// How long its oldest page may have waited; 0 if nothing waits.
    pub(super) fn age(&self) -> Duration {
        let begun = self.parts.front().map(|part| part.begun);
        begun.map_or(Duration::ZERO, |begun| begun.elapsed().unwrap_or_default())
    }

    /// The page after the last one of each slot that was put here.
    pub(super) fn ends(&self) -> Vec<SlotPosition> {
        SlotPosition::list(&self.ends)
    }

    /// The first page of each slot that was put here: those before it were acknowledged.
    pub(super) const fn begins(&self) -> &BTreeMap<u32, u64> {
        &self.begins
    }

    /// Pages between those here that are gone.
    pub(super) const fn gone(&self) -> &SpilledGone {
        &self.gone
    }

    /// Takes note of pages that are gone, if some that may come before them wait here.
    pub(super) fn note_gone(&mut self, ranges: &[GoneRange]) {
        if !self.is_empty() {
            self.gone.note(ranges);
        }
    }

    /// The page after the last one of a slot that was put here; 0: none was.
    pub(super) fn end_of(&self, slot: u32) -> u64 {
        self.ends.get(&slot).copied().unwrap_or_default()
    }

    /// Its files, as a pattern.
    pub(super) fn place(&self) -> String {
        self.directory.pattern_of(self.session)
    }

    /// Content of the SESSION block that an earlier process left.
    pub(super) fn session_content(&self) -> &[u8] {
        &self.content
    }

    /// Takes up the whole blocks of a file that an earlier process left. A part of a block at its
    /// end was being written when that process was killed, so its page is still in the ring.
    fn take_up(&mut self, found: SpillFile) -> Result<(), ReaderError> {
        let SpillFile { number, path, .. } = found;
        let file = File::open(&path).map_err(io_at("open", &path))?;
        let about = file.metadata().map_err(io_at("stat", &path))?;
        let mut part = Part {
            number,
            bytes: about.len(),
            begun: about.modified().unwrap_or(SystemTime::now()),
            path,
        };
        let mut whole = 0;
        while let Ok(piece) = part.read(&file, whole)
            && !piece.is_empty()
        {
            whole += piece.len() as u64;
            self.learn_from(&piece);
        }
        part.bytes = whole;
        self.next_number = number + 1;
        self.directory.add(whole);
        if whole == 0 {
            return self.remove(&part);
        }
        self.parts.push_back(part);
        Ok(())
    }

    /// Takes the session's content and the slots' last pages from checked blocks.
    fn learn_from(&mut self, piece: &[u8]) {
        for block in Blocks::new(piece) {
            if block.header.kind == kind::SESSION {
                self.content = block.stored().to_vec();
            }
            if block.header.kind == kind::PROGRESS {
                let gone = ranges_of(block.stored());
                for range in &gone {
                    self.begin_at(range.slot, range.from);
                }
                self.gone.read(&gone);
            }
            if let Some(SlotPage { slot, page }) = page_of(&block) {
                let end = self.ends.entry(slot).or_default();
                *end = (*end).max(page.saturating_add(1));
                self.begin_at(slot, page);
            }
        }
    }

    fn begin_at(&mut self, slot: u32, page: u64) {
        let begin = self.begins.entry(slot).or_insert(page);
        *begin = page.min(*begin);
    }

    /// Bytes of pages that still fit into the directory.
    pub(super) fn room(&self) -> u64 {
        self.directory.room().saturating_sub(self.preamble_bytes)
    }

    /// Appends pages of a drain, after the schema that they need and what is gone before them.
    ///
    /// # Errors
    /// They cannot be written.
    pub(super) fn append(
        &mut self,
        drain: &SessionDrain,
        ledger: &Ledger,
        pages: &[u8],
    ) -> Result<Appended, ReaderError> {
        if self.is_empty() {
            // What was acknowledged lies before the pages that are put here now.
            self.gone.begin(ledger.gone.unacknowledged());
            self.begins.clear();
        }
        let most = self.directory.file_bytes();
        self.writing = self
            .writing
            .take()
            .filter(|part| part.output.bytes() < most && part.output.can_resume());
        let (mut preamble, schema_bytes) = self.preamble(drain);
        preamble.extend(ledger.keep(self.session, self.gone.unwritten()));
        if self.directory.room() < (preamble.len() + pages.len()) as u64 {
            return Ok(Appended::NoRoom);
        }
        if self.writing.is_none() {
            self.begin()?;
        }
        let Some(part) = &mut self.writing else {
            return Ok(Appended::NoRoom);
        };
        // The session may go by another uuid now; the files keep that of their names.
        let pages = &*own_uuid::of_blocks(pages, self.session);
        let before = part.output.bytes();
        let written = part.output.write_blocks(&preamble).and_then(|()| {
            part.schema_bytes = schema_bytes;
            part.output.write_blocks(pages)
        });
        let bytes = part.output.bytes();
        if let Some(part) = self.parts.back_mut() {
            part.bytes = bytes;
        }
        self.directory.add(bytes - before);
        match written {
            Err(error) if error.is_no_space() => Ok(Appended::NoRoom),
            written => written.map(|()| {
                for range in self.gone.unwritten().to_vec() {
                    self.begin_at(range.slot, range.from);
                }
                self.gone.wrote_all();
                self.learn_from(pages);
                Appended::All
            }),
        }
    }

    /// The blocks that must precede new pages in the present part, or all that a new part begins
    /// with, and the schema bytes of the part with them.
    fn preamble(&mut self, drain: &SessionDrain) -> (Vec<u8>, u64) {
        let (mut blocks, session) = (Vec::new(), self.session);
        let mut schema_bytes = self.writing.as_ref().map_or(0, |part| part.schema_bytes);
        let is_new = self.writing.is_none();
        if is_new {
            let content = drain.session_content();
            let content = own_uuid::of_content(&content, session);
            fits(write::session(&mut blocks, session, &content));
        }
        while let Some(piece) = drain.schema_at(schema_bytes) {
            let SchemaPiece { offset, bytes } = piece;
            fits(write::schema(&mut blocks, session, offset, &bytes));
            schema_bytes += bytes.len() as u64;
        }
        if is_new {
            self.preamble_bytes = blocks.len() as u64;
        }
        (blocks, schema_bytes)
    }

    /// Begins a new part.
    fn begin(&mut self) -> Result<(), ReaderError> {
        let mut path = self.directory.path_of(self.session, self.next_number);
        // A damaged file, which stays, keeps its number.
        while path.symlink_metadata().is_ok() {
            self.next_number += 1;
            path = self.directory.path_of(self.session, self.next_number);
        }
        self.writing = Some(WrittenPart {
            output: Output::create(&path, Durability::System)?,
            schema_bytes: 0,
        });
        self.parts.push_back(Part {
            number: self.next_number,
            path,
            bytes: 0,
            begun: SystemTime::now(),
        });
        self.next_number += 1;
        Ok(())
    }

    /// Reads the next piece of whole blocks. Empty: everything was read.
    ///
    /// # Errors
    /// A file cannot be read, or is damaged; the next call goes on after it.
    pub(super) fn read(&mut self) -> Result<Vec<u8>, ReaderError> {
        while let Some(part) = self
            .parts
            .iter()
            .find(|part| part.number > self.read_to.part || part.end() > self.read_to)
        {
            if part.number > self.read_to.part {
                self.read_to = SpillPosition {
                    part: part.number,
                    byte: 0,
                };
            }
            let opened = match self.reading.take() {
                Some(open) if open.number == part.number => Ok(open.file),
                _ => File::open(&part.path).map_err(io_at("open", &part.path)),
            };
            let read = opened.and_then(|file| Ok((part.read(&file, self.read_to.byte)?, file)));
            let (piece, file) = read.inspect_err(|_| self.read_to.byte = part.bytes)?;
            if !piece.is_empty() {
                self.read_to.byte += piece.len() as u64;
                let number = part.number;
                self.reading = Some(OpenPart { number, file });
                return Ok(piece);
            }
            self.read_to.byte = part.bytes;
        }
        Ok(Vec::new())
    }

    /// The position up to which it was read: what [`Spill::free`] wants once that is durable.
    pub(super) fn read_to(&self) -> SpillPosition {
        self.read_to
    }

    /// Reads from the start again: the connection was lost.
    pub(super) fn rewind(&mut self) {
        self.read_to = SpillPosition::default();
    }

    /// Removes the files that lie before this position: the collector has them.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub(super) fn free(&mut self, to: SpillPosition) -> Result<(), ReaderError> {
        while self.parts.front().is_some_and(|part| part.end() <= to) {
            if self.parts.len() == 1 {
                self.writing = None;
            }
            if let Some(part) = self.parts.pop_front() {
                self.remove(&part)?;
            }
        }
        Ok(())
    }

    fn remove(&self, part: &Part) -> Result<(), ReaderError> {
        self.directory.subtract(part.bytes);
        fs::remove_file(&part.path).map_err(io_at("remove", &part.path))
    }
}
