//! A connection to a collector, as its protocol sees it: greeting, credit, acknowledgements, PINGs.
//!
//! Positions count the bytes of blocks since the connection began; messages do not count. The
//! collector gives credit up to some position, and acknowledges what is durable up to another one.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use ringmark_format::attribute::{self, tag};
use ringmark_format::block::BlockHeader;
use ringmark_format::codec::write;
use ringmark_format::stream::{
    Ack, Hello, Ping, Pong, Refused, Resume, ResumeSlot, STREAM_MAJOR, STREAM_MINOR, Welcome, kind,
    refusal,
};
use ringmark_format::{Uuid, align8};
use ringmark_ring::{clock, identity};
use zerocopy::{FromBytes, IntoBytes};

use super::delivered::Resumed;
use super::expiry::Expiry;
use super::socket::FileRange;
use super::terms::Terms;
use super::wire::{Message, SILENT, Wire};
use crate::pages::positions::SlotPosition;

/// What a streamer says about itself in HELLO.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Introduction {
    /// Name of the host, under which the collector stores its sessions.
    pub host: String,
    /// Identity of the host: its machine id.
    pub machine: [u8; 16],
    /// A secret that streamers share with the collector, where TLS does not prove the host.
    pub token: Option<String>,
}

impl Introduction {
    /// The introduction of this host, without a token.
    #[must_use]
    pub fn of_this_host() -> Self {
        let uname = rustix::system::uname();
        let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
        Self {
            host: uname.nodename().to_string_lossy().into_owned(),
            machine: identity::parse_uuid(machine.trim()),
            ..Self::default()
        }
    }
}

/// A message of the collector on which its streamer must act.
#[derive(Debug)]
pub(super) enum CollectorMessage {
    /// ACK: more bytes are durable, see [`Connection::durable`].
    Acknowledged,
    /// RESUME: what the collector has of a session.
    Resume { session: Uuid, said: Resumed },
    /// DRAIN: the collector will close.
    Drain,
}

/// A connection that was greeted.
pub(super) struct Connection {
    wire: Wire,
    /// The collector's store, as WELCOME named it.
    store: [u8; 16],
    terms: Terms,
    /// Position after the last byte that was passed to [`Connection::send`].
    sent: u64,
    /// Position before which all is durable.
    durable: u64,
    /// Position up to which may be sent.
    credit: u64,
    /// Blocks that wait for credit.
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: u64,
    /// Messages that were received and not acted on.
    received: VecDeque<CollectorMessage>,
}

impl Connection {
    /// When the collector's certificate ends; `None`: it showed none.
    pub(super) fn peer_expiry(&self) -> Option<Expiry> {
        self.wire.peer_expiry()
    }

    /// Greets the collector: says HELLO and waits for WELCOME, which gives the first credit.
    ///
    /// # Errors
    /// The collector refuses us, speaks a newer protocol, or does not answer.
    pub(super) fn open(mut wire: Wire, introduction: &Introduction) -> io::Result<Self> {
        wire.send(&hello(introduction))?;
        let begun = Instant::now();
        let (welcome, terms) = loop {
            match wire.receive()? {
                Some(message) if message.header.kind == kind::WELCOME => break welcomed(&message)?,
                Some(message) if message.header.kind == kind::REFUSED => {
                    return Err(refused(&message));
                }
                Some(message) => return Err(unexpected(&message)),
                None if begun.elapsed() > SILENT => return Err(ErrorKind::TimedOut.into()),
                None => wire.wait_input(Duration::from_millis(100))?,
            }
        };
        Ok(Self {
            wire,
            store: welcome.collector,
            terms,
            sent: 0,
            durable: 0,
            credit: welcome.credit,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            received: VecDeque::new(),
        })
    }

    /// The collector's store, on which the schema that it has depends.
    pub(super) fn store(&self) -> [u8; 16] {
        self.store
    }

    /// What it says about its acknowledgements.
    pub(super) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Whether a batch may be begun for which this is enough.
    pub(super) fn has_room(&self, most: u64) -> bool {
        let is_under_way = self.sent != self.durable;
        self.terms.has_room(self.room(), most, is_under_way)
    }

    /// Bytes of blocks sent since the connection began.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// How many of them are durable.
    pub(super) fn durable(&self) -> u64 {
        self.durable
    }

    /// Bytes that may be sent now: the credit, but nothing while the socket takes nothing.
    pub(super) fn room(&self) -> u64 {
        match self.wire.is_full() {
            true => 0,
            false => self.credit.saturating_sub(self.sent),
        }
    }

    /// Sends whole blocks of a dump. What credit does not allow is kept and sent later, so a caller
    /// that sends much asks for [`Connection::room`] first.
    pub(super) fn send(&mut self, blocks: &[u8]) -> io::Result<()> {
        self.sent += blocks.len() as u64;
        if self.sent <= self.credit {
            return self.wire.send(blocks);
        }
        self.waiting_bytes += blocks.len() as u64;
        self.waiting.push_back(blocks.to_vec());
        Ok(())
    }

    /// Whether pages can be sent by reference: not through TLS, and not where they would stay in
    /// their rings for long.
    pub(super) fn takes_references(&self) -> bool {
        self.wire.takes_references() && self.terms.against_references().is_none()
    }

    /// Sends a block whose content is sent by reference. There must be [`Connection::room`] for it.
    pub(super) fn send_page(&mut self, head: &[u8], content: FileRange) -> io::Result<()> {
        self.sent += (head.len() + content.bytes()) as u64;
        self.wire.send_page(head, content)
    }

    /// Sends what waits for credit, as far as the credit now allows.
    fn send_waiting(&mut self) -> io::Result<()> {
        while let Some(blocks) = self.waiting.front() {
            let end = self.sent - self.waiting_bytes + blocks.len() as u64;
            if end > self.credit {
                break;
            }
            self.wire.send(blocks)?;
            self.waiting_bytes -= blocks.len() as u64;
            self.waiting.pop_front();
        }
        Ok(())
    }

    /// Sends a message without content.
    pub(super) fn say(&mut self, kind: u16) -> io::Result<()> {
        let mut block = Vec::new();
        message(&mut block, kind, &[]);
        self.wire.send(&block)
    }

    /// The next message on which the streamer must act, if one has come.
    pub(super) fn hear(&mut self) -> io::Result<Option<CollectorMessage>> {
        self.take_messages()?;
        Ok(self.received.pop_front())
    }

    /// Receives what has come, and keeps it for [`Connection::hear`]. Credit counts at once.
    pub(super) fn listen(&mut self) -> io::Result<()> {
        self.take_messages()
    }

    /// Waits until the collector says something, but no longer than `most`.
    pub(super) fn wait(&self, most: Duration) -> io::Result<()> {
        self.wire.wait_input(most)
    }

    fn take_messages(&mut self) -> io::Result<()> {
        while let Some(message) = self.wire.receive()? {
            self.take(&message)?;
        }
        Ok(())
    }

    fn take_ack(&mut self, content: &[u8]) -> io::Result<()> {
        let ack: Ack = read(content)?;
        let gone = self.sent - self.waiting_bytes;
        if ack.durable > gone || ack.durable < self.durable || ack.credit < self.credit {
            return Err(contradiction("ACK"));
        }
        (self.durable, self.credit) = (ack.durable, ack.credit);
        Ok(())
    }

    /// Takes the acknowledgements that came before the collector closed: a write fails before they are read.
    pub(super) fn hear_last_acks(&mut self) {
        while let Ok(Some(message)) = self.wire.receive() {
            let is_ack = message.header.kind == kind::ACK;
            if is_ack && self.take_ack(&message.content).is_err() {
                break;
            }
        }
    }

    /// Acts on a message, or keeps it for the streamer. Messages of later versions are skipped.
    fn take(&mut self, message: &Message) -> io::Result<()> {
        let content = message.content.as_slice();
        match message.header.kind {
            kind::ACK => {
                self.take_ack(content)?;
                self.received.push_back(CollectorMessage::Acknowledged);
                self.send_waiting()?;
            }
            kind::PING => {
                let ping: Ping = read(content)?;
                let pong = Pong {
                    number: ping.number,
                    ping_real_ns: ping.real_ns,
                    real_ns: clock::realtime_ns(),
                    mono_ns: clock::monotonic_ns(),
                };
                let mut block = Vec::new();
                self::message(&mut block, kind::PONG, pong.as_bytes());
                self.wire.send(&block)?;
            }
            kind::RESUME => self.received.push_back(resume(message)?),
            kind::DRAIN => self.received.push_back(CollectorMessage::Drain),
            kind::REFUSED => return Err(refused(message)),
            kind::HELLO | kind::WELCOME | kind::PONG | kind::BYE => {
                return Err(unexpected(message));
            }
            _ => {}
        }
        Ok(())
    }
}

fn hello(introduction: &Introduction) -> Vec<u8> {
    let mut attributes = Vec::new();
    attribute::push(&mut attributes, tag::HOST, introduction.host.as_bytes());
    if let Some(token) = &introduction.token {
        attribute::push(&mut attributes, tag::TOKEN, token.as_bytes());
    }
    let hello = Hello {
        version_major: STREAM_MAJOR,
        version_minor: STREAM_MINOR,
        attributes_bytes: attributes.len() as u32,
        host: introduction.machine,
        boot_id: identity::boot_id(),
        real_ns: clock::realtime_ns(),
    };
    let mut content = hello.as_bytes().to_vec();
    content.extend_from_slice(&attributes);
    let mut block = Vec::new();
    message(&mut block, kind::HELLO, &content);
    block
}

/// Checks a WELCOME.
fn welcomed(message: &Message) -> io::Result<(Welcome, Terms)> {
    let welcome: Welcome = read(&message.content)?;
    if welcome.version_major > STREAM_MAJOR {
        let found = welcome.version_major;
        let text = format!("protocol version {found}, expected {STREAM_MAJOR}");
        return Err(io::Error::new(ErrorKind::Unsupported, text));
    }
    let attributes = message.content.get(Welcome::BYTES..).unwrap_or_default();
    let attributes = attributes.get(..welcome.attributes_bytes as usize);
    Ok((welcome, Terms::read(attributes.unwrap_or_default())))
}

fn resume(message: &Message) -> io::Result<CollectorMessage> {
    let resume: Resume = read(&message.content)?;
    let mut slots = Vec::new();
    let mut rest = message.content.get(Resume::BYTES..).unwrap_or_default();
    for _ in 0..resume.slots {
        let (slot, after) =
            ResumeSlot::read_from_prefix(rest).map_err(|_| contradiction("RESUME"))?;
        let position = SlotPosition {
            slot: slot.slot,
            next_page: slot.next_page,
        };
        slots.push((position, slot.flags));
        rest = after;
    }
    Ok(CollectorMessage::Resume {
        session: Uuid(message.header.session),
        said: Resumed {
            flags: resume.flags,
            schema_bytes: resume.schema_bytes,
            slots,
        },
    })
}

/// The collector's refusal of a session or of the whole connection.
#[derive(Debug, thiserror::Error)]
#[error("refused: {why}")]
pub(super) struct Refusal {
    /// The session; `None`: the connection.
    pub(super) session: Option<Uuid>,
    /// See [`refusal`].
    code: u32,
    why: String,
}

impl Refusal {
    /// The refusal that an error of a connection carries.
    pub(super) fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// Whether the collector has no room or no time now: nothing is wrong with what was sent.
    pub(super) const fn is_for_now(&self) -> bool {
        matches!(self.code, refusal::STORE | refusal::BUSY)
    }
}

/// The error for a REFUSED, with the collector's reason. Its bytes are escaped: they will be shown.
fn refused(message: &Message) -> io::Error {
    let text = message.content.get(Refused::BYTES..).unwrap_or_default();
    let code = read::<Refused>(&message.content).map_or(0, |refused| refused.code);
    let refusal = Refusal {
        code,
        session: Some(Uuid(message.header.session)).filter(|session| *session != Uuid([0; 16])),
        why: String::from_utf8_lossy(text).escape_debug().to_string(),
    };
    io::Error::new(ErrorKind::PermissionDenied, refusal)
}

fn unexpected(message: &Message) -> io::Error {
    let text = format!("a message of kind {} out of place", message.header.kind);
    io::Error::new(ErrorKind::InvalidData, text)
}

fn contradiction(what: &str) -> io::Error {
    let text = format!("{what} contradicts what was said before");
    io::Error::new(ErrorKind::InvalidData, text)
}

/// The fixed part of a message's content.
fn read<T: FromBytes + zerocopy::KnownLayout + zerocopy::Immutable>(
    content: &[u8],
) -> io::Result<T> {
    let read = T::read_from_prefix(content);
    read.map(|(value, _)| value)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "a message is too short"))
}

/// Appends a message: a block without a session.
fn message(out: &mut Vec<u8>, kind: u16, content: &[u8]) {
    let header: BlockHeader = write::header(kind, Uuid([0; 16]));
    let written = write::block(out, header, content);
    debug_assert!(written.is_ok() && out.len() == BlockHeader::BYTES + align8(content.len()));
}
