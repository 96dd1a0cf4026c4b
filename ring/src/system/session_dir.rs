//! Where ring files live: `$RINGMARK_DIR`, else `/dev/shm/ringmark-<uid>`.
//!
//! The directory is how the sides find each other: a program makes a file in it, readers list it.
//! There is no other registry, and nothing to keep running.
//!
//! `/dev/shm` is writable by all users, so another user may have made the directory first, or put a
//! link there. Both are refused, never repaired: a program that wrote there would give its events,
//! and its memory's lifetime, into other hands.
//!
//! | directory | to read | to write |
//! | --- | --- | --- |
//! | own, mode 700 | yes | yes |
//! | writable by group or others | no | no |
//! | of another user | root only | no, root neither |
//! | a link, or no directory | no | no |

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::published_static::Published;
use crate::system::environment;

/// File name ending of a ring file.
pub const RING_FILE_ENDING: &str = ".ring";
/// File name ending of a ring file that is being laid out.
pub const DRAFT_ENDING: &str = ".starting";

/// Why a session directory was refused. Each text names the path, what was found and what was
/// expected; tracing is then off, and the program runs on.
#[derive(Debug)]
pub enum DirError {
    /// A system call failed.
    Io {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// It is a link or no directory.
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// It belongs to another user.
    ForeignOwner {
        /// The directory.
        path: PathBuf,
        /// User id of the directory's owner.
        owner: u32,
        /// The user of this process.
        expected: u32,
    },
    /// Others can write into it.
    TooOpen {
        /// The directory.
        path: PathBuf,
        /// Permission bits of the directory.
        mode: u32,
    },
}

impl std::fmt::Display for DirError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::NotADirectory { path } => {
                write!(
                    f,
                    "{}: is not a directory of its own (a link or a file)",
                    path.display()
                )
            }
            Self::ForeignOwner {
                path,
                owner,
                expected,
            } => {
                write!(
                    f,
                    "{}: belongs to uid {owner}, expected {expected}",
                    path.display()
                )
            }
            Self::TooOpen { path, mode } => {
                write!(
                    f,
                    "{}: mode {mode:o} lets others write, expected 700",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for DirError {}

/// The directory of this user's sessions. It need not exist yet, and was not checked.
#[must_use]
pub fn path() -> PathBuf {
    match environment::variable("RINGMARK_DIR") {
        Some(dir) => absolute(PathBuf::from(dir)),
        None => PathBuf::from(format!("/dev/shm/ringmark-{}", uid())),
    }
}

/// The path from the directory that this process was in when it asked first, also after `chdir` and in
/// children that it forks.
fn absolute(path: PathBuf) -> PathBuf {
    static FIRST: Published<(PathBuf, PathBuf)> = Published::new();
    if path.is_absolute() {
        return path;
    }
    // Where there is no current directory, opening says so.
    let found = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
    let first = FIRST.get_or_publish(|| Box::new((path.clone(), found.clone())));
    if first.0 == path {
        first.1.clone()
    } else {
        found
    }
}

/// Effective user id of this process: what it may open is decided by this one.
#[must_use]
pub fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes the directory if it is not there, and refuses one that is not safely this user's. To write
/// there, even root must own it: the owner of a directory can exchange what is in it.
///
/// # Errors
/// What is wrong with the directory.
pub fn ensure(path: &Path) -> Result<(), DirError> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {
            // Whatever the umask took away. A failure shows when the first file is made.
            let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
            check_owned(path)
        }
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(DirError::Io {
            path: path.to_owned(),
            source: error,
        }),
        _ => check_owned(path),
    }
}

fn check_owned(path: &Path) -> Result<(), DirError> {
    check(path)?;
    match fs::symlink_metadata(path).map(|about| about.uid()) {
        Ok(owner) if owner != uid() => Err(DirError::ForeignOwner {
            path: path.to_owned(),
            owner,
            expected: uid(),
        }),
        _ => Ok(()),
    }
}

/// Refuses a directory that is a link, belongs to another user, or can be written by others. Root
/// may read in those of all users.
///
/// # Errors
/// What is wrong with the directory.
pub fn check(path: &Path) -> Result<(), DirError> {
    let about = fs::symlink_metadata(path).map_err(|source| DirError::Io {
        path: path.to_owned(),
        source,
    })?;
    if !about.is_dir() {
        return Err(DirError::NotADirectory {
            path: path.to_owned(),
        });
    }
    if about.uid() != uid() && uid() != 0 {
        let (owner, expected) = (about.uid(), uid());
        return Err(DirError::ForeignOwner {
            path: path.to_owned(),
            owner,
            expected,
        });
    }
    if about.mode() & 0o022 != 0 {
        return Err(DirError::TooOpen {
            path: path.to_owned(),
            mode: about.mode() & 0o7777,
        });
    }
    Ok(())
}

/// Everything in a directory, in no order, without looking at what it is.
///
/// Not the standard library's reader of directories: that one panics where a directory cannot be
/// closed, and this runs inside the traced program.
///
/// # Errors
/// The directory cannot be read.
pub fn entries(path: &Path) -> io::Result<Vec<PathBuf>> {
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, rustix::fs::Mode::empty())?;
    let mut found = Vec::new();
    for entry in rustix::fs::Dir::new(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            found.push(path.join(OsStr::from_bytes(name)));
        }
    }
    Ok(found)
}

/// All paths in a directory that have the name of a ring file, in no order. [`open`] tells whether
/// one is a ring file.
///
/// # Errors
/// The directory cannot be read.
pub fn ring_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = entries(path)?;
    found.retain(|path| path.to_string_lossy().ends_with(RING_FILE_ENDING));
    Ok(found)
}

/// What a file of a session directory is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenFor {
    /// To look at it.
    Reading,
    /// To look at it and to change it: to consume, to control, to count removals.
    Writing,
}

/// Opens a ring file. Nothing but a regular file with one name: no link of either kind, and nothing
/// whose opening or reading could wait.
///
/// # Errors
/// The error of `open`, or what the path names instead.
pub fn open(path: &Path, purpose: OpenFor) -> io::Result<fs::File> {
    use rustix::fs::OFlags;
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = fs::OpenOptions::new()
        .read(true)
        .write(purpose == OpenFor::Writing)
        .custom_flags(flags.bits() as i32)
        .open(path);
    let file = opened.map_err(|error| match fs::symlink_metadata(path) {
        Ok(about) if !about.is_file() => wrong_kind(&about),
        _ => error,
    })?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(wrong_kind(&about));
    }
    if about.nlink() > 1 {
        let names = about.nlink();
        let text = format!("has {names} names (hard links), expected one");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(file)
}

/// An error that names what stands where a ring file should.
fn wrong_kind(about: &fs::Metadata) -> io::Error {
    use std::os::unix::fs::FileTypeExt;
    let kind = about.file_type();
    let kind = match () {
        () if kind.is_symlink() => "a symbolic link",
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    let text = format!("is {kind}, expected a regular file");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// Creates a file of a session directory, readable and writable by its owner only, whatever the
/// umask is. It must not exist yet: a file that another process put there is never written to.
///
/// # Errors
/// The error of `open`.
pub fn create(path: &Path) -> io::Result<fs::File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC;
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    // Whatever the umask took away: its owner's other processes must read it.
    let _ = file.set_permissions(fs::Permissions::from_mode(0o600));
    Ok(file)
}
