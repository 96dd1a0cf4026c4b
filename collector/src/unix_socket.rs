//! A unix socket that is listened at. Its name is taken from nothing but a socket that no process
//! listens at any more, and given back only while it leads to ours.

use std::fs::{self, FileType, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tokio::net::{UnixListener, UnixStream};

/// A socket with a name.
#[derive(Debug)]
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the name.
    file: (u64, u64),
}

impl Socket {
    /// Listens at `path`; only this user may connect.
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
            file: file(path)?,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if file(&self.path).is_ok_and(|file| file == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn file(path: &Path) -> io::Result<(u64, u64)> {
    let about = fs::symlink_metadata(path)?;
    Ok((about.dev(), about.ino()))
}

/// Removes a socket that no process listens at, and nothing else.
async fn make_room(path: &Path) -> io::Result<()> {
    is_dead(path).await?;
    // Another process may put something in its place in between. Under a name that no other process
    // knows it stays what it is, and is looked at again.
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

/// Whether a name leads to a socket that no process listens at: why not, if it does not.
async fn is_dead(path: &Path) -> io::Result<()> {
    // Links are not followed: by the next moment they may lead elsewhere.
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

fn called(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_file() => "a regular file",
        kind if kind.is_dir() => "a directory",
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_fifo() => "a pipe",
        _ => "a device",
    }
}
