//! A streamer in a few lines, that sends to a collector what a test wants.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Instant;

use ringmark_format::block::{BlockHeader, PageState, kind};
use ringmark_format::codec::write;
use ringmark_format::page::PageHeader;
use ringmark_format::stream::{self, Ack, Hello, Ping, Pong, STREAM_MAJOR, Welcome};
use ringmark_format::{PageNumber, RingId, Uuid, align8, attribute};
use ringmark_reader::stream::Credentials;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, UnixStream};
use tokio::time::timeout_at;
use tokio_rustls::TlsConnector;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// Bytes of the pages that are sent.
pub const PAGE: usize = 4096;

/// A connection as a stream of bytes in both directions.
trait Bytes: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Bytes for T {}

/// A connection to a collector.
pub struct ScriptedStreamer {
    stream: Box<dyn Bytes>,
    /// What came and is not a whole message.
    inbox: Vec<u8>,
    /// Bytes of blocks sent.
    pub sent: u64,
    /// Pages that are durable.
    pub durable: u64,
    /// Bytes that may be sent in all.
    pub credit: u64,
    /// Whether it answers PING.
    pub answers: bool,
}

impl fmt::Debug for ScriptedStreamer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ScriptedStreamer");
        shown.field("sent", &self.sent).finish_non_exhaustive()
    }
}

/// A block of any kind.
#[must_use]
pub fn block(kind: u16, session: Uuid, content: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    let written = write::block(&mut block, write::header(kind, session), content);
    written.expect("a block of a usual size");
    block
}

/// HELLO of a host.
#[must_use]
pub fn hello(host: &str) -> Vec<u8> {
    let mut attributes = Vec::new();
    attribute::push(&mut attributes, attribute::tag::HOST, host.as_bytes());
    let hello = Hello {
        version_major: STREAM_MAJOR,
        attributes_bytes: attributes.len() as u32,
        ..Hello::new_zeroed()
    };
    let content = [hello.as_bytes(), &attributes].concat();
    block(stream::kind::HELLO, Uuid([0; 16]), &content)
}

/// SESSION of a session that says nothing of itself.
#[must_use]
pub fn session(session: Uuid) -> Vec<u8> {
    block(kind::SESSION, session, &[0; 320])
}

/// A sealed page without events.
#[must_use]
pub fn page(session: Uuid, number: u64) -> Vec<u8> {
    page_of(session, number, PAGE)
}

/// The same of this size.
#[must_use]
pub fn page_of(session: Uuid, number: u64, size: usize) -> Vec<u8> {
    let header = PageHeader {
        generation: number + 1,
        ring_id: 1,
        ..PageHeader::new_zeroed()
    };
    let mut content = header.as_bytes().to_vec();
    content.resize(size, 0);
    let bytes = size as u32;
    let header = write::page_header(
        session,
        RingId(1),
        PageNumber(number),
        bytes,
        bytes,
        PageState::Sealed,
    );
    let mut block = Vec::new();
    write::block(&mut block, header, &content).expect("a page");
    block
}

impl ScriptedStreamer {
    /// A connection on which nothing was said.
    ///
    /// # Errors
    /// When no collector listens.
    pub async fn connect(socket: &Path) -> io::Result<Self> {
        Ok(Self::over(Box::new(UnixStream::connect(socket).await?)))
    }

    fn over(stream: Box<dyn Bytes>) -> Self {
        Self {
            stream,
            inbox: Vec::new(),
            sent: 0,
            durable: 0,
            credit: 0,
            answers: true,
        }
    }

    /// One that was greeted.
    ///
    /// # Errors
    /// It was refused.
    pub async fn greeted(socket: &Path, host: &str) -> io::Result<Self> {
        Self::connect(socket).await?.greet(host).await
    }

    /// The same over TLS, from this address.
    ///
    /// # Errors
    /// As [`ScriptedStreamer::greeted`].
    pub async fn greeted_over_tls(
        to: SocketAddr,
        from: Ipv4Addr,
        credentials: &Credentials,
        host: &str,
    ) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        let stream = socket.connect(to).await?;
        stream.set_nodelay(true)?;
        let connector = TlsConnector::from(credentials.as_streamer());
        let stream = connector.connect(to.ip().into(), stream).await?;
        Self::over(Box::new(stream)).greet(host).await
    }

    async fn greet(self, host: &str) -> io::Result<Self> {
        let mut peer = self;
        peer.say(&hello(host)).await?;
        let (header, content) = peer.hear().await?;
        let welcome = Welcome::read_from_prefix(&content);
        match welcome {
            Ok((welcome, _)) if header.kind == stream::kind::WELCOME => {
                peer.credit = welcome.credit;
                Ok(peer)
            }
            _ => Err(io::Error::other(format!("kind {}", header.kind))),
        }
    }

    /// Sends bytes that no credit is needed for.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Sends blocks of a dump, as soon as there is credit.
    ///
    /// # Errors
    /// As [`ScriptedStreamer::say`].
    pub async fn send(&mut self, blocks: &[u8]) -> io::Result<()> {
        while self.sent + blocks.len() as u64 > self.credit {
            let _ = self.hear().await?;
        }
        self.sent += blocks.len() as u64;
        self.say(blocks).await
    }

    /// The next thing that the collector says. PING is answered, ACK taken.
    ///
    /// # Errors
    /// The connection is gone.
    pub async fn hear(&mut self) -> io::Result<(BlockHeader, Vec<u8>)> {
        loop {
            if let Some(message) = self.next_message() {
                return self.heed(message).await;
            }
            self.read().await?;
        }
    }

    /// Hears one thing, if it is said by then; returns whether it was.
    ///
    /// # Errors
    /// As [`ScriptedStreamer::hear`].
    pub async fn hear_by(&mut self, end: Instant) -> io::Result<bool> {
        loop {
            if let Some(message) = self.next_message() {
                return self.heed(message).await.map(|_| true);
            }
            match timeout_at(end.into(), self.read()).await {
                Ok(read) => read?,
                Err(_) => return Ok(false),
            }
        }
    }

    /// Reads more. One that is given up has read nothing.
    async fn read(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.inbox).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// The message at the front of what came, if all of it is there.
    fn next_message(&mut self) -> Option<(BlockHeader, Vec<u8>)> {
        let (header, rest) = BlockHeader::read_from_prefix(&self.inbox).ok()?;
        let bytes = header.stored_bytes as usize;
        let content = rest.get(..align8(bytes))?[..bytes].to_vec();
        self.inbox.drain(..header.whole_bytes());
        Some((header, content))
    }

    /// Answers PING, and takes ACK.
    async fn heed(
        &mut self,
        (header, content): (BlockHeader, Vec<u8>),
    ) -> io::Result<(BlockHeader, Vec<u8>)> {
        if header.kind == stream::kind::ACK {
            let (ack, _) = Ack::read_from_prefix(&content).expect("a whole ACK");
            (self.durable, self.credit) = (ack.durable, ack.credit);
        } else if header.kind == stream::kind::PING && self.answers {
            let (ping, _) = Ping::read_from_prefix(&content).expect("a whole PING");
            let pong = Pong {
                number: ping.number,
                ping_real_ns: ping.real_ns,
                ..Pong::new_zeroed()
            };
            let pong = block(stream::kind::PONG, Uuid([0; 16]), pong.as_bytes());
            // The collector may have gone. What it said before is still to be read.
            let _ = self.say(&pong).await;
        }
        Ok((header, content))
    }

    /// Hears until this is said.
    ///
    /// # Errors
    /// It was refused, or the connection is gone.
    pub async fn hear_of(&mut self, kind: u16) -> io::Result<Vec<u8>> {
        loop {
            let (header, content) = self.hear().await?;
            if header.kind == kind {
                return Ok(content);
            }
            if header.kind == stream::kind::REFUSED {
                let text = String::from_utf8_lossy(content.get(8..).unwrap_or_default());
                return Err(io::Error::other(text.into_owned()));
            }
        }
    }

    /// Announces a session.
    ///
    /// # Errors
    /// It was refused.
    pub async fn announce(&mut self, uuid: Uuid) -> io::Result<()> {
        self.send(&session(uuid)).await?;
        self.hear_of(stream::kind::RESUME).await.map(drop)
    }

    /// Hears until everything that was sent is durable.
    ///
    /// # Errors
    /// It was refused.
    pub async fn settle(&mut self) -> io::Result<()> {
        while self.durable < self.sent {
            let _ = self.hear_of(stream::kind::ACK).await?;
        }
        Ok(())
    }

    /// Receives until the collector closes; returns its reason, if it gave one.
    pub async fn end(&mut self) -> String {
        loop {
            match self.hear_of(u16::MAX).await {
                Ok(_) => {}
                Err(error) => return error.to_string(),
            }
        }
    }
}
