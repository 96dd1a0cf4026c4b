//! A segment that is being written: append-only, whole blocks, readable alone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Instant;

use ringmark_decoder::store::{index_of, refuse_links_above};
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::codec::write;
use ringmark_format::stream::{HostClock, HostClockSource};
use ringmark_format::{Uuid, align8};
use ringmark_reader::realtime_error_ns;
use zerocopy::IntoBytes;

use super::error::{StoreError, io_at};
use super::options::SyncMode;
use super::session_directories;
use super::store_directory::{DirectoryOptions, remove_left};

/// How often a new segment's directory is made: it may be removed as empty at the same time.
const MAKE_TRIES: u32 = 10;

/// When a new segment gets its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// When it is created.
    AtOnce,
    /// When it is durable: see [`super::unsynced`].
    WhenDurable,
}

impl Naming {
    /// How a store that syncs so names its segments.
    pub(super) fn under(sync: SyncMode) -> Self {
        match sync {
            SyncMode::Disk => Self::WhenDurable,
            SyncMode::Cache => Self::AtOnce,
        }
    }
}

/// A segment that is being written.
#[derive(Debug)]
pub(super) struct Segment {
    /// Shared with the thread that syncs it.
    file: Arc<File>,
    /// Its path, also while it has not got that name.
    path: PathBuf,
    bytes: u64,
    begun: Instant,
    broken: bool,
}

impl Segment {
    /// Creates a segment that starts with `preamble`.
    ///
    /// # Errors
    /// It cannot be created or written; no file is left.
    pub(super) fn create(
        path: &Path,
        naming: Naming,
        preamble: &[u8],
        within: DirectoryOptions,
    ) -> Result<Self, StoreError> {
        let unnamed = session_directories::unnamed(path);
        let create = || match naming {
            // A file left there held what was not acknowledged when its session was given up.
            Naming::WhenDurable => remove_left(&unnamed).and_then(|()| within.create(&unnamed)),
            Naming::AtOnce => within.create(path),
        };
        let mut tries = 0..MAKE_TRIES;
        let file = loop {
            if let Some(directory) = path.parent() {
                let made = within.make_directory(directory);
                let made = made.and_then(|_| refuse_links_above(directory));
                made.map_err(io_at("create", directory))?;
            }
            match create() {
                Err(error) if error.kind() == ErrorKind::NotFound && tries.next().is_some() => {}
                created => break created.map_err(io_at("create", path))?,
            }
        };
        let mut segment = Self::over(file, path, 0);
        let written = segment.append(preamble);
        if written.is_err() {
            // The next try will take the same name.
            let _ = fs::remove_file(match naming {
                Naming::WhenDurable => &unnamed,
                Naming::AtOnce => path,
            });
        }
        written.map(|()| segment)
    }

    /// Goes on with a segment after its first `bytes` bytes; what follows them is cut off.
    ///
    /// # Errors
    /// It cannot be opened or cut.
    pub(super) fn resume(path: &Path, bytes: u64) -> Result<Self, StoreError> {
        let open = || {
            // The index will no longer be right.
            remove_left(&index_of(path))?;
            let mut file = OpenOptions::new().write(true).open(path)?;
            file.set_len(bytes)?;
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        let file = open().map_err(io_at("open", path))?;
        Ok(Self::over(file, path, bytes))
    }

    fn over(file: File, path: &Path, bytes: u64) -> Self {
        Self {
            file: Arc::new(file),
            path: path.to_owned(),
            bytes,
            begun: Instant::now(),
            broken: false,
        }
    }

    /// Its path, also while it has not got that name.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes in it, always whole blocks.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When this process began to write it.
    pub(super) fn begun(&self) -> Instant {
        self.begun
    }

    /// Whether part of a block lies at its end and could not be cut off: nothing may be appended.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Appends whole blocks. On failure the segment is cut back to what it was.
    ///
    /// # Errors
    /// What `write` said.
    pub(super) fn append(&mut self, blocks: &[u8]) -> Result<(), StoreError> {
        let written = (&*self.file).write_all(blocks);
        if let Err(source) = written {
            self.broken |= self.cut().is_err();
            return Err(io_at("write", &self.path)(source));
        }
        self.bytes += blocks.len() as u64;
        Ok(())
    }

    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(self.bytes)?;
        (&*self.file).seek(SeekFrom::End(0)).map(drop)
    }

    /// The open file, to be synced.
    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }
}

/// A segment that was closed and may not be durable.
#[derive(Debug)]
pub(super) struct ClosedSegment {
    path: PathBuf,
    /// Dropped by its last user, the sync, as soon as the segment is durable.
    file: Weak<File>,
}

impl ClosedSegment {
    /// What is remembered of a segment that is being closed.
    pub(super) fn of(segment: &Segment) -> Self {
        Self {
            path: segment.path.clone(),
            file: Arc::downgrade(&segment.file),
        }
    }

    /// Path of the segment that was closed.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it may not be durable yet.
    pub(super) fn is_unsynced(&self) -> bool {
        self.file.strong_count() > 0
    }
}

/// The content of HOST_CLOCK, measured by the collector of this store.
pub(super) fn clock_content(clock: &HostClock, collector: [u8; 16]) -> Vec<u8> {
    let source = HostClockSource {
        collector,
        // 0 says that nothing keeps this clock right.
        error_ns: realtime_error_ns().map_or(0, |error| error.max(1)),
    };
    [clock.as_bytes(), source.as_bytes()].concat()
}

/// What every segment begins with, so that each can be read alone: SESSION, all schema, the clock.
pub(super) fn preamble(uuid: Uuid, content: &[u8], schema: &[u8], clock: Option<&[u8]>) -> Vec<u8> {
    const PIECE: usize = 1 << 20;
    let mut blocks = Vec::with_capacity(BlockHeader::BYTES + align8(content.len()));
    // Content and schema came in blocks, so they fit into blocks.
    let _ = write::session(&mut blocks, uuid, content);
    for (number, piece) in schema.chunks(PIECE).enumerate() {
        let _ = write::schema(&mut blocks, uuid, (number * PIECE) as u64, piece);
    }
    if let Some(clock) = clock {
        let header = write::header(kind::HOST_CLOCK, uuid);
        let _ = write::block(&mut blocks, header, clock);
    }
    blocks
}
