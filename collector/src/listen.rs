//! Where connections come from.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use ringmark_reader::stream::Address;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};

/// Bytes that go both ways.
pub(crate) trait Bytes: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Bytes for T {}

/// A listening socket.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens at an address. A unix socket that nobody listens at any more is replaced; only this
    /// user may connect to ours.
    pub(crate) async fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(place) => Ok(Self::Tcp(TcpListener::bind(place).await?)),
            Address::Unix(path) => {
                let is_dead = |e: io::Error| e.kind() == io::ErrorKind::ConnectionRefused;
                if std::os::unix::net::UnixStream::connect(path).is_err_and(is_dead) {
                    std::fs::remove_file(path)?;
                }
                let listener = UnixListener::bind(path)?;
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
                Ok(Self::Unix(listener, path.clone()))
            }
        }
    }

    /// Where it listens, with the port that the system chose.
    pub(crate) fn address(&self) -> io::Result<Address> {
        Ok(match self {
            Self::Tcp(listener) => Address::Tcp(listener.local_addr()?.to_string()),
            Self::Unix(_, path) => Address::Unix(path.clone()),
        })
    }

    /// The next connection, and who it is for messages.
    pub(crate) async fn accept(&self) -> io::Result<(Box<dyn Bytes>, String)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Box::new(stream), from.to_string()))
            }
            Self::Unix(listener, path) => {
                let (stream, _) = listener.accept().await?;
                Ok((Box::new(stream), path.display().to_string()))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}
