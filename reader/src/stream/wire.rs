//! A connection's bytes: sent without ever waiting for ever, received as whole checked blocks.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use ringmark_format::align8;
use ringmark_format::block::{BLOCK_MAGIC, BlockHeader};
use ringmark_format::codec::crc32;
use ringmark_format::stream::SILENT_MS;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use zerocopy::{FromBytes, IntoBytes};

use super::address::Address;

/// How long a connection may take to come about.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Silence after which the other side is taken for gone.
pub(super) const SILENT: Duration = Duration::from_millis(SILENT_MS as u64);
/// Largest content of a message: RESUME with every slot that there can be.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
const CHUNK: usize = 16 << 10;

/// Bytes that go both ways, without blocking.
pub(super) trait Bytes: Read + Write + Send {
    /// What to wait on.
    fn fd(&self) -> BorrowedFd<'_>;
}

impl Bytes for TcpStream {
    fn fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

impl Bytes for UnixStream {
    fn fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

/// A message from the other side.
pub(super) struct Message {
    pub(super) header: BlockHeader,
    pub(super) content: Vec<u8>,
}

/// One connection.
pub(super) struct Wire {
    bytes: Box<dyn Bytes>,
    input: Vec<u8>,
    heard_at: Instant,
    ended: bool,
}

impl Wire {
    /// Connects.
    pub(super) fn connect(address: &Address) -> io::Result<Self> {
        let bytes: Box<dyn Bytes> = match address {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_nonblocking(true)?;
                Box::new(stream)
            }
            Address::Tcp(place) => Box::new(connect_tcp(place)?),
        };
        Ok(Self::over(bytes))
    }

    pub(super) fn over(bytes: Box<dyn Bytes>) -> Self {
        Self {
            bytes,
            input: Vec::new(),
            heard_at: Instant::now(),
            ended: false,
        }
    }

    /// Sends all of it; meanwhile takes in what comes, so that two full pipes do not wait for
    /// each other.
    pub(super) fn send(&mut self, mut rest: &[u8]) -> io::Result<()> {
        while !rest.is_empty() {
            match self.bytes.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => rest = rest.get(sent..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(PollFlags::IN | PollFlags::OUT, Duration::from_millis(100))?;
                    self.take_in()?;
                }
                Err(error) => return Err(error),
            }
        }
        self.bytes.flush()
    }

    /// Waits until something comes, at most `most`.
    pub(super) fn wait_input(&self, most: Duration) -> io::Result<()> {
        self.wait(PollFlags::IN, most)
    }

    fn wait(&self, events: PollFlags, most: Duration) -> io::Result<()> {
        let mut fds = [PollFd::from_borrowed_fd(self.bytes.fd(), events)];
        let time = Timespec {
            tv_sec: most.as_secs() as i64,
            tv_nsec: i64::from(most.subsec_nanos()),
        };
        match poll(&mut fds, Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The next message, if one is there.
    pub(super) fn receive(&mut self) -> io::Result<Option<Message>> {
        if let Some(message) = self.next_message()? {
            return Ok(Some(message));
        }
        self.take_in()?;
        let message = self.next_message()?;
        if message.is_none() && self.ended {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if message.is_none() && self.heard_at.elapsed() > SILENT {
            let text = format!("heard nothing for {} s", SILENT.as_secs());
            return Err(io::Error::new(ErrorKind::TimedOut, text));
        }
        Ok(message)
    }

    fn take_in(&mut self) -> io::Result<()> {
        while self.input.len() < 2 * MESSAGE_BYTES_MAX && !self.ended {
            let old = self.input.len();
            self.input.resize(old + CHUNK, 0);
            let read = self.bytes.read(&mut self.input[old..]);
            self.input.truncate(old + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => self.ended = true,
                Ok(_) => self.heard_at = Instant::now(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn next_message(&mut self) -> io::Result<Option<Message>> {
        let Ok((header, rest)) = BlockHeader::read_from_prefix(&self.input) else {
            return Ok(None);
        };
        let wrong = |what: String| io::Error::new(ErrorKind::InvalidData, what);
        if header.magic != BLOCK_MAGIC {
            let found = header.magic.escape_ascii();
            return Err(wrong(format!(
                "not a collector: said {found}, expected RMKB"
            )));
        }
        if header.header_crc != crc32(&header.as_bytes()[..BlockHeader::BYTES - 4]) {
            return Err(wrong("a message's checksum is wrong".to_owned()));
        }
        let bytes = header.stored_bytes as usize;
        if bytes > MESSAGE_BYTES_MAX {
            let text = format!("a message of {bytes} bytes, expected at most {MESSAGE_BYTES_MAX}");
            return Err(wrong(text));
        }
        if rest.len() < align8(bytes) {
            return Ok(None);
        }
        let content = rest[..bytes].to_vec();
        if header.content_crc != crc32(&content) {
            return Err(wrong(
                "the checksum of a message's content is wrong".to_owned(),
            ));
        }
        self.input.drain(..BlockHeader::BYTES + align8(bytes));
        Ok(Some(Message { header, content }))
    }
}

/// A TCP connection that does not block, with small messages sent at once.
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
