//! Where a dump goes: a file or a pipe, written in whole batches.
//!
//! What lies before a failed batch is a valid dump: a target is cut back to the last whole block.
//! The files of a rotating dump are renamed, never copied.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{ReaderError, io_at};

/// When bytes that were written are made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// When the system writes them back: a power loss may take them.
    #[default]
    System,
    /// Before the write returns.
    EachWrite,
}

/// Something a dump can be written to.
pub trait Target: Send {
    /// Writes some of `bytes`, as `write(2)` does.
    ///
    /// # Errors
    /// What the system said.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Makes everything written durable before it returns.
    ///
    /// # Errors
    /// What the system said.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the target back to its first `bytes` bytes.
    ///
    /// # Errors
    /// What the system said, or `Unsupported`: the target keeps what was written.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;
}

/// A target that is a stream of bytes: a pipe, standard output, anything else that is [`Write`].
#[derive(Debug)]
pub struct Stream<W>(pub W);

impl<W: Write + Send> Target for Stream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn cut(&mut self, _bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A file that this process creates and appends to.
struct DumpFile(File);

impl Target for DumpFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        use std::io::Seek;
        self.0.set_len(bytes)?;
        self.0.seek(io::SeekFrom::Start(bytes)).map(drop)
    }
}

/// A file that is created with its first bytes, in the place of one that is there.
struct Replacement {
    path: PathBuf,
    durability: Durability,
    file: Option<DumpFile>,
    /// Descriptors kept free for the file and its directory: by the time of the first bytes, open
    /// sessions may have taken all others.
    spare: Vec<File>,
}

impl Replacement {
    fn file(&mut self) -> io::Result<&mut DumpFile> {
        match &mut self.file {
            Some(file) => Ok(file),
            none => {
                keep_old(&self.path)?;
                self.spare.clear();
                let file = File::create(&self.path)?;
                if self.durability == Durability::EachWrite {
                    sync_directory(&self.path).map_err(io::Error::other)?;
                }
                Ok(none.insert(DumpFile(file)))
            }
        }
    }
}

impl Target for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), DumpFile::sync)
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.cut(bytes))
    }
}

/// Gives a file with content the ending `.old`; an older file of that name is replaced.
fn keep_old(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|about| about.is_file() && about.len() > 0) {
        let mut old = path.as_os_str().to_owned();
        old.push(".old");
        fs::rename(path, old)?;
    }
    Ok(())
}

/// An open target with its name and its length so far.
pub struct Output {
    target: Box<dyn Target>,
    name: String,
    bytes: u64,
    durability: Durability,
    /// Part of a block lies at the target's end and could not be cut off.
    broken: bool,
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("name", &self.name)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Output {
    /// An output that writes to `target`; `name` is for messages.
    #[must_use]
    pub fn new(target: Box<dyn Target>, name: &str, durability: Durability) -> Self {
        Self {
            target,
            name: name.to_owned(),
            bytes: 0,
            durability,
            broken: false,
        }
    }

    /// Creates (or empties) the file at `path`. With [`Durability::EachWrite`] its name is durable,
    /// too, when this returns, and so are earlier renames in its directory.
    ///
    /// # Errors
    /// What `open` or `fsync` said.
    pub fn create(path: &Path, durability: Durability) -> Result<Self, ReaderError> {
        let file = File::create(path).map_err(io_at("create", path))?;
        if durability == Durability::EachWrite {
            sync_directory(path)?;
        }
        let name = path.display().to_string();
        Ok(Self::new(Box::new(DumpFile(file)), &name, durability))
    }

    /// Creates the file at `path` with the first bytes that are written. A file with content that
    /// is there then gets the ending `.old`; an output that writes nothing replaces nothing.
    #[must_use]
    pub fn replacing(path: &Path, durability: Durability) -> Self {
        let target = Replacement {
            path: path.to_owned(),
            durability,
            file: None,
            spare: (0..2)
                .filter_map(|_| File::open("/dev/null").ok())
                .collect(),
        };
        Self::new(Box::new(target), &path.display().to_string(), durability)
    }

    /// An output to standard output. It bypasses the buffer that the standard library keeps for
    /// text.
    ///
    /// # Errors
    /// What `dup` said.
    pub fn stdout(durability: Durability) -> Result<Self, ReaderError> {
        use std::os::fd::AsFd;
        let name = "standard output";
        let own = io::stdout().as_fd().try_clone_to_owned();
        let file = File::from(own.map_err(io_at("dup", name))?);
        Ok(Self::new(Box::new(Stream(file)), name, durability))
    }

    /// Name of the target, for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes written so far, always whole blocks: the offset of the next one.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether writing can go on after a failure: the target ends with a whole block.
    #[must_use]
    pub fn can_resume(&self) -> bool {
        !self.broken
    }

    /// Writes whole blocks. On failure the target is cut back to what was there before.
    ///
    /// # Errors
    /// [`ReaderError::Output`] with the offset at which the blocks would have started.
    pub fn write_blocks(&mut self, blocks: &[u8]) -> Result<(), ReaderError> {
        let written = write_whole(self.target.as_mut(), blocks).map_err(|e| ("write", e));
        let synced = written.and_then(|()| self.synced().map_err(|e| ("sync", e)));
        match synced {
            Ok(()) => {
                self.bytes += blocks.len() as u64;
                Ok(())
            }
            Err((action, source)) => {
                // A target that cannot be cut keeps part of a block after the valid prefix;
                // decoders report it as such.
                self.broken |= self.target.cut(self.bytes).is_err();
                Err(ReaderError::Output {
                    name: self.name.clone(),
                    action,
                    offset: self.bytes,
                    source,
                })
            }
        }
    }

    fn synced(&mut self) -> io::Result<()> {
        match self.durability {
            Durability::EachWrite => self.target.sync(),
            Durability::System => Ok(()),
        }
    }

    /// Ends the output: what the target holds back is synced, if each write is.
    ///
    /// # Errors
    /// As [`Output::write_blocks`].
    pub fn finish(&mut self) -> Result<(), ReaderError> {
        self.write_blocks(&[])
    }
}

fn write_whole(target: &mut dyn Target, mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        match target.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The files of a rotating dump: `PATH` is being written, `PATH.1` is the file before it, and so
/// on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// Size at which a file is closed, in bytes.
    pub bytes: u64,
    /// Files kept, the one being written included; at least 1.
    pub keep: u32,
}

/// Path of the `age`-th file of a rotating dump, of which 0 is being written.
#[must_use]
pub fn rotated_path(path: &Path, age: u32) -> PathBuf {
    if age == 0 {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{age}"));
    PathBuf::from(name)
}

/// Makes room for a new file at `path`: the age of every file grows by one, and the oldest is
/// removed. Only files before the first gap move, so a call that failed half way can be repeated.
///
/// # Errors
/// What `rename` or `unlink` said.
pub fn rotate_files(path: &Path, keep: u32) -> Result<(), ReaderError> {
    let keep = keep.max(1);
    let mut gap = None;
    for age in 0..keep {
        let file = rotated_path(path, age);
        // A file that is mistaken for missing would be overwritten by the next rename.
        if !file.try_exists().map_err(next_file("stat", &file))? {
            gap = Some(age);
            break;
        }
    }
    if gap.is_none() {
        let oldest = rotated_path(path, keep - 1);
        fs::remove_file(&oldest).map_err(next_file("remove", &oldest))?;
    }
    for age in (0..gap.unwrap_or(keep - 1)).rev() {
        let from = rotated_path(path, age);
        fs::rename(&from, rotated_path(path, age + 1)).map_err(next_file("rename", &from))?;
    }
    Ok(())
}

/// Ties an I/O error to the next file of a rotating dump.
fn next_file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ReaderError {
    let path = path.to_owned();
    move |source| ReaderError::NextFile {
        action,
        path,
        source,
    }
}

/// Creates the next file of a rotating dump, which starts with `preamble`. On failure no file is
/// left.
///
/// # Errors
/// What was tried and what the system said.
pub(crate) fn create_next(
    path: &Path,
    durability: Durability,
    preamble: &[u8],
) -> Result<Output, ReaderError> {
    let made = Output::create(path, durability).and_then(|mut output| {
        output.write_blocks(preamble)?;
        Ok(output)
    });
    made.map_err(|error| {
        // Pages after part of a preamble could not be decoded. A file that cannot be removed was
        // cut back to nothing.
        let _ = fs::remove_file(path);
        match error {
            ReaderError::Io { action, source, .. } | ReaderError::Output { action, source, .. } => {
                next_file(action, path)(source)
            }
            other => other,
        }
    })
}

/// Makes the names in the directory of `path` durable: a file whose name is lost with the power is
/// lost, however well its content was synced.
fn sync_directory(path: &Path) -> Result<(), ReaderError> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let directory = parent.unwrap_or(Path::new("."));
    let synced = File::open(directory).and_then(|opened| opened.sync_all());
    synced.map_err(io_at("sync", directory))
}
