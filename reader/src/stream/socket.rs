//! Sockets that never block, and ranges of files sent over them without a copy in this process.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::sendfile;
use rustix::net::{SendFlags, send};

use super::expiry::Expiry;

/// How long connecting to one address may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// A connection as a stream of bytes in both directions. Reading and writing never block.
pub(super) trait Bytes: Read + Write + Send {
    /// The descriptor to wait on.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Whether bytes that were written wait in this process for the system.
    fn holds_back(&self) -> bool {
        false
    }

    /// When the other side's certificate ends; `None`: it showed none.
    fn peer_expiry(&self) -> Option<Expiry> {
        None
    }

    /// The socket, if it carries the bytes as they are; `None`: they are encrypted.
    fn plain(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Bytes for TcpStream {
    fn fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }

    fn plain(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

impl Bytes for UnixStream {
    fn fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }

    fn plain(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

/// A range of a file that is sent by reference: the kernel reads it.
#[derive(Debug)]
pub(super) struct FileRange {
    file: Arc<File>,
    /// Offset of the next byte to send.
    at: u64,
    left: usize,
}

impl FileRange {
    /// The `bytes` bytes of a file from offset `at` on.
    pub(super) fn new(file: Arc<File>, at: u64, bytes: usize) -> Self {
        let left = bytes;
        Self { file, at, left }
    }

    /// Number of bytes that are not sent yet.
    pub(super) fn bytes(&self) -> usize {
        self.left
    }

    /// Sends what the socket takes now; returns whether all of it is sent.
    pub(super) fn send(&mut self, to: BorrowedFd<'_>) -> io::Result<bool> {
        while self.left > 0 {
            match sendfile(to, &self.file, Some(&mut self.at), self.left) {
                // The file was truncated: it ends before the page does.
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => self.left -= sent.min(self.left),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}

/// Sends what the socket takes now of `bytes`; the system may hold them until more follow, which
/// the caller sends at once.
pub(super) fn send_more(to: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let flags = SendFlags::MORE | SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    match send(to, bytes, flags) {
        Ok(sent) => Ok(sent),
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Waits for one of these events, but no longer than `most`; returns whether one came.
pub(super) fn poll_for(fd: BorrowedFd<'_>, events: PollFlags, most: Duration) -> io::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(fd, events)];
    let time = Timespec {
        tv_sec: most.as_secs() as i64,
        tv_nsec: i64::from(most.subsec_nanos()),
    };
    match poll(&mut fds, Some(&time)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A TCP connection to the first address of `place` that answers. It does not block, and sends
/// small messages at once.
pub(super) fn connect_tcp(place: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for at in place.to_socket_addrs()? {
        match TcpStream::connect_timeout(&at, CONNECT_WITHIN) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
