//! Why something was not stored.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringmark_format::Uuid;

use crate::host_name::{NameTooLong, short};

/// Why something was not stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A system call failed.
    #[error("{}: {action}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The path it was tried on.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No collector made what lies there, or a newer one did.
    #[error("{}: {source}", path.display())]
    NotOurs {
        /// The directory, or a file in it.
        path: PathBuf,
        /// What was found and expected.
        source: NotAStore,
    },
    /// The session was sent by another host first.
    #[error(
        "session {session} belongs to host {}, sent by {}",
        short(owner),
        short(host)
    )]
    Foreign {
        /// The session.
        session: Uuid,
        /// The host that sent it first.
        owner: String,
        /// The host that sent it now.
        host: String,
    },
    /// Another collector uses the store.
    #[error("{}: a collector has this store; waited {} s for its end", root.display(), within.as_secs())]
    Taken {
        /// The store's directory.
        root: PathBuf,
        /// How long its end was waited for.
        within: Duration,
    },
    /// The sessions take all the memory they may.
    #[error("all sessions together would take more than {most} bytes of memory")]
    Full {
        /// What they may take, in bytes.
        most: u64,
    },
    /// The sessions of a host take all the memory that one host may.
    #[error(
        "the sessions of host {} would take more than {most} bytes of memory",
        short(host)
    )]
    HostFull {
        /// The host.
        host: String,
        /// What its sessions may take, in bytes.
        most: u64,
    },
    /// Blocks of a session contradict each other, or exceed what a session may have.
    #[error("session {session}: {source}")]
    Protocol {
        /// The session.
        session: Uuid,
        /// What is wrong.
        source: SessionFault,
    },
}

/// Why a directory is not used as a store.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAStore {
    /// Other files lie there.
    #[error(
        "found files and no store.id, expected a store or an empty directory; \
         name another one, or make it a store with --init (what is there stays)"
    )]
    OtherFiles,
    /// Other files lie there, and no objects.
    #[error(
        "found files and no ringmark-store.json, expected a store of objects or an empty directory; \
         name another one, or make it a store with --init (what is there stays)"
    )]
    OtherObjects,
    /// It is a store without objects.
    #[error(
        "found store.id, expected a store of objects; name another directory, or give this one as --store"
    )]
    OneDisk,
    /// Its identity is something else.
    #[error(
        "found something else, expected the version and the identity of a store of objects; name another directory"
    )]
    NoObjects,
    /// No collector made it.
    #[error("found no store.id, expected a store; name another directory")]
    NoIdentity,
    /// It is a store of objects.
    #[error(
        "found a store of objects, whose segments hold several hosts, expected the store of one collector; \
         delete hours of raw/ with what keeps the objects"
    )]
    OfObjects,
    /// Its identity is a directory, a link or the like.
    #[error("found no regular file; name another directory")]
    NoRegularFile,
    /// Its identity was written in part.
    #[error(
        "found {found} bytes, expected {expected}: it is no store's identity; \
         name another directory"
    )]
    Torn {
        /// Bytes of the file.
        found: usize,
        /// Bytes of an identity.
        expected: usize,
    },
    /// Its identity is some other file.
    #[error(
        "found {found} bytes or more, expected {expected} bytes that begin with RMKSTORE; \
         name another directory"
    )]
    Foreign {
        /// Bytes of the file that were read.
        found: usize,
        /// Bytes of an identity.
        expected: usize,
    },
    /// A newer collector made it.
    #[error(
        "found a store of version {found}, expected {newest} or older: \
         use a newer ringmark for it; name another directory"
    )]
    Newer {
        /// Version of the store's identity.
        found: u32,
        /// The newest version that this collector knows.
        newest: u32,
    },
}

/// What is wrong with the blocks of a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionFault {
    /// Its service or host has too long a name.
    #[error(transparent)]
    Name(#[from] NameTooLong),
    /// Its SESSION block is too large.
    #[error("SESSION of {found} bytes, expected at most {most}")]
    SessionSize {
        /// Bytes of its content.
        found: usize,
        /// Most bytes of it.
        most: usize,
    },
    /// It was announced with another SESSION block.
    #[error("SESSION differs from the one that is stored")]
    SessionDiffers,
    /// Schema before this piece is missing.
    #[error("schema at {found}, expected at most {most}")]
    SchemaGap {
        /// Offset of the piece.
        found: u64,
        /// Bytes of schema that are there.
        most: u64,
    },
    /// Schema that is there was sent again with other bytes.
    #[error("schema differs from what is stored")]
    SchemaDiffers,
    /// It has too much schema.
    #[error("{found} bytes of schema, expected at most {most}")]
    SchemaSize {
        /// Bytes with this piece.
        found: usize,
        /// Most bytes of schema.
        most: usize,
    },
    /// A page is too short to have a header.
    #[error("a page without a header")]
    PageWithoutHeader,
    /// A page's own header and its block's name different pages.
    #[error("a page that is not the one that its block names")]
    OtherPage,
    /// The session has pages of too many slots.
    #[error("pages of more than {most} slots")]
    TooManySlots {
        /// Most slots of a session.
        most: usize,
    },
    /// A page has a number that no ring comes to.
    #[error("page {found} of slot {slot}, expected one from {next} to {most}")]
    PageNumber {
        /// Number of the page.
        found: u64,
        /// Slot that the page belongs to.
        slot: u32,
        /// The page after the last one that is there.
        next: u64,
        /// The last number that is accepted now.
        most: u64,
    },
}

/// Makes an error of a failed system call from its action and path.
pub(super) fn io_at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io {
        action,
        path,
        source,
    }
}
