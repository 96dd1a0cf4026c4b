//! Why a connection ended, and the message that tells the streamer.

use std::error::Error;

use ringmark_format::Uuid;
use ringmark_format::stream::refusal;
use tokio::task::JoinError;

use crate::messages;
use crate::store::StoreError;

/// Why a connection ended.
#[derive(Debug)]
pub(crate) enum ConnectionEnd {
    /// The streamer said BYE, or its connection broke.
    Gone,
    /// The collector refused the connection, or a session of it.
    Refused(Refusal),
    /// A block could not be stored for want of room. The connection may wait and store it later.
    NoRoom(Refusal),
}

/// A refusal, with its reason for the streamer and for the collector's own notices.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The session that is refused; `None`: the whole connection.
    session: Option<Uuid>,
    /// Code of REFUSED: see [`refusal`].
    code: u32,
    why: Box<dyn Error + Send + Sync>,
}

/// A task of the collector did not come to its end.
#[derive(Debug, thiserror::Error)]
#[error("{what} was given up: {source}")]
struct GivenUp {
    what: &'static str,
    source: JoinError,
}

impl ConnectionEnd {
    /// Refuses the connection.
    pub(crate) fn refused(code: u32, why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Refused(Refusal {
            session: None,
            code,
            why: why.into(),
        })
    }

    /// Refuses a peer that breaks the protocol.
    pub(crate) fn protocol(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::refused(refusal::PROTOCOL, why)
    }

    /// Refuses the connection because a task of the collector, such as a sync, did not come to its
    /// end: no fault of the streamer.
    pub(crate) fn given_up(what: &'static str, source: JoinError) -> Self {
        Self::refused(refusal::STORE, GivenUp { what, source })
    }

    /// Refuses the connection because what was received could not be made durable: it must come
    /// again, so the connection cannot wait.
    pub(crate) fn not_durable(error: StoreError) -> Self {
        Self::refused(refusal::STORE, error)
    }

    /// The refusal; `None`: the streamer is gone.
    const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Gone => None,
            Self::Refused(refusal) | Self::NoRoom(refusal) => Some(refusal),
        }
    }

    /// The message that tells the streamer; `None`: it is gone.
    pub(crate) fn message(&self) -> Option<Vec<u8>> {
        let refusal = self.refusal()?;
        let (code, why) = (refusal.code, refusal.why.to_string());
        Some(match refusal.session {
            Some(session) => messages::refused_session(session, code, &why),
            None => messages::refused(code, &why),
        })
    }

    /// The code of the refusal; `None`: it was not refused.
    pub(crate) fn code(&self) -> Option<u32> {
        self.refusal().map(|refusal| refusal.code)
    }

    /// Why it was refused; `None`: it was not.
    pub(crate) fn why(&self) -> Option<String> {
        self.refusal().map(|refusal| refusal.why.to_string())
    }
}

/// A connection that fails needs no message: none would arrive.
impl From<std::io::Error> for ConnectionEnd {
    fn from(_: std::io::Error) -> Self {
        Self::Gone
    }
}

/// The store refuses a session for what is wrong with it alone, and the connection for all else.
impl From<StoreError> for ConnectionEnd {
    fn from(error: StoreError) -> Self {
        let (session, code) = match &error {
            StoreError::Io { .. } | StoreError::Taken { .. } | StoreError::NotOurs { .. } => {
                (None, refusal::STORE)
            }
            StoreError::Full { .. } | StoreError::HostFull { .. } => (None, refusal::BUSY),
            StoreError::Foreign { session, .. } => (Some(*session), refusal::FOREIGN),
            StoreError::Protocol { session, .. } => (Some(*session), refusal::PROTOCOL),
        };
        let end = match error.is_for_want_of_room() {
            true => Self::NoRoom,
            false => Self::Refused,
        };
        end(Refusal {
            session,
            code,
            why: error.into(),
        })
    }
}
