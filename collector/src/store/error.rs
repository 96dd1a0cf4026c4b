//! Why something was not stored.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringmark_format::Uuid;

/// Why something was not stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system said no.
    #[error("{}: {action}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No collector made what lies there.
    #[error("{}: {what}", path.display())]
    NotOurs {
        /// What.
        path: PathBuf,
        /// What was found and expected.
        what: String,
    },
    /// The session was sent by another host first.
    #[error("session {session} belongs to host {owner}, sent by {host}")]
    Foreign {
        /// The session.
        session: Uuid,
        /// Whose it is.
        owner: String,
        /// Who sent it.
        host: String,
    },
    /// Another collector stores there.
    #[error("{}: another collector stores there, expected it to end within {} s", root.display(), within.as_secs())]
    Taken {
        /// The store.
        root: PathBuf,
        /// How long it was waited for.
        within: Duration,
    },
    /// Sessions take all the memory they may.
    #[error("all sessions together would take more than {most} bytes of memory")]
    Full {
        /// What they may take, bytes.
        most: u64,
    },
    /// Blocks that contradict each other or the protocol.
    #[error("session {session}: {what}")]
    Protocol {
        /// The session.
        session: Uuid,
        /// What is wrong.
        what: String,
    },
}

/// Makes an error of the failed `action` on `path`.
pub(super) fn io_at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io {
        action,
        path,
        source,
    }
}
