//! One connection: greeted, its blocks taken in and stored, what is durable acknowledged.

mod durable;
mod filling;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ringmark_decoder::{BlockReader, Item};
use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::stream::{
    self, HostClock, Pong, SILENT_MS, STREAM_MAJOR, UNKNOWN_BYTES, refusal,
};
use subtle::ConstantTimeEq;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{Instant as TokioInstant, timeout, timeout_at};

use crate::block;
use crate::clocks::{Pings, now_ns};
use crate::end::End;
use crate::figures::Figures;
use crate::host_name::fits;
use crate::hosts::Presence;
use crate::listen::{Bytes, Line, say_and_close};
use crate::lock::lock;
use crate::memory::{Memory, Part};
use crate::store::{Shared, Store};
use crate::words::{self, Introduced};
use durable::Syncing;

/// Bytes that a streamer may have under way.
const WINDOW: u64 = 8 << 20;
/// Bytes after which making durable what was received begins, whatever else waits.
const ACK_BYTES: u64 = 1 << 20;
/// How long to wait for more before what was received is made durable.
const ACK_AFTER: Duration = Duration::from_millis(1);
const SILENT: Duration = Duration::from_millis(SILENT_MS as u64);
/// A connection's own buffer; blocks that are larger take from the memory of all.
const BUFFER: usize = 16 << 10;
/// Most sessions that a connection may speak of.
const SESSIONS_MAX: usize = 4096;
/// Least speed of a large block, bytes per second: nobody holds memory for ever.
const SLOWEST: u64 = 64 << 10;

/// What all connections share.
pub(crate) struct Common {
    pub(crate) store: Store,
    pub(crate) token: Option<Vec<u8>>,
    pub(crate) handshake_within: Duration,
    pub(crate) figures: Arc<Figures>,
    pub(crate) memory: Memory,
    pub(crate) draining: watch::Receiver<bool>,
}

fn wrong(what: impl Into<String>) -> End {
    End::Refused(refusal::PROTOCOL, what.into())
}

fn denied(what: String) -> End {
    End::Refused(refusal::DENIED, what)
}

/// Whether blocks of this kind are part of a session, and known.
fn is_stored(kind: u16) -> bool {
    matches!(
        kind,
        kind::SCHEMA | kind::PAGE | kind::COUNTERS | kind::HOST_CLOCK | kind::INDEX
    )
}

/// A connection.
pub(crate) struct Peer {
    bytes: Box<dyn Bytes>,
    /// The hosts that it has proved to be one of.
    proved: Option<Vec<String>>,
    common: Arc<Common>,
    host: String,
    presence: Option<Presence>,
    buffer: Vec<u8>,
    memory: Option<Part>,
    sessions: HashMap<Uuid, Shared>,
    /// Sessions with something that is not durable, and not on its way there.
    touched: Vec<Uuid>,
    received: u64,
    durable: u64,
    /// Bytes of messages of unknown kinds.
    skipped: u64,
    syncing: Option<Syncing>,
    pings: Pings,
    /// When the next one is due; none before the greeting is over.
    ping_at: Option<TokioInstant>,
    clock: Option<HostClock>,
}

impl Peer {
    pub(crate) fn new(line: Line, common: Arc<Common>) -> Self {
        Self {
            bytes: line.bytes,
            proved: line.hosts,
            common,
            host: String::new(),
            presence: None,
            buffer: Vec::with_capacity(BUFFER),
            memory: None,
            sessions: HashMap::new(),
            touched: Vec::new(),
            received: 0,
            durable: 0,
            skipped: 0,
            syncing: None,
            pings: Pings::default(),
            ping_at: None,
            clock: None,
        }
    }

    /// Serves it to its end; says why it is refused.
    pub(crate) async fn serve(mut self) -> End {
        let end = match self.greet().await {
            Ok(()) => match self.take_in().await {
                Ok(()) => End::Gone,
                Err(end) => end,
            },
            Err(end) => end,
        };
        if let Some(refused) = end.message() {
            say_and_close(self.bytes, &refused).await;
        }
        end
    }

    async fn greet(&mut self) -> Result<(), End> {
        let deadline = TokioInstant::now() + SILENT;
        let Some(header) = self.next_header(deadline).await? else {
            return Err(End::Gone);
        };
        if header.kind != stream::kind::HELLO {
            return Err(wrong(format!("kind {} first, expected HELLO", header.kind)));
        }
        let whole = block::whole(&header);
        if whole > BUFFER {
            return Err(wrong(format!(
                "HELLO of {whole} bytes, expected at most {BUFFER}"
            )));
        }
        self.fill(whole, SILENT).await?;
        let content = block::content(&header, &self.buffer).map_err(wrong)?;
        let hello = words::introduced(content).ok_or_else(|| wrong("HELLO is too short"))?;
        self.drop_front(&header);
        if hello.version_major > STREAM_MAJOR {
            let found = hello.version_major;
            let text = format!("protocol version {found}, expected at most {STREAM_MAJOR}");
            return Err(End::Refused(refusal::VERSION, text));
        }
        self.host = self.admit(&hello).map_err(denied)?;
        self.presence = Some(self.common.figures.hosts.welcome(&self.host));
        let welcome = words::welcome(self.common.store.id(), now_ns(), WINDOW);
        self.say(&welcome).await
    }

    /// The host that it may speak for: proved by its certificate, or by whoever has our token.
    fn admit(&self, hello: &Introduced) -> Result<String, String> {
        let said = &hello.host;
        fits("host", said)?;
        if let Some(proved) = &self.proved {
            let named = proved.iter().find(|name| name.eq_ignore_ascii_case(said));
            return named.cloned().ok_or_else(|| {
                let names = proved.join(", ");
                format!("the certificate is for host {names}, the streamer says it is {said}")
            });
        }
        match &self.common.token {
            Some(_) if hello.token.is_empty() => Err("a token is wanted (--token-file)".to_owned()),
            Some(token) if !bool::from(token.ct_eq(&hello.token)) => {
                Err("the token is not ours".to_owned())
            }
            _ => Ok(said.clone()),
        }
    }

    async fn take_in(&mut self) -> Result<(), End> {
        self.ping_at = Some(TokioInstant::now());
        // When the last whole block came: single bytes are no sign of life.
        let mut heard_at = TokioInstant::now();
        let mut draining = self.common.draining.clone();
        let mut told = false;
        loop {
            while self.take_block().await? {
                self.sync_if_much().await?;
                heard_at = TokioInstant::now();
            }
            if heard_at.elapsed() >= SILENT {
                return Err(End::Gone);
            }
            let ping_at = self.ping_if_due().await?;
            if *draining.borrow_and_update() && !told {
                told = true;
                self.say(&words::drain()).await?;
            }
            let mut until = ping_at.min(heard_at + SILENT);
            if self.is_to_sync() {
                until = until.min(TokioInstant::now() + ACK_AFTER);
            }
            tokio::select! {
                read = timeout_at(until, self.bytes.read_buf(&mut self.buffer)) => match read {
                    Ok(Ok(0)) => return Err(End::Gone),
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) => return Err(error.into()),
                    Err(_) => self.begin_sync().await?,
                },
                synced = durable::ended(&mut self.syncing) => self.acknowledge(synced?).await?,
                _ = draining.changed(), if !told => {}
            }
        }
    }

    /// Takes the block at the buffer's front, if it is there.
    async fn take_block(&mut self) -> Result<bool, End> {
        let Some(header) = block::header(&self.buffer).map_err(wrong)? else {
            return Ok(false);
        };
        let whole = block::whole(&header);
        if self.buffer.len() < whole {
            // It is on its way: memory for it, and a bound on its time.
            let seconds = whole as u64 / SLOWEST;
            self.fill(whole, SILENT + Duration::from_secs(seconds))
                .await?;
        }
        self.act(&header).await?;
        self.drop_front(&header);
        if header.kind < stream::kind::HELLO {
            self.received += whole as u64;
            Figures::add(&self.common.figures.received_bytes_total, whole as u64);
            self.count(|presence| presence.received(whole as u64));
        }
        Ok(true)
    }

    async fn act(&mut self, header: &BlockHeader) -> Result<(), End> {
        let whole = &self.buffer[..block::whole(header)];
        let content = block::content(header, whole).map_err(wrong)?;
        let uuid = Uuid(header.session);
        match header.kind {
            kind::SESSION => {
                let content = content.to_vec();
                self.announced(uuid, content).await
            }
            kind::CONTAINER => self.store_container(header),
            stream::kind::PONG => {
                let pong = words::pong(content).ok_or_else(|| wrong("PONG is too short"))?;
                self.measure(&pong)
            }
            stream::kind::BYE => {
                self.sync_all().await?;
                let _ = timeout(SILENT, self.bytes.shutdown()).await;
                Err(End::Gone)
            }
            stream::kind::HELLO..=stream::kind::DRAIN => Err(wrong(format!(
                "a message of kind {} out of place",
                header.kind
            ))),
            known if is_stored(known) => self.store_block(header),
            _ => self.skip(header),
        }
    }

    /// Passes over a kind of a later version. Messages need no credit, so they are bounded here.
    fn skip(&mut self, header: &BlockHeader) -> Result<(), End> {
        Figures::add(&self.common.figures.skipped_blocks_total, 1);
        if header.kind < stream::kind::HELLO {
            return Ok(());
        }
        self.skipped += block::whole(header) as u64;
        let most = u64::from(UNKNOWN_BYTES) * (self.pings.said() + 1);
        if self.skipped <= most {
            return Ok(());
        }
        let (kind, found) = (header.kind, self.skipped);
        Err(wrong(format!(
            "{found} bytes of messages of unknown kinds, at last {kind}, expected at most {most} by now"
        )))
    }

    async fn announced(&mut self, uuid: Uuid, content: Vec<u8>) -> Result<(), End> {
        if self.sessions.len() >= SESSIONS_MAX {
            return Err(wrong(format!("more than {SESSIONS_MAX} sessions")));
        }
        if self.sessions.contains_key(&uuid) {
            return Err(wrong(format!("SESSION of {uuid} a second time")));
        }
        // A session that was forgotten is read again, which takes its time.
        let (common, host) = (self.common.clone(), self.host.clone());
        let found =
            tokio::task::spawn_blocking(move || common.store.session(uuid, &host, &content));
        let session = found
            .await
            .map_err(|_| wrong("reading it was given up"))??;
        if let Some(clock) = self.clock {
            lock(&session).add_clock(clock)?;
        }
        self.sessions.insert(uuid, session.clone());
        self.check_share()?;
        // Another connection, or one before a crash, stored what may not be durable yet.
        let known = lock(&session).known();
        self.sync_session(session).await?;
        self.say(&words::resume(uuid, &known)).await
    }

    /// One connection does not take the memory of all sessions.
    fn check_share(&self) -> Result<(), End> {
        let (found, most) = (
            self.sessions
                .values()
                .map(|s| lock(s).remembered())
                .sum::<u64>(),
            self.common.store.share(),
        );
        if found <= most {
            return Ok(());
        }
        let text = format!("sessions of {found} bytes on one connection, expected at most {most}");
        Err(End::Refused(refusal::BUSY, text))
    }

    fn session(&mut self, uuid: Uuid) -> Result<Shared, End> {
        let found = self.sessions.get(&uuid).cloned();
        let session = found.ok_or_else(|| wrong(format!("blocks of {uuid} without SESSION")))?;
        if !self.touched.contains(&uuid) {
            self.touched.push(uuid);
        }
        Ok(session)
    }

    fn store_block(&mut self, header: &BlockHeader) -> Result<(), End> {
        let session = self.session(Uuid(header.session))?;
        let whole = &self.buffer[..block::whole(header)];
        let content = block::content(header, whole).map_err(wrong)?;
        lock(&session).add(header, content, whole)?;
        if header.kind == kind::SCHEMA {
            self.check_share()?;
        }
        Ok(())
    }

    /// Stores the blocks of a container one by one: some of them may be there already.
    fn store_container(&mut self, header: &BlockHeader) -> Result<(), End> {
        let whole = self.buffer[..block::whole(header)].to_vec();
        let mut reader = BlockReader::new("a container", whole.as_slice());
        while let Some(item) = reader.next_item() {
            let inner = match item {
                Item::Block(inner) if is_stored(inner.header.kind) => inner,
                Item::Block(inner) => match inner.header.kind {
                    kind::SESSION => return Err(wrong("SESSION in a container")),
                    message @ stream::kind::HELLO.. => {
                        return Err(wrong(format!("a message of kind {message} in a container")));
                    }
                    _ => {
                        Figures::add(&self.common.figures.skipped_blocks_total, 1);
                        continue;
                    }
                },
                Item::Damage(damage) => return Err(wrong(damage.to_string())),
            };
            let session = self.session(Uuid(inner.header.session))?;
            let mut block = Vec::with_capacity(block::whole(&inner.header));
            let written =
                ringmark_format::codec::write::block(&mut block, inner.header, inner.content);
            written.map_err(|error| wrong(error.to_string()))?;
            lock(&session).add(&inner.header, inner.content, &block)?;
        }
        Ok(())
    }

    /// The host's clock stands so to ours.
    fn measure(&mut self, pong: &Pong) -> Result<(), End> {
        if let Some(clock) = self.pings.answered(pong).map_err(wrong)? {
            self.clock = Some(clock);
            for session in self.sessions.values() {
                lock(session).add_clock(clock)?;
            }
        }
        Ok(())
    }

    fn count(&self, with: impl FnOnce(&Presence)) {
        if let Some(presence) = &self.presence {
            with(presence);
        }
    }

    /// Says PING if it is time; returns when it will be next.
    async fn ping_if_due(&mut self) -> Result<TokioInstant, End> {
        let now = TokioInstant::now();
        match self.ping_at {
            Some(at) if at > now => Ok(at),
            None => Ok(now + SILENT),
            Some(_) => {
                let (number, real_ns) = self.pings.next();
                self.say(&words::ping(number, real_ns)).await?;
                let next = TokioInstant::now() + self.pings.pause();
                self.ping_at = Some(next);
                Ok(next)
            }
        }
    }

    /// Sends a message; a peer that does not read is gone.
    async fn say(&mut self, message: &[u8]) -> Result<(), End> {
        let say = async {
            self.bytes.write_all(message).await?;
            self.bytes.flush().await
        };
        match timeout(SILENT, say).await {
            Ok(sent) => sent.map_err(End::from),
            Err(_) => Err(End::Gone),
        }
    }
}
