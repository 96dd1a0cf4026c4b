//! Where the target's loader gets the library from: the file itself where the target sees it, else
//! a copy in a memfd that the target makes, as in containers.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::LoadError;
use crate::target::not_permitted;

/// Bytes that are written at once.
const CHUNK: usize = 1 << 20;
/// Longest name of a memfd.
const NAME_MAX: usize = 249;

/// The library.
#[derive(Debug)]
pub(crate) enum Source {
    /// The target sees the same file at the same path.
    File,
    /// It does not: these bytes, in a memfd of this name.
    Copy { name: Vec<u8>, bytes: Vec<u8> },
}

impl Source {
    /// Finds out what the target sees.
    pub(crate) fn of(pid: i32, library: &Path) -> Result<Self, LoadError> {
        let unusable = |found| LoadError::NotUsable {
            pid,
            path: library.to_owned(),
            found,
        };
        let failed = |what, error| LoadError::Failed { pid, what, error };
        if !library.is_absolute() || library.as_os_str().as_bytes().len() > 1000 {
            return Err(unusable("is not a full path of at most 1000 bytes"));
        }
        let ours = fs::metadata(library).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => unusable("is not there"),
            _ => failed("reading what the library is", error),
        })?;
        let root = format!("/proc/{pid}/root");
        let within = |path: &Path| Path::new(&root).join(path.strip_prefix("/").unwrap_or(path));
        let is_there = match fs::metadata(within(library)) {
            Ok(theirs) => (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(not_permitted(pid));
            }
            Err(_) => false,
        };
        if is_there {
            return Ok(Self::File);
        }
        // The loader opens the memfd by its name there.
        if fs::symlink_metadata(within(Path::new("/proc/thread-self"))).is_err() {
            let path = library.to_owned();
            return Err(LoadError::NoProc { pid, path });
        }
        let bytes = fs::read(library).map_err(|error| failed("reading the library", error))?;
        let name = library.file_name().unwrap_or_default().as_bytes();
        let name = name[..name.len().min(NAME_MAX)].to_vec();
        Ok(Self::Copy { name, bytes })
    }

    /// Whether a mapped file of this name is the library.
    pub(crate) fn is(&self, library: &Path, mapped: &str) -> bool {
        match self {
            Self::File => mapped == library.to_string_lossy(),
            Self::Copy { name, .. } => mapped == memfd(name),
        }
    }
}

/// The path of a memfd as the kernel gives it.
fn memfd(name: &[u8]) -> String {
    format!("/memfd:{} (deleted)", String::from_utf8_lossy(name))
}

/// Opens a descriptor of the thread `tid`, which is a memfd of this name.
pub(crate) fn open(pid: i32, tid: i32, fd: u64, name: &[u8]) -> io::Result<File> {
    let path = format!("/proc/{pid}/task/{tid}/fd/{fd}");
    let found = fs::read_link(&path)?;
    if found.to_string_lossy() != memfd(name) {
        let text = format!("descriptor {fd} is {} by now", found.display());
        return Err(io::Error::other(text));
    }
    OpenOptions::new().write(true).open(path)
}

/// Fills the memfd. The target sees by its size how far this is.
pub(crate) fn fill(mut file: File, bytes: &[u8]) -> io::Result<()> {
    bytes
        .chunks(CHUNK)
        .try_for_each(|chunk| file.write_all(chunk))
}
