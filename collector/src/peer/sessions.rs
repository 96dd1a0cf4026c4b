//! The sessions that one connection speaks of, and the way of its blocks into them.

use std::collections::HashMap;
use std::sync::Arc;

use ringmark_decoder::{BlockReader, Item};
use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::stream::{self, HostClock, refusal};

use super::acks::Acks;
use crate::connection_context::Common;
use crate::connection_end::End;
use crate::figures::Figures;
use crate::lock::lock;
use crate::store::Shared;

/// Most sessions that a connection may speak of.
const SESSIONS_MAX: usize = 4096;

/// Whether blocks of this kind are part of a session, and known.
pub(super) fn is_stored(kind: u16) -> bool {
    matches!(
        kind,
        kind::SCHEMA | kind::PAGE | kind::COUNTERS | kind::HOST_CLOCK | kind::INDEX
    )
}

/// The announced sessions of a connection.
pub(super) struct Sessions {
    common: Arc<Common>,
    open: HashMap<Uuid, Shared>,
    /// The host's clock as it was measured last.
    clock: Option<HostClock>,
}

impl Sessions {
    pub(super) fn new(common: Arc<Common>) -> Self {
        Self {
            common,
            open: HashMap::new(),
            clock: None,
        }
    }

    /// Takes in SESSION with this content; reading a session that was forgotten takes its time.
    ///
    /// # Errors
    /// It was announced before, is another host's, or takes too much memory.
    pub(super) async fn announced(
        &mut self,
        host: &str,
        uuid: Uuid,
        content: Vec<u8>,
    ) -> Result<Shared, End> {
        if self.open.len() >= SESSIONS_MAX {
            return Err(End::protocol(format!("more than {SESSIONS_MAX} sessions")));
        }
        if self.open.contains_key(&uuid) {
            return Err(End::protocol(format!("SESSION of {uuid} a second time")));
        }
        let (common, host) = (self.common.clone(), host.to_owned());
        let found =
            tokio::task::spawn_blocking(move || common.store.session(uuid, &host, &content));
        let session = found
            .await
            .map_err(|_| End::protocol("reading it was given up"))??;
        if let Some(clock) = self.clock {
            lock(&session).add_clock(clock)?;
        }
        self.open.insert(uuid, session.clone());
        self.check_share()?;
        Ok(session)
    }

    /// Those of these sessions that are open.
    pub(super) fn of(&self, uuids: &[Uuid]) -> Vec<Shared> {
        let open = uuids.iter().filter_map(|uuid| self.open.get(uuid));
        open.cloned().collect()
    }

    /// Keeps one connection from taking the memory of all sessions.
    fn check_share(&self) -> Result<(), End> {
        let (found, most) = (
            self.open
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

    fn touch(&self, uuid: Uuid, acks: &mut Acks) -> Result<&Shared, End> {
        let missing = || End::protocol(format!("blocks of {uuid} without SESSION"));
        let session = self.open.get(&uuid).ok_or_else(missing)?;
        acks.touch(uuid);
        Ok(session)
    }

    /// Stores a whole checked block of a kind that [`is_stored`].
    ///
    /// # Errors
    /// Its session was not announced, or refuses it.
    pub(super) fn store_block(
        &self,
        header: &BlockHeader,
        content: &[u8],
        whole: &[u8],
        acks: &mut Acks,
    ) -> Result<(), End> {
        let session = self.touch(Uuid(header.session), acks)?;
        lock(session).add(header, content, whole)?;
        if header.kind == kind::SCHEMA {
            self.check_share()?;
        }
        Ok(())
    }

    /// Stores the blocks of a container one by one: some of them may be there already.
    ///
    /// # Errors
    /// It is damaged, holds what no container may, or a session refuses a block.
    pub(super) fn store_container(&self, whole: &[u8], acks: &mut Acks) -> Result<(), End> {
        let mut reader = BlockReader::new("a container", whole);
        while let Some(item) = reader.next_item() {
            let inner = match item {
                Item::Block(inner) if is_stored(inner.header.kind) => inner,
                Item::Block(inner) => match inner.header.kind {
                    kind::SESSION => return Err(End::protocol("SESSION in a container")),
                    message @ stream::kind::HELLO.. => {
                        let text = format!("a message of kind {message} in a container");
                        return Err(End::protocol(text));
                    }
                    _ => {
                        Figures::add(&self.common.figures.skipped_blocks_total, 1);
                        continue;
                    }
                },
                Item::Damage(damage) => return Err(End::protocol(damage)),
            };
            let session = self.touch(Uuid(inner.header.session), acks)?;
            let mut block = Vec::with_capacity(inner.header.whole_bytes());
            let written =
                ringmark_format::codec::write::block(&mut block, inner.header, inner.content);
            written.map_err(End::protocol)?;
            lock(session).add(&inner.header, inner.content, &block)?;
        }
        Ok(())
    }

    /// Records the host's clock offset in all of them.
    ///
    /// # Errors
    /// A measurement cannot be stored.
    pub(super) fn measured(&mut self, clock: HostClock) -> Result<(), End> {
        self.clock = Some(clock);
        for session in self.open.values() {
            lock(session).add_clock(clock)?;
        }
        Ok(())
    }
}
