//! The directory of a spill: held by one process, with a largest size, and the files in it.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ringmark_format::Uuid;
use ringmark_format::block::BlockHeader;
use ringmark_format::block_at::{self, BlockFault};
use rustix::fs::{FlockOperation, flock};

use crate::error::{ReaderError, io_at};

/// Size in bytes at which a file is closed, or a sixteenth of the directory's size if that is less:
/// space is given back file by file.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Where pages may wait on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillOptions {
    /// The directory; it is made if it is not there.
    pub directory: PathBuf,
    /// Most bytes of all files in it.
    pub bytes_max: u64,
}

/// The directory, held by this process alone.
#[derive(Debug)]
pub(in crate::stream) struct SpillDirectory {
    options: SpillOptions,
    /// Notices about files in it that are left alone.
    pub(in crate::stream) notices: Vec<String>,
    /// Bytes of all files in it that wait.
    used: AtomicU64,
    /// Holds the lock until it is dropped.
    _lock: File,
}

impl SpillDirectory {
    /// Makes the directory if it is not there, and locks it.
    ///
    /// # Errors
    /// It cannot be made, or another process uses it.
    pub(super) fn lock(options: SpillOptions) -> Result<Self, ReaderError> {
        let path = &options.directory;
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(path);
        made.map_err(io_at("create", path))?;
        let lock = File::open(path).map_err(io_at("open", path))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| io_at("lock (does another stream use it?)", path)(error.into()))?;
        Ok(Self {
            options,
            notices: Vec::new(),
            used: AtomicU64::new(0),
            _lock: lock,
        })
    }

    /// The files in it that a streamer made, by session and number. A damaged one gets a notice
    /// instead: it is neither sent nor removed.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub(super) fn files(&mut self) -> Result<Vec<SpillFile>, ReaderError> {
        let mut files = files_of(&self.options.directory)?;
        files.retain(|file| match begins_with_damage(&file.path) {
            Some(fault) => {
                let path = file.path.display();
                let text = format!("{path}: {fault}; it is not sent, and stays");
                self.notices.push(text);
                false
            }
            None => true,
        });
        Ok(files)
    }

    /// Bytes of all files in it that wait.
    pub(in crate::stream) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Counts bytes that were added to a file.
    pub(super) fn add(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes of a file that is removed.
    pub(super) fn subtract(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes that still fit.
    pub(super) fn room(&self) -> u64 {
        self.options.bytes_max.saturating_sub(self.used())
    }

    /// Size in bytes at which a file is closed.
    pub(super) fn file_bytes(&self) -> u64 {
        (self.options.bytes_max / 16).min(FILE_BYTES_MAX)
    }

    /// The files of a session, as a pattern.
    pub(super) fn pattern_of(&self, session: Uuid) -> String {
        let pattern = self.options.directory.join(format!("{session}.*.rmk"));
        pattern.display().to_string()
    }

    /// Path of a file.
    pub(super) fn path_of(&self, session: Uuid, number: u64) -> PathBuf {
        self.options.directory.join(file_name(session, number))
    }
}

/// A file of a spill.
#[derive(Debug)]
pub(super) struct SpillFile {
    pub(super) session: Uuid,
    pub(super) number: u64,
    pub(super) path: PathBuf,
}

/// The name of a file of a spill.
fn file_name(session: Uuid, number: u64) -> String {
    format!("{session}.{number}.rmk")
}

/// The files in a directory with exactly the names that a streamer gives, by session and number.
fn files_of(directory: &Path) -> Result<Vec<SpillFile>, ReaderError> {
    let entries = fs::read_dir(directory).map_err(io_at("read", directory))?;
    let parse = |path: PathBuf| {
        let found = path.file_name()?.to_str()?;
        let (session, number) = found.split_once('.')?;
        let number = number.strip_suffix(".rmk")?.parse().ok()?;
        let session = u128::from_str_radix(&session.replace('-', ""), 16).ok()?;
        let session = Uuid(session.to_be_bytes());
        let is_ours =
            file_name(session, number) == found && path.symlink_metadata().ok()?.is_file();
        is_ours.then_some(SpillFile {
            session,
            number,
            path,
        })
    };
    let mut found: Vec<_> = entries.flatten().filter_map(|e| parse(e.path())).collect();
    found.sort_by_key(|file| (file.session.0, file.number));
    Ok(found)
}

/// What is wrong with the first block of a file. A file that ends within it is not damaged: its
/// streamer was killed while it wrote, and nothing in it was released.
fn begins_with_damage(path: &Path) -> Option<BlockFault> {
    let file = File::open(path).ok()?;
    let mut bytes = vec![0; BlockHeader::BYTES];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let header = match block_at::header(&bytes) {
        Err(fault) => return Some(fault),
        Ok(header) => header?,
    };
    bytes.resize(header.whole_bytes(), 0);
    file.read_exact_at(&mut bytes, 0).ok()?;
    block_at::checked(&bytes).err()
}
