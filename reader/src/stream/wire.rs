//! A connection's bytes: sent without waiting for a peer that does not take them, received as
//! whole checked blocks.

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
use super::tls_socket::Encrypted;
use super::socket::{Bytes, Reference, connect_tcp, poll_for, send_more};

/// Silence after which the other side is taken for gone.
pub(super) const SILENT: Duration = Duration::from_millis(SILENT_MS as u64);
/// Largest content of a message: RESUME with every slot that there can be.
const MESSAGE_BYTES_MAX: u32 = 1 << 20;
/// How long the system may take to take more of what is sent, before it is set aside.
const PATIENCE: Duration = Duration::from_millis(5);
const CHUNK: usize = 16 << 10;

/// A message from the other side.
pub(super) struct Message {
    pub(super) header: BlockHeader,
    pub(super) content: Vec<u8>,
}

/// Something that was sent and waits for the system.
enum Piece {
    Bytes(Vec<u8>),
    Reference(Reference),
}

/// One connection.
pub(super) struct Wire {
    bytes: Box<dyn Bytes>,
    input: Vec<u8>,
    /// Sent, and not taken by the system yet.
    output: VecDeque<Piece>,
    heard_at: Instant,
    ended: bool,
}

impl Wire {
    /// Connects; with `credentials` over TLS.
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
                Box::new(Encrypted::over(tcp, place, credentials, SILENT)?)
            }
        };
        Ok(Self::over(bytes))
    }

    pub(super) fn over(bytes: Box<dyn Bytes>) -> Self {
        Self {
            bytes,
            input: Vec::new(),
            output: VecDeque::new(),
            heard_at: Instant::now(),
            ended: false,
        }
    }

    /// Sends it. What the system does not take soon waits here, and goes out when something is
    /// received: a caller that sends a lot asks [`Wire::is_full`] first.
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
            self.output.push_back(Piece::Bytes(rest.to_vec()));
        }
        self.flush()
    }

    /// Whether pages can be sent by reference.
    pub(super) fn takes_references(&self) -> bool {
        self.bytes.plain().is_some()
    }

    /// As [`Wire::send`], a block whose content is sent by reference.
    pub(super) fn send_page(&mut self, head: &[u8], mut content: Reference) -> io::Result<()> {
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
            self.output.push_back(Piece::Bytes(rest.to_vec()));
        }
        self.output.push_back(Piece::Reference(content));
        Ok(())
    }

    /// Whether the system does not take what was sent.
    pub(super) fn is_full(&self) -> bool {
        !self.output.is_empty() || self.bytes.holds_back()
    }

    fn flush(&mut self) -> io::Result<()> {
        while let Some(mut piece) = self.output.pop_front() {
            let is_gone = match &mut piece {
                Piece::Bytes(bytes) => {
                    let written = self.write(bytes)?;
                    bytes.drain(..written);
                    bytes.is_empty()
                }
                Piece::Reference(content) => {
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

    /// Writes what the system takes now.
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

    /// Waits until something comes, or goes if something waits to; at most `most`.
    pub(super) fn wait_input(&self, most: Duration) -> io::Result<()> {
        let out = match self.is_full() {
            true => PollFlags::OUT,
            false => PollFlags::empty(),
        };
        poll_for(self.bytes.fd(), PollFlags::IN | out, most).map(drop)
    }

    /// The next message, if one is there.
    pub(super) fn receive(&mut self) -> io::Result<Option<Message>> {
        if let Some(message) = self.next_message()? {
            return Ok(Some(message));
        }
        self.flush()?;
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

/// The message at the front of `input`; `None`: not all of it is there.
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
