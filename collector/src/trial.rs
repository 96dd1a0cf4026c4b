//! A collector without sockets: what a streamer said is read from memory. For fuzzing.

use std::io::{self, Cursor};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::block_memory::Memory;
use crate::connection_context::Common;
use crate::connection_end::End;
use crate::figures::Figures;
use crate::listen::Line;
use crate::peer::Peer;
use crate::store::{DirectoryOptions, Retention, Store, StoreOptions, Sync};

/// Runs conversations one after the other.
#[derive(Debug)]
pub struct Trial {
    runtime: Runtime,
}

impl Trial {
    /// # Errors
    /// The runtime does not start.
    pub fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        Ok(Self { runtime })
    }

    /// Takes in what a streamer said, into a store below `root`; why it was refused, if it was.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub fn converse(&self, said: Vec<u8>, root: &Path) -> io::Result<Option<String>> {
        let figures = Arc::new(Figures::default());
        let options = StoreOptions {
            root: root.to_owned(),
            sync: Sync::Disk,
            segment_bytes: 64 << 10,
            segment_age: Duration::from_secs(3600),
            retention: Retention::default(),
            session_bytes: 64 << 20,
            directory: DirectoryOptions::default(),
        };
        let store = Store::open(options, figures.clone()).map_err(io::Error::other)?;
        let (_drain, draining) = watch::channel(false);
        let common = Arc::new(Common {
            store,
            token: None,
            handshake_within: Duration::ZERO,
            memory: Memory::new(16 << 20, figures.clone()),
            figures,
            draining,
        });
        let line = Line {
            bytes: Box::new(tokio::io::join(Cursor::new(said), Vec::new())),
            hosts: None,
        };
        match self.runtime.block_on(Peer::new(line, common).serve()) {
            End::Refused(_, why) | End::RefusedSession(_, _, why) => Ok(Some(why)),
            End::Gone => Ok(None),
        }
    }
}
