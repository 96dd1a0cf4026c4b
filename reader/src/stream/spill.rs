//! Pages that wait on disk for a collector that is away or slow: `DIR/SESSION.N.rmk`, each file a
//! dump of its own.
//!
//! Pages are released to their program when they are in a file, not when the file is on the disk:
//! they outlive this process, as they did in the ring file, and like there not a power loss. A
//! file is removed when the collector has all of it. How the collector's RESUME and what is in the
//! files fit together is the [`Track`](super::streamed_session::Track)'s business. What no streamer made is
//! neither sent nor removed.

mod files;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Display;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use ringmark_format::Uuid;
use ringmark_format::block::kind;
use ringmark_format::block_at::{self, Blocks};
use ringmark_format::codec::write;
use rustix::fs::{FlockOperation, flock};

use super::positions::{SlotPage, SpillPosition, page_of};
use crate::error::{ReaderError, io_at};
use crate::pages::batch::fits;
use crate::pages::drain::SessionDrain;
use crate::pages::positions::SlotPosition;
use crate::recording::output::Output;
use files::{begins_with_damage, name};

/// Bytes that are read at once.
const PIECE: usize = 512 << 10;
/// A file is closed when it has this size, or a sixteenth of all if that is less.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Where pages may wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillOptions {
    /// The directory; it is made if it is not there.
    pub directory: PathBuf,
    /// Most bytes in it.
    pub bytes_max: u64,
}

/// The directory, held by this process alone.
#[derive(Debug)]
pub(super) struct Place {
    options: SpillOptions,
    /// What people should know of the files in it.
    pub(super) notices: Vec<String>,
    /// Bytes in it.
    used: AtomicU64,
    _lock: File,
}

impl Place {
    /// Opens the directory, with what an earlier process left in it, by session.
    ///
    /// # Errors
    /// It cannot be made or read, or another process uses it.
    pub(super) fn open(
        options: SpillOptions,
    ) -> Result<(Arc<Self>, HashMap<Uuid, Spill>), ReaderError> {
        let path = options.directory.clone();
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&path);
        made.map_err(io_at("create", &path))?;
        let lock = File::open(&path).map_err(io_at("open", &path))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| io_at("lock (does another stream use it?)", &path)(error.into()))?;
        let (mut files, mut notices) = (files::of(&path)?, Vec::new());
        files.retain(|(_, _, path)| match begins_with_damage(path) {
            Some(what) => {
                let path = path.display();
                notices.push(format!("{path}: {what}; it is not sent, and stays"));
                false
            }
            None => true,
        });
        let place = Arc::new(Self {
            options,
            notices,
            used: AtomicU64::new(0),
            _lock: lock,
        });
        let mut found: HashMap<Uuid, Spill> = HashMap::new();
        for (session, number, path) in files {
            let spill = found.entry(session);
            let spill = spill.or_insert_with(|| Spill::new(place.clone(), session));
            spill.take_up(number, path)?;
        }
        found.retain(|_, spill| !spill.is_empty());
        Ok((place, found))
    }

    /// Bytes in it.
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn room(&self) -> u64 {
        self.options.bytes_max.saturating_sub(self.used())
    }

    fn file_bytes(&self) -> u64 {
        (self.options.bytes_max / 16).min(FILE_BYTES_MAX)
    }
}

/// One file.
#[derive(Debug)]
struct Part {
    number: u64,
    path: PathBuf,
    bytes: u64,
    begun: SystemTime,
}

impl Part {
    /// The place after its last byte.
    fn end(&self) -> SpillPosition {
        SpillPosition {
            part: self.number,
            byte: self.bytes,
        }
    }

    /// Whole checked blocks from byte `at` on, a piece of them. Empty: nothing follows.
    fn read(&self, file: &File, at: u64) -> Result<Vec<u8>, ReaderError> {
        let left = self.bytes.saturating_sub(at);
        let mut piece = vec![0; left.min(PIECE as u64) as usize];
        let failed = |e| io_at("read", &self.path)(e);
        file.read_exact_at(&mut piece, at).map_err(failed)?;
        let wrong = |what: &dyn Display| {
            let text = format!("at byte {at}: {what}; the rest of it is left out");
            io_at("read", &self.path)(io::Error::new(ErrorKind::InvalidData, text))
        };
        if let Ok(Some(header)) = block_at::header(&piece)
            && (header.whole_bytes() as u64) <= left
        {
            let read = piece.len();
            piece.resize(read.max(header.whole_bytes()), 0);
            file.read_exact_at(&mut piece[read..], at + read as u64)
                .map_err(failed)?;
        }
        let (mut whole, mut found) = (0, block_at::checked(&piece));
        while let Ok(Some(block)) = found {
            whole += block.bytes.len();
            found = block_at::checked(&piece[whole..]);
        }
        match found {
            Err(fault) if whole == 0 => Err(wrong(&fault)),
            Ok(_) if whole == 0 && left > 0 => Err(wrong(&"it ends within a block")),
            _ => {
                piece.truncate(whole);
                Ok(piece)
            }
        }
    }
}

/// What waits of one session.
#[derive(Debug)]
pub(super) struct Spill {
    place: Arc<Place>,
    session: Uuid,
    /// Content of its SESSION block, if an earlier process left something.
    content: Vec<u8>,
    parts: VecDeque<Part>,
    /// The last part, while it grows, and the schema bytes in it.
    output: Option<(Output, u64)>,
    /// Preamble bytes of the last part; the next part will need as many.
    front_bytes: u64,
    next_number: u64,
    /// The page after the last one of each slot, as an earlier process left it.
    ends: BTreeMap<u32, u64>,
    /// Where reading goes on.
    at: SpillPosition,
    reading: Option<(u64, File)>,
}

impl Spill {
    pub(super) fn new(place: Arc<Place>, session: Uuid) -> Self {
        Self {
            place,
            session,
            content: Vec::new(),
            parts: VecDeque::new(),
            output: None,
            front_bytes: 8 << 10,
            next_number: 0,
            ends: BTreeMap::new(),
            at: SpillPosition::default(),
            reading: None,
        }
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether all of it was read.
    pub(super) fn is_read(&self) -> bool {
        let last = self.parts.back();
        last.is_none_or(|part| part.end() <= self.at)
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// How long the oldest of it may have waited.
    pub(super) fn age(&self) -> Duration {
        let begun = self.parts.front().map(|part| part.begun);
        begun.map_or(Duration::ZERO, |begun| begun.elapsed().unwrap_or_default())
    }

    /// The page after the last one of each slot, as an earlier process left it.
    pub(super) fn ends(&self) -> Vec<SlotPosition> {
        SlotPosition::list(&self.ends)
    }

    /// Content of the SESSION block that an earlier process left.
    pub(super) fn session_content(&self) -> &[u8] {
        &self.content
    }

    /// Takes up a file that an earlier process left: what is whole of it. The rest was being
    /// written, and is in the ring still.
    fn take_up(&mut self, number: u64, path: PathBuf) -> Result<(), ReaderError> {
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
            self.look_at(&piece);
        }
        part.bytes = whole;
        self.next_number = number + 1;
        self.place.used.fetch_add(whole, Ordering::Relaxed);
        if whole == 0 {
            return self.remove(&part);
        }
        self.parts.push_back(part);
        Ok(())
    }

    /// Learns from checked blocks.
    fn look_at(&mut self, piece: &[u8]) {
        for block in Blocks::new(piece) {
            if block.header.kind == kind::SESSION {
                self.content = block.stored().to_vec();
            }
            if let Some(SlotPage { slot, page }) = page_of(&block) {
                let end = self.ends.entry(slot).or_default();
                *end = (*end).max(page.saturating_add(1));
            }
        }
    }

    /// Bytes of pages that still fit.
    pub(super) fn room(&self) -> u64 {
        self.place.room().saturating_sub(self.front_bytes)
    }

    /// Appends a drain's pages after the schema that they need. `false`: there is no room.
    ///
    /// # Errors
    /// They cannot be written.
    pub(super) fn append(
        &mut self,
        drain: &SessionDrain,
        pages: &[u8],
    ) -> Result<bool, ReaderError> {
        let most = self.place.file_bytes();
        if self
            .output
            .as_ref()
            .is_some_and(|(o, _)| o.bytes() >= most || !o.can_resume())
        {
            self.output = None;
        }
        let mut front = Vec::new();
        let mut schema_bytes = self.output.as_ref().map_or(0, |(_, bytes)| *bytes);
        if self.output.is_none() {
            fits(write::session(
                &mut front,
                self.session,
                &drain.session_content(),
            ));
        }
        while let Some(piece) = drain.schema_at(schema_bytes) {
            fits(write::schema(
                &mut front,
                self.session,
                schema_bytes,
                &piece,
            ));
            schema_bytes += piece.len() as u64;
        }
        if self.output.is_none() {
            self.front_bytes = front.len() as u64;
        }
        if self.place.room() < (front.len() + pages.len()) as u64 {
            return Ok(false);
        }
        if self.output.is_none() {
            self.begin()?;
        }
        let Some((output, schema)) = &mut self.output else {
            return Ok(false);
        };
        let before = output.bytes();
        let written = output.write_blocks(&front).and_then(|()| {
            *schema = schema_bytes;
            output.write_blocks(pages)
        });
        let bytes = output.bytes();
        if let Some(part) = self.parts.back_mut() {
            part.bytes = bytes;
        }
        self.place.used.fetch_add(bytes - before, Ordering::Relaxed);
        match written {
            Err(error) if error.is_no_space() => Ok(false),
            written => written.map(|()| true),
        }
    }

    fn begin(&mut self) -> Result<(), ReaderError> {
        let directory = &self.place.options.directory;
        let mut path = directory.join(name(self.session, self.next_number));
        // A file that was left as it is has its number for good.
        while path.symlink_metadata().is_ok() {
            self.next_number += 1;
            path = directory.join(name(self.session, self.next_number));
        }
        self.output = Some((Output::create(&path, false)?, 0));
        self.parts.push_back(Part {
            number: self.next_number,
            path,
            bytes: 0,
            begun: SystemTime::now(),
        });
        self.next_number += 1;
        Ok(())
    }

    /// Reads on: whole blocks, a piece of them.
    ///
    /// # Errors
    /// A file cannot be read, or is damaged; what follows in it is left out.
    pub(super) fn read(&mut self) -> Result<Vec<u8>, ReaderError> {
        while let Some(part) = self
            .parts
            .iter()
            .find(|part| part.number > self.at.part || part.end() > self.at)
        {
            if part.number > self.at.part {
                self.at = SpillPosition {
                    part: part.number,
                    byte: 0,
                };
            }
            let opened = match self.reading.take() {
                Some((number, file)) if number == part.number => Ok(file),
                _ => File::open(&part.path).map_err(io_at("open", &part.path)),
            };
            let read = opened.and_then(|file| Ok((part.read(&file, self.at.byte)?, file)));
            let (piece, file) = read.inspect_err(|_| self.at.byte = part.bytes)?;
            if !piece.is_empty() {
                self.at.byte += piece.len() as u64;
                self.reading = Some((part.number, file));
                return Ok(piece);
            }
            self.at.byte = part.bytes;
        }
        Ok(Vec::new())
    }

    /// How far it was read.
    pub(super) fn read_to(&self) -> SpillPosition {
        self.at
    }

    /// Reads from the start again.
    pub(super) fn rewind(&mut self) {
        self.at = SpillPosition::default();
    }

    /// What lies before this place is not needed any more.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub(super) fn free(&mut self, to: SpillPosition) -> Result<(), ReaderError> {
        while self.parts.front().is_some_and(|part| part.end() <= to) {
            if self.parts.len() == 1 {
                self.output = None;
            }
            if let Some(part) = self.parts.pop_front() {
                self.remove(&part)?;
            }
        }
        Ok(())
    }

    fn remove(&self, part: &Part) -> Result<(), ReaderError> {
        self.place.used.fetch_sub(part.bytes, Ordering::Relaxed);
        fs::remove_file(&part.path).map_err(io_at("remove", &part.path))
    }
}
