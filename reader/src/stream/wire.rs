//! The bytes of a connection: sent without waiting for a peer that does not read, and received as
//! whole checked messages.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use ringmark_format::block::BlockHeader;
use ringmark_format::block_at::{self, BlockFault};
use ringmark_format::stream::SILENT_MS;
use rustix::event::PollFlags;

use super::address::Address;
use super::credentials::Credentials;
use super::expiry::Expiry;
use super::socket::{Bytes, FileRange, connect_tcp, poll_for, send_more};
use super::tls_socket::TlsSocket;

/// Silence after which the other side counts as gone: it sends PINGs far more often.
pub(super) const SILENT: Duration = Duration::from_millis(SILENT_MS as u64);
/// Largest content of a message in bytes: RESUME with every slot that a session can have.
const MESSAGE_BYTES_MAX: u32 = 1 << 20;
/// How long a send waits for a full socket before the rest is queued.
const PATIENCE: Duration = Duration::from_millis(5);
/// Bytes that are read at once.
const CHUNK: usize = 16 << 10;

/// A message of the collector, checked.
pub(super) struct Message {
    pub(super) header: BlockHeader,
    pub(super) content: Vec<u8>,
}

/// A part of what was sent that waits for the system.
enum Queued {
    Bytes(Vec<u8>),
    Range(FileRange),
}

/// One connection.
pub(super) struct Wire {
    bytes: Box<dyn Bytes>,
    /// Bytes received and not yet returned as a message.
    input: Vec<u8>,
    /// What was sent and the system has not taken.
    output: VecDeque<Queued>,
    /// When bytes were received last.
    heard_at: Instant,
    /// The other side has closed its direction.
    ended: bool,
}

impl Wire {
    /// Connects to a collector, over TLS if its address says so.
    ///
    /// # Errors
    /// It cannot be reached, the handshake failed, or `credentials` are needed and missing.
    pub(super) fn connect(
        address: &Address,
        credentials: Option<&Credentials>,
    ) -> io::Result<Self> {
        let bytes: Box<dyn Bytes> = match address {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_nonblocking(true)?;
                Box::new(stream)
            }
            Address::Tcp(place) => Box::new(connect_tcp(place)?),
            Address::Tls(place) => {
                let text = "tls:// needs a CA, a certificate and its key";
                let missing = || io::Error::new(ErrorKind::InvalidInput, text);
                let credentials = credentials.ok_or_else(missing)?;
                let tcp = connect_tcp(place)?;
                Box::new(TlsSocket::over(tcp, place, credentials, SILENT)?)
            }
        };
        Ok(Self::over(bytes))
    }

    /// A wire over an open connection.
    pub(super) fn over(bytes: Box<dyn Bytes>) -> Self {
        Self {
            bytes,
            input: Vec::new(),
            output: VecDeque::new(),
            heard_at: Instant::now(),
            ended: false,
        }
    }

    /// Sends bytes. What the system does not take soon is queued and goes out with later calls, so
    /// a caller that sends much asks [`Wire::is_full`] first.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.flush()?;
        let mut rest = bytes;
        while self.output.is_empty() && !rest.is_empty() {
            rest = rest.get(self.write(rest)?..).unwrap_or_default();
            if !rest.is_empty() && !poll_for(self.bytes.fd(), PollFlags::OUT, PATIENCE)? {
                break;
            }
        }
        if !rest.is_empty() {
            self.output.push_back(Queued::Bytes(rest.to_vec()));
        }
        self.flush()
    }

    /// When the other side's certificate ends; `None`: it showed none.
    pub(super) fn peer_expiry(&self) -> Option<Expiry> {
        self.bytes.peer_expiry()
    }

    /// Whether pages can be sent by reference: not through TLS.
    pub(super) fn takes_references(&self) -> bool {
        self.bytes.plain().is_some()
    }

    /// As [`Wire::send`], for a block whose content is sent by reference.
    pub(super) fn send_page(&mut self, head: &[u8], mut content: FileRange) -> io::Result<()> {
        self.flush()?;
        let mut rest = head;
        if let Some(fd) = self.bytes.plain().filter(|_| self.output.is_empty()) {
            rest = head.get(send_more(fd, head)?..).unwrap_or_default();
            let mut is_gone = false;
            while rest.is_empty() && !is_gone {
                is_gone = content.send(fd)?;
                if !is_gone && !poll_for(self.bytes.fd(), PollFlags::OUT, PATIENCE)? {
                    break;
                }
            }
            if is_gone {
                return Ok(());
            }
        }
        if !rest.is_empty() {
            self.output.push_back(Queued::Bytes(rest.to_vec()));
        }
        self.output.push_back(Queued::Range(content));
        Ok(())
    }

    /// Whether something that was sent still waits for the system.
    pub(super) fn is_full(&self) -> bool {
        !self.output.is_empty() || self.bytes.holds_back()
    }

    /// Sends what is queued, as far as the system takes it now.
    fn flush(&mut self) -> io::Result<()> {
        while let Some(mut piece) = self.output.pop_front() {
            let is_gone = match &mut piece {
                Queued::Bytes(bytes) => {
                    let written = self.write(bytes)?;
                    bytes.drain(..written);
                    bytes.is_empty()
                }
                Queued::Range(content) => {
                    let fd = self.bytes.plain().ok_or(ErrorKind::Unsupported)?;
                    content.send(fd)?
                }
            };
            if !is_gone {
                self.output.push_front(piece);
                break;
            }
        }
        match self.bytes.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// Writes what the system takes now; returns how many bytes that is.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            match self.bytes.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => done += written,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Waits until bytes come, or until queued bytes can go; no longer than `most`.
    pub(super) fn wait_input(&self, most: Duration) -> io::Result<()> {
        let out = match self.is_full() {
            true => PollFlags::OUT,
            false => PollFlags::empty(),
        };
        poll_for(self.bytes.fd(), PollFlags::IN | out, most).map(drop)
    }

    /// The next message, if one has come.
    ///
    /// # Errors
    /// The other side has closed, sent what is no message, or was silent for [`SILENT`].
    pub(super) fn receive(&mut self) -> io::Result<Option<Message>> {
        if let Some(message) = self.next_message()? {
            return Ok(Some(message));
        }
        let (flushed, read) = (self.flush(), self.take_in());
        if let Some(message) = self.next_message()? {
            return Ok(Some(message));
        }
        // What the other side said before it closed counts, so these errors come after it.
        read.and(flushed)?;
        if self.ended {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if self.heard_at.elapsed() > SILENT {
            let text = format!("heard nothing for {} s", SILENT.as_secs());
            return Err(io::Error::new(ErrorKind::TimedOut, text));
        }
        Ok(None)
    }

    /// Reads what has come, within bounds.
    fn take_in(&mut self) -> io::Result<()> {
        while self.input.len() < 2 * MESSAGE_BYTES_MAX as usize && !self.ended {
            let old = self.input.len();
            self.input.resize(old + CHUNK, 0);
            let read = self.bytes.read(&mut self.input[old..]);
            self.input.truncate(old + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => self.ended = true,
                Ok(read) => {
                    self.heard_at = Instant::now();
                    if read < CHUNK && self.bytes.plain().is_some() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn next_message(&mut self) -> io::Result<Option<Message>> {
        let found = message_at(&self.input);
        let found = found.map_err(|fault| io::Error::new(ErrorKind::InvalidData, fault))?;
        if let Some(message) = &found {
            self.input.drain(..message.header.whole_bytes());
        }
        Ok(found)
    }
}

/// The message at the front of `input`; `None`: not all of it has come.
fn message_at(input: &[u8]) -> Result<Option<Message>, BlockFault> {
    let Some(header) = block_at::header(input)? else {
        return Ok(None);
    };
    block_at::check_size(&header, MESSAGE_BYTES_MAX)?;
    let Some(block) = block_at::checked(input)? else {
        return Ok(None);
    };
    let content = block.stored().to_vec();
    Ok(Some(Message { header, content }))
}
