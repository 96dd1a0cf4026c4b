//! The directory of a store: whether it is one, who may read it, and how directories and files are
//! made in it.
//!
//! Traces hold what programs log, so other users are kept out. A directory with other files in it
//! is not made a store without a request: retention would remove files there.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use ringmark_decoder::store::{ID_FILE, OBJECTS_ID, segments};
use rustix::fs::{Access, access};

use super::error::{NotAStore, StoreError, io_at};
use super::identity::is_blank;

/// What a collector may do with the directory that it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DirectoryOptions {
    /// A directory with other files in it may become a store.
    pub init: bool,
    /// The directory's group may read the store.
    pub group_readable: bool,
}

impl DirectoryOptions {
    const fn directory_mode(self) -> u32 {
        if self.group_readable { 0o750 } else { 0o700 }
    }

    const fn file_mode(self) -> u32 {
        if self.group_readable { 0o640 } else { 0o600 }
    }

    /// Makes the directory of a store if there is none, and keeps other users out. Returns a notice
    /// if the directory was open to them.
    ///
    /// # Errors
    /// It holds files that no collector made, or cannot be made.
    pub(super) fn prepare(self, root: &Path) -> Result<Option<String>, StoreError> {
        let is_made = make_root(root).map_err(io_at("create", root))?;
        let is_store = || root.join(ID_FILE).symlink_metadata().is_ok();
        let is_blank = is_blank(root, &[ID_FILE]).map_err(io_at("read", root))?;
        // Asked last: another collector may be making the store now, its identity first.
        if !(is_blank || self.init || is_store()) {
            return Err(StoreError::NotOurs {
                path: root.to_owned(),
                source: NotAStore::OtherFiles,
            });
        }
        self.close(root, is_made).map_err(io_at("look at", root))
    }

    /// Whether a directory can be a store, or be made one: nothing is changed.
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn check(self, root: &Path) -> Result<(), StoreError> {
        check_above(root).map_err(io_at("create", root))?;
        if root.symlink_metadata().is_err() {
            return Ok(());
        }
        let is_blank = is_blank(root, &[ID_FILE]).map_err(io_at("read", root))?;
        let is_store = |file: &&str| root.join(file).symlink_metadata().is_ok();
        if is_blank || self.init || [ID_FILE, OBJECTS_ID].iter().any(is_store) {
            let may_write = access(root, Access::WRITE_OK | Access::EXEC_OK);
            may_write.map_err(|error| io_at("write into", root)(error.into()))?;
            // A link among the segments is refused at the start.
            return segments(root).map(drop).map_err(io_at("read", root));
        }
        Err(StoreError::NotOurs {
            path: root.to_owned(),
            source: NotAStore::OtherFiles,
        })
    }

    /// Makes the root of a store, durably, unless it is there.
    pub(super) fn make_root(self, root: &Path) -> io::Result<()> {
        match make_root(root)? {
            // The umask may have taken bits away.
            true => fs::set_permissions(root, Permissions::from_mode(self.directory_mode())),
            false => Ok(()),
        }
    }

    /// Gives the directory its mode. A directory that we made gets no notice.
    fn close(self, root: &Path, is_made: bool) -> io::Result<Option<String>> {
        let mode = fs::metadata(root)?.mode() & 0o7777;
        let wanted = self.directory_mode();
        let (rights, rest) = (mode & 0o777, mode & 0o7000);
        if rights == wanted {
            return Ok(None);
        }
        let closed = fs::set_permissions(root, Permissions::from_mode(wanted | rest));
        let (is_open, root) = (rights & 0o077 & !wanted != 0, root.display());
        Ok(match closed {
            Ok(()) if !is_open || is_made => None,
            Ok(()) => Some(format!(
                "{root}: mode {mode:o} let other users in, it is {wanted:o} now; \
                 --group-readable lets its group read the store"
            )),
            Err(error) if is_open => Some(format!(
                "{root}: mode {mode:o} lets other users in, expected {wanted:o}, which it cannot \
                 be given: {error}"
            )),
            Err(_) => None,
        })
    }

    /// Makes a directory of the store, and those above it, with the store's mode.
    pub(super) fn make_directory(self, path: &Path) -> io::Result<bool> {
        let made = match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let above = path.parent().ok_or(error)?;
                let _ = self.make_directory(above)?;
                DirBuilder::new().mode(0o700).create(path)
            }
            made => made,
        };
        match made {
            // The umask may have taken bits away.
            Ok(()) => {
                let mode = Permissions::from_mode(self.directory_mode());
                fs::set_permissions(path, mode).map(|()| true)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates a new file with the store's mode.
    pub(super) fn create(self, path: &Path) -> io::Result<File> {
        create(path, self.file_mode())
    }
}

/// Creates a new file with exactly this mode, independent of the umask.
pub(super) fn create(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(mode).open(path)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
}

/// Removes a file that an earlier collector may have left; its name says that it is ours.
pub(super) fn remove_left(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Refuses a root whose directory is not there: its disk may not be mounted, and another would be filled.
fn check_above(root: &Path) -> io::Result<()> {
    let above = root.parent().filter(|above| !above.as_os_str().is_empty());
    match above.filter(|above| !above.exists()) {
        None => Ok(()),
        Some(above) => Err(io::Error::new(
            ErrorKind::NotFound,
            format!(
                "{} is not there: is a disk not mounted? If not, make it",
                above.display()
            ),
        )),
    }
}

/// Makes a directory, durably; returns whether it was not there before.
fn make_root(root: &Path) -> io::Result<bool> {
    check_above(root)?;
    match DirBuilder::new().mode(0o700).create(root) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
        made => made?,
    }
    let above = root.parent().filter(|above| !above.as_os_str().is_empty());
    // A directory that may not be read cannot be synced either.
    if let Ok(above) = File::open(above.unwrap_or(Path::new("."))) {
        above.sync_all()?;
    }
    Ok(true)
}
