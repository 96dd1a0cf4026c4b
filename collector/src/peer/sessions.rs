//! The sessions that one connection has announced, and the way of its blocks into them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use ringmark_decoder::{BlockReader, Item};
use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::counters::{CountersHeader, FINAL};
use ringmark_format::stream::{self, HostClock};
use zerocopy::FromBytes;

use super::acks::Acks;
use crate::connection_context::ConnectionContext;
use crate::connection_end::ConnectionEnd;
use crate::figures::Figures;
use crate::hosts::HostLosses;
use crate::mutex::lock;
use crate::store::{SharedSession, StoreError, StoredSession};

/// Most sessions that one connection may have open.
const SESSIONS_MAX: usize = 4096;

/// Whether blocks of this kind are stored with a session. SESSION and containers are not: they are
/// taken apart first.
pub(super) fn is_stored(kind: u16) -> bool {
    matches!(
        kind,
        kind::SCHEMA
            | kind::PAGE
            | kind::COUNTERS
            | kind::HOST_CLOCK
            | kind::INDEX
            | kind::ENDING
            | kind::OPEN_SPANS
            | kind::PROGRESS
    )
}

/// A session whose last word has come.
struct EndedSession {
    session: Uuid,
    /// The received position after that.
    received: u64,
}

/// The announced sessions of a connection.
pub(super) struct Sessions {
    context: Arc<ConnectionContext>,
    open: HashMap<Uuid, SharedSession>,
    /// Number of sessions that were announced.
    announced: u64,
    /// The last measurement of the host's clock, for sessions that are announced later.
    clock: Option<HostClock>,
    /// Sessions whose last word was stored in the present block.
    final_words: Vec<Uuid>,
    /// Sessions that have ended and may not be durable, in the order of their ends.
    ended: VecDeque<EndedSession>,
    /// Blocks of the present container that are stored, if it found no room as a whole.
    stored_in_container: usize,
}

impl Sessions {
    /// No sessions.
    pub(super) fn new(context: Arc<ConnectionContext>) -> Self {
        Self {
            context,
            open: HashMap::new(),
            announced: 0,
            clock: None,
            final_words: Vec::new(),
            ended: VecDeque::new(),
            stored_in_container: 0,
        }
    }

    /// Opens the session of a SESSION block with this content. A session that no connection had
    /// open is read from its files, on a thread of its own. Its losses are counted in `losses`.
    ///
    /// # Errors
    /// It was announced before, belongs to another host, or takes too much memory.
    pub(super) async fn announced(
        &mut self,
        host: &str,
        uuid: Uuid,
        content: Vec<u8>,
        losses: Option<HostLosses>,
    ) -> Result<SharedSession, ConnectionEnd> {
        if self.open.len() >= SESSIONS_MAX {
            return Err(ConnectionEnd::protocol(format!(
                "more than {SESSIONS_MAX} sessions"
            )));
        }
        if self.open.contains_key(&uuid) {
            return Err(ConnectionEnd::protocol(format!(
                "SESSION of {uuid} a second time"
            )));
        }
        let (context, host) = (self.context.clone(), host.to_owned());
        let find = move || {
            let found = context.store.session(uuid, &host, &content)?;
            if let Some(losses) = losses {
                lock(&found).count_losses_in(losses);
            }
            Ok::<_, StoreError>(found)
        };
        let found = self.context.apart_at_store(find).await;
        let session =
            found.map_err(|error| ConnectionEnd::given_up("reading its session", error))??;
        if let Some(clock) = self.clock {
            self.context.at_store(|| lock(&session).add_clock(clock))?;
        }
        self.announced += 1;
        self.open.insert(uuid, session.clone());
        Ok(session)
    }

    /// Number of sessions that were announced.
    pub(super) fn announced_so_far(&self) -> u64 {
        self.announced
    }

    /// Notes that the last word of sessions ends at this position.
    pub(super) fn note_ended(&mut self, received: u64) {
        let ended = self.final_words.drain(..);
        self.ended
            .extend(ended.map(|session| EndedSession { session, received }));
    }

    /// Forgets the sessions that have ended and are durable: what comes after them needs the room.
    pub(super) fn forget_ended(&mut self, durable: u64) {
        while let Some(ended) = self.ended.front()
            && ended.received <= durable
        {
            let session = ended.session;
            drop(self.open.remove(&session));
            self.context.at_store(|| self.context.store.forget(session));
            self.ended.pop_front();
        }
    }

    /// The open ones of these sessions.
    pub(super) fn of(&self, uuids: &[Uuid]) -> Vec<SharedSession> {
        let open = uuids.iter().filter_map(|uuid| self.open.get(uuid));
        open.cloned().collect()
    }

    /// The most memory that a block takes that is to be put into objects: unpacked, with what its session begins
    /// with. SESSION takes its own.
    pub(super) fn most_stored(&self, header: &BlockHeader) -> u64 {
        if !is_stored(header.kind) && header.kind != kind::CONTAINER {
            return 0;
        }
        let session = self.open.get(&Uuid(header.session));
        let calls = &self.context.figures.disk_calls;
        let preamble = |session| calls.asked(session, StoredSession::preamble_bytes);
        let unpacked = BlockHeader::BYTES + header.raw_bytes as usize;
        let whole = header.whole_bytes().max(unpacked) as u64;
        whole + session.map_or(0, |session| preamble(session))
    }

    /// The session of a block that is about to be stored; the next sync will include it.
    fn touch(&self, uuid: Uuid, acks: &mut Acks) -> Result<&SharedSession, ConnectionEnd> {
        let missing = || ConnectionEnd::protocol(format!("blocks of {uuid} without SESSION"));
        let session = self.open.get(&uuid).ok_or_else(missing)?;
        acks.touch(uuid);
        Ok(session)
    }

    /// Stores a whole checked block of a kind that [`is_stored`].
    ///
    /// # Errors
    /// Its session was not announced, or refuses the block.
    pub(super) fn store_block(
        &mut self,
        header: &BlockHeader,
        content: &[u8],
        whole: &[u8],
        acks: &mut Acks,
    ) -> Result<(), ConnectionEnd> {
        let session = self.touch(Uuid(header.session), acks)?;
        let segment = self.context.at_store(|| {
            let mut session = lock(session);
            session.add(header, content, whole)?;
            Ok::<_, StoreError>(session.segment())
        });
        acks.note_segment(segment?);
        self.note_final(header, content);
        Ok(())
    }

    /// Notes a session that ends with this stored block.
    fn note_final(&mut self, header: &BlockHeader, content: &[u8]) {
        let counters = || CountersHeader::read_from_prefix(content);
        if header.kind == kind::COUNTERS
            && counters().is_ok_and(|(counters, _)| counters.flags & FINAL != 0)
        {
            self.final_words.push(Uuid(header.session));
        }
    }

    /// Stores the blocks of a container one by one, since some of them may be there already.
    ///
    /// # Errors
    /// It is damaged, holds what no container may, or a session refuses a block.
    pub(super) fn store_container(
        &mut self,
        whole: &[u8],
        acks: &mut Acks,
    ) -> Result<(), ConnectionEnd> {
        let context = self.context.clone();
        context.at_store(|| self.store_blocks_in(whole, acks))?;
        self.stored_in_container = 0;
        Ok(())
    }

    fn store_blocks_in(&mut self, whole: &[u8], acks: &mut Acks) -> Result<(), ConnectionEnd> {
        let mut reader = BlockReader::new("a container", whole);
        let mut number = 0;
        while let Some(item) = reader.next_item() {
            number += 1;
            if number <= self.stored_in_container {
                continue;
            }
            let inner = match item {
                Item::Block(inner) if is_stored(inner.header.kind) => inner,
                Item::Block(inner) => match inner.header.kind {
                    kind::SESSION => return Err(ConnectionEnd::protocol("SESSION in a container")),
                    message @ stream::kind::HELLO.. => {
                        let text = format!("a message of kind {message} in a container");
                        return Err(ConnectionEnd::protocol(text));
                    }
                    _ => {
                        Figures::add(&self.context.figures.skipped_blocks_total, 1);
                        continue;
                    }
                },
                Item::Damage(damage) => return Err(ConnectionEnd::protocol(damage)),
            };
            let session = self.touch(Uuid(inner.header.session), acks)?;
            let mut block = Vec::with_capacity(inner.header.whole_bytes());
            let written =
                ringmark_format::codec::write::block(&mut block, inner.header, inner.content);
            written.map_err(ConnectionEnd::protocol)?;
            let mut session = lock(session);
            session.add(&inner.header, inner.content, &block)?;
            acks.note_segment(session.segment());
            drop(session);
            self.note_final(&inner.header, inner.content);
            self.stored_in_container = number;
        }
        Ok(())
    }

    /// Records a measurement of the host's clock in all open sessions. One that cannot be written is
    /// left out: the next one comes soon.
    ///
    /// # Errors
    /// A measurement cannot be stored.
    pub(super) fn measured(&mut self, clock: HostClock) -> Result<(), ConnectionEnd> {
        self.clock = Some(clock);
        let stored = self.context.at_store(|| {
            let mut sessions = self.open.values();
            sessions.try_for_each(|session| lock(session).add_clock(clock))
        });
        match stored {
            Ok(()) | Err(StoreError::Io { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
