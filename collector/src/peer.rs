//! One streamer: greeted, its blocks received and stored, what is durable acknowledged.
//!
//! [`Connection`] delivers whole blocks, [`Sessions`] stores them, and [`Acks`] counts them until
//! they are durable. [`Peer`] is the conversation: one task that waits for the first of more bytes,
//! the end of a sync, and the time of the next PING.
//!
//! A peer is not trusted. Bounds hold for its memory (a buffer, and a share of a common pool), its
//! time (silence, slow blocks) and what it may send without credit; breaking one refuses it with a
//! reason.

mod acks;
mod connection;
mod durability;
mod lane;
mod lane_share;
mod proof;
mod sessions;
#[cfg(feature = "models")]
pub(crate) mod stepped;
mod terms;

use std::sync::Arc;

use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::page::PAGE_BYTES_MAX;
use ringmark_format::session::SessionHeader;
use ringmark_format::stream::{self, STREAM_MAJOR, UNKNOWN_BYTES};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant as TokioInstant, sleep_until};
use zerocopy::FromBytes;

use crate::clock::now_ns;
use crate::connection_context::{AdmissionRules, ConnectionContext};
use crate::connection_end::{ConnectionEnd, Departure, Refusal};
use crate::figures::Figures;
use crate::hosts::{Presence, Proof};
use crate::listen::{AcceptedStream, PeerProof};
use crate::messages;
use crate::reason::Reason;
use acks::Acks;
use connection::{BUFFER, Connection, SILENT};
use lane::Lane;
use sessions::{Sessions, is_stored};
use terms::ACK_AFTER;
pub(crate) use terms::DRAIN_WITHIN;

/// A place among the connections.
struct Admission {
    /// Its part in the host's figures.
    presence: Presence,
    _connection: OwnedSemaphorePermit,
}

/// A streamer that was welcomed.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    /// The host that it speaks for.
    pub(crate) host: String,
    /// Sessions that it has announced.
    pub(crate) sessions: u64,
    /// Bytes of blocks that it has sent.
    pub(crate) bytes: u64,
}

/// A streamer that was served to its end.
pub(crate) struct Served {
    pub(crate) visit: Visit,
    pub(crate) end: ConnectionEnd,
}

/// A streamer, and the conversation with it.
pub(crate) struct Peer {
    connection: Connection,
    sessions: Sessions,
    acks: Acks,
    context: Arc<ConnectionContext>,
    /// What it proved before the greeting.
    proof: PeerProof,
    /// The host that it speaks for; empty before the greeting is over.
    host: String,
    /// Its place among the connections of all hosts and of its own, from the greeting on.
    admission: Option<Admission>,
    /// Its part of what all connections put into objects; `None`: there are none.
    lane: Option<Lane>,
    /// Bytes of messages of unknown kinds that were skipped.
    skipped: u64,
    /// Whether the store has room for more.
    room: watch::Receiver<bool>,
    /// Who may come.
    rules: watch::Receiver<Arc<AdmissionRules>>,
    /// Whether the collector is about to end.
    draining: watch::Receiver<bool>,
    /// It was asked to go.
    sent_drain: bool,
}

/// Whether a block is one of a dump: only those have positions, and need credit and ACK.
const fn has_position(header: &BlockHeader) -> bool {
    header.kind < stream::kind::HELLO
}

impl Peer {
    /// Greets a streamer. One that is refused is told why.
    ///
    /// # Errors
    /// It is refused, or gone.
    pub(crate) async fn greeted(
        accepted: AcceptedStream,
        context: Arc<ConnectionContext>,
    ) -> Result<Self, ConnectionEnd> {
        let mut peer = Self::new(accepted, context);
        match peer.greet().await {
            Ok(()) => Ok(peer),
            Err(end) => Err(Box::pin(peer.end(end)).await),
        }
    }

    fn new(accepted: AcceptedStream, context: Arc<ConnectionContext>) -> Self {
        Self {
            connection: Connection::new(accepted.bytes, context.clone()),
            sessions: Sessions::new(context.clone()),
            acks: Acks::default(),
            room: context.store.room(),
            lane: Lane::of(&context),
            rules: context.admission.subscribe(),
            draining: context.draining.clone(),
            sent_drain: false,
            context,
            proof: accepted.peer,
            host: String::new(),
            admission: None,
            skipped: 0,
        }
    }

    /// Serves the streamer to its end. One that is refused is told why.
    pub(crate) async fn serve(mut self) -> Served {
        let end = match self.take_in().await {
            Ok(()) => ConnectionEnd::Gone(Departure::Closed),
            Err(end) => end,
        };
        let visit = self.visit();
        let end = Box::pin(self.end(end)).await;
        Served { visit, end }
    }

    /// Who it is, and what it has sent so far.
    pub(crate) fn visit(&self) -> Visit {
        Visit {
            host: self.host.clone(),
            sessions: self.sessions.announced_so_far(),
            bytes: self.acks.received(),
        }
    }

    /// Ends the connection; a streamer that is refused is told why.
    async fn end(self, end: ConnectionEnd) -> ConnectionEnd {
        if let Some(refused) = end.message() {
            self.connection.close(&refused).await;
        }
        end
    }

    /// Waits for HELLO and answers WELCOME.
    async fn greet(&mut self) -> Result<(), ConnectionEnd> {
        let deadline = TokioInstant::now() + SILENT;
        let header = self.connection.next_header(deadline).await?;
        if header.kind != stream::kind::HELLO {
            let text = format!("kind {} first, expected HELLO", header.kind);
            return Err(ConnectionEnd::protocol(text));
        }
        let whole = header.whole_bytes();
        if whole > BUFFER {
            let text = format!("HELLO of {whole} bytes, expected at most {BUFFER}");
            return Err(ConnectionEnd::protocol(text));
        }
        self.connection.fill(whole, SILENT).await?;
        let content = self.connection.content(&header)?;
        let too_short = || ConnectionEnd::protocol("HELLO is too short");
        let hello = messages::introduction(content).ok_or_else(too_short)?;
        self.connection.drop_front(&header);
        if hello.version_major > STREAM_MAJOR {
            let found = hello.version_major;
            let text = format!("protocol version {found}, expected at most {STREAM_MAJOR}");
            return Err(ConnectionEnd::refused(Reason::Version, text));
        }
        let rules = self.rules.borrow_and_update().clone();
        self.host = proof::prove(&self.proof, &rules, &hello)?;
        self.admit()?;
        let credit = self.more_credit();
        let store = &self.context.store;
        let attributes = terms::attributes(store);
        let welcome = messages::welcome(store.id(), now_ns(), credit, &attributes);
        self.connection.say(&welcome).await
    }

    /// Gives the connection a place among all connections and those of its host.
    fn admit(&mut self) -> Result<(), ConnectionEnd> {
        let connections = self.context.connections.clone().try_acquire_owned();
        let too_many = |_| ConnectionEnd::refused(Reason::Connections, "too many connections");
        let connection = connections.map_err(too_many)?;
        let share = self.context.shares.enter(&self.host);
        let too_many = |error| ConnectionEnd::refused(Reason::HostConnections, error);
        let share = share.map_err(too_many)?;
        let has_token = self.rules.borrow().token.is_some();
        let is_proved = has_token || self.proof != PeerProof::Nothing;
        let proof = match is_proved {
            true => Proof::Proved,
            false => Proof::Missing,
        };
        self.admission = Some(Admission {
            presence: self.context.figures.hosts.welcome(&self.host, proof),
            _connection: connection,
        });
        self.connection.begin(share);
        Ok(())
    }

    /// The conversation after the greeting, until the streamer goes or is refused.
    async fn take_in(&mut self) -> Result<(), ConnectionEnd> {
        // When the last whole block came: a peer that trickles single bytes is not alive.
        let mut heard_at = TokioInstant::now();
        loop {
            while self.take_block().await? {
                self.sync_if_much().await?;
                self.settle().await?;
                heard_at = TokioInstant::now();
            }
            self.settle().await?;
            if heard_at.elapsed() >= SILENT {
                return Err(ConnectionEnd::Gone(Departure::Silent));
            }
            proof::check_validity(&self.proof)?;
            let ping_at = self.connection.ping_if_due().await?;
            self.drain_if_due().await?;
            let mut until = ping_at.min(heard_at + SILENT);
            if self.acks.is_to_sync() && self.lane.is_none() {
                until = until.min(TokioInstant::now() + ACK_AFTER);
            }
            tokio::select! {
                heard = self.connection.read_until(until) => match heard? {
                    true => {}
                    false => self.begin_sync().await?,
                },
                synced = self.acks.ended() => self.acknowledge(synced?).await?,
                () = lane::moved(&mut self.lane) => {}
                _ = self.room.changed(), if self.acks.is_credit_due() && self.lane.is_none() => {
                    self.acknowledge(self.acks.durable()).await?;
                }
                _ = self.draining.changed(), if !self.sent_drain => {}
                _ = self.rules.changed() => {
                    let rules = self.rules.borrow_and_update().clone();
                    proof::check_denied(&self.proof, &rules, &self.host)?;
                }
            }
        }
    }

    /// Asks the streamer to go, once, if the collector is about to end.
    async fn drain_if_due(&mut self) -> Result<(), ConnectionEnd> {
        if *self.draining.borrow_and_update() && !self.sent_drain {
            self.sent_drain = true;
            self.connection.say(&messages::drain()).await?;
        }
        Ok(())
    }

    /// Takes the block at the buffer's front; returns whether there was one.
    async fn take_block(&mut self) -> Result<bool, ConnectionEnd> {
        let Some(header) = self.connection.header()? else {
            return Ok(false);
        };
        self.check_credit(&header)?;
        self.connection.fill_block(&header).await?;
        let room = self.room_for(&header).await?;
        loop {
            match self.act(&header).await {
                Err(ConnectionEnd::NoRoom(why)) => self.wait_for_room(why).await?,
                acted => break acted?,
            }
        }
        drop(room);
        self.connection.drop_front(&header);
        if has_position(&header) {
            let bytes = header.whole_bytes() as u64;
            self.acks.receive(bytes);
            self.note_stored();
            self.sessions.note_ended(self.acks.received());
            Figures::add(&self.context.figures.received_bytes_total, bytes);
            self.count(|presence| presence.received(bytes));
            self.connection.keep_pace(bytes).await?;
        }
        Ok(true)
    }

    /// Waits until the store has room for the block at the buffer's front. What came before it is
    /// acknowledged, and gives no credit.
    ///
    /// # Errors
    /// The peer is gone, or the collector is about to end.
    async fn wait_for_room(&mut self, why: Refusal) -> Result<(), ConnectionEnd> {
        let (mut room, mut draining) = (self.room.clone(), self.context.draining.clone());
        while !*room.borrow_and_update() {
            if *draining.borrow_and_update() {
                return Err(ConnectionEnd::Refused(why));
            }
            self.begin_sync().await?;
            let ping_at = self.connection.ping_if_due().await?;
            tokio::select! {
                _ = room.changed() => {}
                _ = draining.changed() => {}
                synced = self.acks.ended() => self.acknowledge(synced?).await?,
                () = sleep_until(ping_at) => {}
            }
        }
        Ok(())
    }

    /// Acts on the whole checked block at the buffer's front.
    async fn act(&mut self, header: &BlockHeader) -> Result<(), ConnectionEnd> {
        let content = self.connection.content(header)?;
        let whole = self.connection.block(header).bytes;
        match header.kind {
            kind::SESSION => {
                let content = content.to_vec();
                self.announced(Uuid(header.session), content).await
            }
            kind::CONTAINER => self.sessions.store_container(whole, &mut self.acks),
            stream::kind::PONG => {
                let too_short = || ConnectionEnd::protocol("PONG is too short");
                let pong = messages::pong(content).ok_or_else(too_short)?;
                match self.connection.measure(&pong)? {
                    Some(clock) => self.sessions.measured(clock),
                    None => Ok(()),
                }
            }
            stream::kind::BYE => {
                self.sync_all().await?;
                self.connection.shutdown().await;
                Err(ConnectionEnd::Gone(Departure::Bye))
            }
            stream::kind::HELLO..=stream::kind::DRAIN => {
                let text = format!("a message of kind {} out of place", header.kind);
                Err(ConnectionEnd::protocol(text))
            }
            known if is_stored(known) => {
                let acks = &mut self.acks;
                self.sessions.store_block(header, content, whole, acks)
            }
            _ => self.skip(header),
        }
    }

    /// Skips a kind of a later version. Messages need no credit, so their bytes are bounded here,
    /// by an allowance that grows with every PING.
    fn skip(&mut self, header: &BlockHeader) -> Result<(), ConnectionEnd> {
        Figures::add(&self.context.figures.skipped_blocks_total, 1);
        if header.kind < stream::kind::HELLO {
            return Ok(());
        }
        self.skipped += header.whole_bytes() as u64;
        let most = u64::from(UNKNOWN_BYTES) * (self.connection.pings() + 1);
        if self.skipped <= most {
            return Ok(());
        }
        let (kind, found) = (header.kind, self.skipped);
        Err(ConnectionEnd::protocol(format!(
            "{found} bytes of messages of unknown kinds, at last {kind}, expected at most {most} by now"
        )))
    }

    /// Answers SESSION with RESUME: what is stored of the session, and durable.
    async fn announced(&mut self, uuid: Uuid, content: Vec<u8>) -> Result<(), ConnectionEnd> {
        let losses = self.admission.as_ref();
        let losses = losses.map(|admission| admission.presence.losses());
        if let (Some(lane), Ok((header, _))) = (
            &mut self.lane,
            SessionHeader::read_from_prefix(content.as_slice()),
        ) {
            lane.expect_pages(u64::from(header.page_bytes.min(PAGE_BYTES_MAX)));
        }
        let announced = self.sessions.announced(&self.host, uuid, content, losses);
        let session = announced.await?;
        // What an earlier connection stored may not be durable. The streamer releases all pages
        // that RESUME names, so they are synced before it is sent.
        let calls = &self.context.figures.disk_calls;
        let known = calls.asked(&session, |session| session.known());
        self.sync_session(session).await?;
        let resume = messages::resume(uuid, &known);
        self.connection.say(&resume).await
    }

    /// Counts in the figures of the host.
    fn count(&self, with: impl FnOnce(&Presence)) {
        if let Some(admission) = &self.admission {
            with(&admission.presence);
        }
    }
}
