//! A unix socket with a name in the file system.
//!
//! The name is taken over only from a socket at which no process listens any more: any other file
//! there stays. At the end the name is removed only while it still leads to our own socket.

use std::fs::{self, FileType, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ringmark_reader::FileId;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tokio::net::{UnixListener, UnixStream};

/// A listening socket with a name.
#[derive(Debug)]
pub(crate) struct NamedSocket {
    listener: UnixListener,
    path: PathBuf,
    file: FileId,
}

impl NamedSocket {
    /// Listens at `path`; only this user may connect.
    ///
    /// # Errors
    /// A file that is no dead socket has that name, or the system refuses it.
    pub(crate) async fn bind(path: &Path) -> io::Result<Self> {
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                make_room(path).await?;
                UnixListener::bind(path)
            }
            bound => bound,
        }?;
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            file: file_at(path)?,
        })
    }

    /// Path at which streamers connect.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the next connection.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }
}

impl Drop for NamedSocket {
    fn drop(&mut self) {
        if file_at(&self.path).is_ok_and(|file| file == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn file_at(path: &Path) -> io::Result<FileId> {
    fs::symlink_metadata(path).map(|about| FileId::of(&about))
}

/// Removes a socket at which no process listens; any other file is an error.
async fn make_room(path: &Path) -> io::Result<()> {
    is_dead(path).await?;
    // Between the check and the removal another process may put something else there. Under a name
    // that no other process knows it cannot change any more, so it is checked again there.
    let aside = path.with_file_name(format!(".{}", std::process::id()));
    let rename = |from: &Path, to: &Path| {
        renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from)
    };
    rename(path, &aside)?;
    if let Err(error) = is_dead(&aside).await {
        rename(&aside, path)?;
        return Err(error);
    }
    fs::remove_file(&aside)
}

/// Checks that a name leads to a socket at which no process listens.
///
/// # Errors
/// It leads to something else: says what.
async fn is_dead(path: &Path) -> io::Result<()> {
    // A link is not followed: a moment later it may lead elsewhere.
    let kind = fs::symlink_metadata(path)?.file_type();
    let found = if kind.is_socket() {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ok(()),
            Err(error) => format!("found a socket that may be in use ({error})"),
            Ok(_) => "a process listens there".to_owned(),
        }
    } else {
        format!("found {}", called(kind))
    };
    let text = format!(
        "{found}, expected nothing, or a socket that no process listens at; \
         name another path, or remove what is there"
    );
    Err(io::Error::new(ErrorKind::AddrInUse, text))
}

/// The kind of a file, for messages.
fn called(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_file() => "a regular file",
        kind if kind.is_dir() => "a directory",
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_fifo() => "a pipe",
        _ => "a device",
    }
}
