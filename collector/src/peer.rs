//! One connection: greeted, its blocks taken in and stored, what is durable acknowledged.
//!
//! [`Connection`] delivers whole blocks, [`Sessions`] stores them, and [`Acks`] counts them until
//! they are durable; [`Peer`] is the conversation.

mod acks;
mod connection;
mod sessions;

use std::sync::Arc;
use std::time::Duration;

use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::stream::{self, STREAM_MAJOR, UNKNOWN_BYTES, refusal};
use subtle::ConstantTimeEq;
use tokio::task::spawn_blocking;
use tokio::time::Instant as TokioInstant;

use crate::connection_context::Common;
use crate::connection_end::End;
use crate::figures::Figures;
use crate::host_clock::now_ns;
use crate::host_name::{NameTooLong, fits};
use crate::hosts::Presence;
use crate::listen::Line;
use crate::lock::lock;
use crate::messages::{self, Introduced};
use crate::store::{Shared, Sync, make_durable};
use acks::{Acks, WINDOW};
use connection::{BUFFER, Connection, SILENT};
use sessions::{Sessions, is_stored};

/// How long to wait for more before what was received is made durable.
const ACK_AFTER: Duration = Duration::from_millis(1);

/// Why a streamer may not speak for the host that it names.
#[derive(Debug, thiserror::Error)]
enum Denied {
    #[error(transparent)]
    Name(#[from] NameTooLong),
    #[error("the certificate is for host {}, the streamer says it is {said}", proved.join(", "))]
    OtherHost { proved: Vec<String>, said: String },
    #[error("a token is wanted (--token-file)")]
    NoToken,
    #[error("the token is not ours")]
    OtherToken,
}

impl From<Denied> for End {
    fn from(denied: Denied) -> Self {
        Self::Refused(refusal::DENIED, denied.to_string())
    }
}

/// A streamer, as the collector speaks with it.
pub(crate) struct Peer {
    connection: Connection,
    sessions: Sessions,
    acks: Acks,
    common: Arc<Common>,
    /// The hosts that it has proved to be one of.
    proved: Option<Vec<String>>,
    host: String,
    presence: Option<Presence>,
    /// Bytes of messages of unknown kinds.
    skipped: u64,
}

impl Peer {
    pub(crate) fn new(line: Line, common: Arc<Common>) -> Self {
        Self {
            connection: Connection::new(line.bytes, common.clone()),
            sessions: Sessions::new(common.clone()),
            acks: Acks::default(),
            common,
            proved: line.hosts,
            host: String::new(),
            presence: None,
            skipped: 0,
        }
    }

    /// Serves it to its end; tells the streamer why it is refused.
    pub(crate) async fn serve(mut self) -> End {
        let end = match self.greet().await {
            Ok(()) => match self.take_in().await {
                Ok(()) => End::Gone,
                Err(end) => end,
            },
            Err(end) => end,
        };
        if let Some(refused) = end.message() {
            self.connection.close(&refused).await;
        }
        end
    }

    async fn greet(&mut self) -> Result<(), End> {
        let deadline = TokioInstant::now() + SILENT;
        let header = self.connection.next_header(deadline).await?;
        if header.kind != stream::kind::HELLO {
            let text = format!("kind {} first, expected HELLO", header.kind);
            return Err(End::protocol(text));
        }
        let whole = header.whole_bytes();
        if whole > BUFFER {
            let text = format!("HELLO of {whole} bytes, expected at most {BUFFER}");
            return Err(End::protocol(text));
        }
        self.connection.fill(whole, SILENT).await?;
        let content = self.connection.content(&header)?;
        let too_short = || End::protocol("HELLO is too short");
        let hello = messages::introduced(content).ok_or_else(too_short)?;
        self.connection.drop_front(&header);
        if hello.version_major > STREAM_MAJOR {
            let found = hello.version_major;
            let text = format!("protocol version {found}, expected at most {STREAM_MAJOR}");
            return Err(End::Refused(refusal::VERSION, text));
        }
        self.host = self.admit(&hello)?;
        self.presence = Some(self.common.figures.hosts.welcome(&self.host));
        let welcome = messages::welcome(self.common.store.id(), now_ns(), WINDOW);
        self.connection.say(&welcome).await
    }

    /// The host that it may speak for: one that its certificate proves, or any if it has the token.
    fn admit(&self, hello: &Introduced) -> Result<String, Denied> {
        let said = &hello.host;
        fits("host", said)?;
        if let Some(proved) = &self.proved {
            let named = proved.iter().find(|name| name.eq_ignore_ascii_case(said));
            return named.cloned().ok_or_else(|| Denied::OtherHost {
                proved: proved.clone(),
                said: said.clone(),
            });
        }
        match &self.common.token {
            Some(_) if hello.token.is_empty() => Err(Denied::NoToken),
            Some(token) if !bool::from(token.ct_eq(&hello.token)) => Err(Denied::OtherToken),
            _ => Ok(said.clone()),
        }
    }

    async fn take_in(&mut self) -> Result<(), End> {
        self.connection.begin_pings();
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
            let ping_at = self.connection.ping_if_due().await?;
            if *draining.borrow_and_update() && !told {
                told = true;
                self.connection.say(&messages::drain()).await?;
            }
            let mut until = ping_at.min(heard_at + SILENT);
            if self.acks.is_to_sync() {
                until = until.min(TokioInstant::now() + ACK_AFTER);
            }
            tokio::select! {
                heard = self.connection.read_until(until) => match heard? {
                    true => {}
                    false => self.begin_sync().await?,
                },
                synced = self.acks.ended() => self.acknowledge(synced?).await?,
                _ = draining.changed(), if !told => {}
            }
        }
    }

    /// Takes the block at the buffer's front, if it is there.
    async fn take_block(&mut self) -> Result<bool, End> {
        let Some(header) = self.connection.header()? else {
            return Ok(false);
        };
        self.connection.fill_block(&header).await?;
        self.act(&header).await?;
        self.connection.drop_front(&header);
        if header.kind < stream::kind::HELLO {
            let bytes = header.whole_bytes() as u64;
            self.acks.receive(bytes);
            Figures::add(&self.common.figures.received_bytes_total, bytes);
            self.count(|presence| presence.received(bytes));
        }
        Ok(true)
    }

    async fn act(&mut self, header: &BlockHeader) -> Result<(), End> {
        let content = self.connection.content(header)?;
        let whole = self.connection.block(header).bytes;
        match header.kind {
            kind::SESSION => {
                let content = content.to_vec();
                self.announced(Uuid(header.session), content).await
            }
            kind::CONTAINER => self.sessions.store_container(whole, &mut self.acks),
            stream::kind::PONG => {
                let too_short = || End::protocol("PONG is too short");
                let pong = messages::pong(content).ok_or_else(too_short)?;
                match self.connection.measure(&pong)? {
                    Some(clock) => self.sessions.measured(clock),
                    None => Ok(()),
                }
            }
            stream::kind::BYE => {
                self.sync_all().await?;
                self.connection.shutdown().await;
                Err(End::Gone)
            }
            stream::kind::HELLO..=stream::kind::DRAIN => {
                let text = format!("a message of kind {} out of place", header.kind);
                Err(End::protocol(text))
            }
            known if is_stored(known) => {
                let acks = &mut self.acks;
                self.sessions.store_block(header, content, whole, acks)
            }
            _ => self.skip(header),
        }
    }

    /// Passes over a kind of a later version. Messages need no credit, so they are bounded here.
    fn skip(&mut self, header: &BlockHeader) -> Result<(), End> {
        Figures::add(&self.common.figures.skipped_blocks_total, 1);
        if header.kind < stream::kind::HELLO {
            return Ok(());
        }
        self.skipped += header.whole_bytes() as u64;
        let most = u64::from(UNKNOWN_BYTES) * (self.connection.pings() + 1);
        if self.skipped <= most {
            return Ok(());
        }
        let (kind, found) = (header.kind, self.skipped);
        Err(End::protocol(format!(
            "{found} bytes of messages of unknown kinds, at last {kind}, expected at most {most} by now"
        )))
    }

    /// Answers SESSION with what is there of it.
    async fn announced(&mut self, uuid: Uuid, content: Vec<u8>) -> Result<(), End> {
        let announced = self.sessions.announced(&self.host, uuid, content);
        let session = announced.await?;
        // Another connection, or one before a crash, stored what may not be durable yet.
        let known = lock(&session).known();
        self.sync_session(session).await?;
        let resume = messages::resume(uuid, &known);
        self.connection.say(&resume).await
    }

    fn count(&self, with: impl FnOnce(&Presence)) {
        if let Some(presence) = &self.presence {
            with(presence);
        }
    }

    /// Begins to make durable what was received so far, unless a sync is under way.
    async fn begin_sync(&mut self) -> Result<(), End> {
        if !self.acks.is_to_sync() {
            return Ok(());
        }
        let touched = self.acks.take_touched();
        match self.common.store.sync() {
            Sync::Cache => self.acknowledge(self.acks.received()).await,
            Sync::Disk => {
                let sessions = self.sessions.of(&touched);
                let sync = move || sessions.iter().try_for_each(make_durable);
                self.acks.begin(spawn_blocking(sync));
                Ok(())
            }
        }
    }

    /// Begins a sync once there is enough for one; waits for the one under way if it must.
    async fn sync_if_much(&mut self) -> Result<(), End> {
        if self.acks.is_to_wait() {
            let synced = self.acks.ended().await?;
            self.acknowledge(synced).await?;
        }
        match self.acks.is_much() {
            true => self.begin_sync().await,
            false => Ok(()),
        }
    }

    /// Makes durable all that was received.
    async fn sync_all(&mut self) -> Result<(), End> {
        while !self.acks.is_durable() {
            self.begin_sync().await?;
            if self.acks.is_syncing() {
                let synced = self.acks.ended().await?;
                self.acknowledge(synced).await?;
            }
        }
        Ok(())
    }

    /// Makes durable what was stored of a session over any connection.
    async fn sync_session(&mut self, session: Shared) -> Result<(), End> {
        if self.common.store.sync() == Sync::Cache {
            return Ok(());
        }
        let synced = spawn_blocking(move || make_durable(&session)).await;
        Ok(synced.map_err(|_| End::protocol("the sync was given up"))??)
    }

    /// Tells the streamer how many bytes are durable.
    async fn acknowledge(&mut self, durable: u64) -> Result<(), End> {
        let new = self.acks.acknowledge(durable);
        self.count(|presence| presence.acknowledged(new));
        let ack = messages::ack(durable, durable + WINDOW);
        self.connection.say(&ack).await
    }
}
