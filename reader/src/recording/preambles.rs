//! What every file of a dump starts with: the SESSION, SCHEMA and WINDOW blocks of its sessions.

use ringmark_format::Uuid;

/// The blocks of one session.
#[derive(Debug)]
struct Preamble {
    session: Uuid,
    blocks: Vec<u8>,
}

/// The preambles of the sessions that are recorded.
#[derive(Debug, Default)]
pub(super) struct Preambles {
    of_sessions: Vec<Preamble>,
    /// Bytes of preambles in the present file: with no more it holds no page.
    written: u64,
}

impl Preambles {
    /// Whether this session has one.
    pub(super) fn has(&self, session: Uuid) -> bool {
        self.of_sessions.iter().any(|p| p.session == session)
    }

    /// Begins the preamble of a session with blocks that were written to the present file.
    pub(super) fn begin(&mut self, session: Uuid, blocks: Vec<u8>) {
        self.written += blocks.len() as u64;
        self.of_sessions.push(Preamble { session, blocks });
    }

    /// Adds a block of a session that was written to the present file.
    pub(super) fn add(&mut self, session: Uuid, block: &[u8]) {
        self.written += block.len() as u64;
        if let Some(preamble) = self.of_sessions.iter_mut().find(|p| p.session == session) {
            preamble.blocks.extend_from_slice(block);
        }
    }

    /// Leaves a session out of further files: it has ended.
    pub(super) fn forget(&mut self, session: Uuid) {
        self.of_sessions.retain(|p| p.session != session);
    }

    /// The first bytes of the next file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let blocks = self.of_sessions.iter().flat_map(|p| &p.blocks);
        blocks.copied().collect()
    }

    /// Notes that a file was begun with these bytes.
    pub(super) fn begin_file(&mut self, bytes: &[u8]) {
        self.written = bytes.len() as u64;
    }

    /// Bytes of preambles in the present file.
    pub(super) fn written(&self) -> u64 {
        self.written
    }
}
