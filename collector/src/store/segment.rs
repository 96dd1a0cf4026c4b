//! A segment being written: append-only, whole blocks.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use ringmark_decoder::store::index_of;

use super::error::{StoreError, io_at};
use super::session_directories;
use super::store_directory::{DirectoryOptions, remove_left};

/// An open segment.
#[derive(Debug)]
pub(super) struct Segment {
    /// Shared with the thread that syncs it.
    file: Arc<File>,
    path: PathBuf,
    bytes: u64,
    begun: Instant,
    broken: bool,
}

impl Segment {
    /// A new segment that starts with `preamble`; without its name, if that comes later.
    pub(super) fn create(
        path: &Path,
        is_unnamed: bool,
        preamble: &[u8],
        within: DirectoryOptions,
    ) -> Result<Self, StoreError> {
        if let Some(directory) = path.parent() {
            let made = within.make_directory(directory);
            made.map_err(io_at("create", directory))?;
        }
        let unnamed = session_directories::unnamed(path);
        let file = match is_unnamed {
            // What was not acknowledged when its session was given up.
            true => remove_left(&unnamed).and_then(|()| within.create(&unnamed)),
            false => within.create(path),
        };
        let file = file.map_err(io_at("create", path))?;
        let mut segment = Self::over(file, path, 0);
        let written = segment.append(preamble);
        if written.is_err() {
            // Its name is taken again next time.
            let _ = fs::remove_file(if is_unnamed { &unnamed } else { path });
        }
        written.map(|()| segment)
    }

    /// Goes on with a segment that holds `bytes` valid bytes; what lies after them is cut off.
    pub(super) fn resume(path: &Path, bytes: u64) -> Result<Self, StoreError> {
        let open = || {
            // It will not be what its index says.
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

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn begun(&self) -> Instant {
        self.begun
    }

    /// Whether part of a block lies at its end: it must not be written any more.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Appends whole blocks. On failure the segment is what it was.
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

    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }
}
