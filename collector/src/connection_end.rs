//! Why a connection ended, and the message that tells the streamer.

use std::error::Error;

use ringmark_format::Uuid;
use tokio::task::JoinError;

use crate::messages;
use crate::reason::Reason;
use crate::store::StoreError;

/// Why a connection ended.
#[derive(Debug)]
pub(crate) enum ConnectionEnd {
    /// The streamer went.
    Gone(Departure),
    /// The collector refused the connection, or a session of it.
    Refused(Refusal),
    /// A block could not be stored for want of room. The connection may wait and store it later.
    NoRoom(Refusal),
}

/// How a streamer went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departure {
    /// It said BYE: all that it sent is durable.
    Bye,
    /// Its connection was closed, or broke.
    Closed,
    /// Nothing came of it for too long, or it took in nothing.
    Silent,
    /// It had not proved its host, and made way for others.
    MadeWay,
}

impl Departure {
    /// What became of its connection, for the log.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Bye => "it said goodbye",
            Self::Closed => "its connection was closed",
            Self::Silent => "it was silent for too long",
            Self::MadeWay => "it made way for others",
        }
    }
}

/// A refusal, with its reason for the streamer and for the collector's own notices.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The session that is refused; `None`: the whole connection.
    session: Option<Uuid>,
    reason: Reason,
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
    pub(crate) fn refused(reason: Reason, why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Refused(Refusal {
            session: None,
            reason,
            why: why.into(),
        })
    }

    /// Refuses a peer that breaks the protocol.
    pub(crate) fn protocol(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::refused(Reason::Protocol, why)
    }

    /// Refuses the connection because a task of the collector, such as a sync, did not come to its
    /// end: no fault of the streamer.
    pub(crate) fn given_up(what: &'static str, source: JoinError) -> Self {
        Self::refused(Reason::Store, GivenUp { what, source })
    }

    /// Refuses the connection because what was received could not be made durable: it must come
    /// again, so the connection cannot wait.
    pub(crate) fn not_durable(error: StoreError) -> Self {
        Self::refused(Reason::Store, error)
    }

    /// The refusal; `None`: the streamer is gone.
    const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Gone(_) => None,
            Self::Refused(refusal) | Self::NoRoom(refusal) => Some(refusal),
        }
    }

    /// The message that tells the streamer; `None`: it is gone.
    pub(crate) fn message(&self) -> Option<Vec<u8>> {
        let refusal = self.refusal()?;
        let (code, why) = (refusal.reason.code(), refusal.why.to_string());
        Some(match refusal.session {
            Some(session) => messages::refused_session(session, code, &why),
            None => messages::refused(code, &why),
        })
    }

    /// The reason of the refusal; `None`: it was not refused.
    pub(crate) fn reason(&self) -> Option<Reason> {
        self.refusal().map(|refusal| refusal.reason)
    }

    /// The session that was refused; `None`: none, or the whole connection.
    pub(crate) fn session(&self) -> Option<Uuid> {
        self.refusal().and_then(|refusal| refusal.session)
    }

    /// How the streamer went; `None`: it was refused.
    pub(crate) const fn departure(&self) -> Option<Departure> {
        match self {
            Self::Gone(departure) => Some(*departure),
            Self::Refused(_) | Self::NoRoom(_) => None,
        }
    }

    /// Why it was refused; `None`: it was not.
    pub(crate) fn why(&self) -> Option<String> {
        self.refusal().map(|refusal| refusal.why.to_string())
    }
}

/// A connection that fails needs no message: none would arrive.
impl From<std::io::Error> for ConnectionEnd {
    fn from(_: std::io::Error) -> Self {
        Self::Gone(Departure::Closed)
    }
}

/// The store refuses a session for what is wrong with it alone, and the connection for all else.
impl From<StoreError> for ConnectionEnd {
    fn from(error: StoreError) -> Self {
        let (session, reason) = match &error {
            StoreError::Io { .. } | StoreError::Taken { .. } | StoreError::NotOurs { .. } => {
                (None, Reason::Store)
            }
            StoreError::Full { .. } | StoreError::HostFull { .. } => (None, Reason::SessionMemory),
            StoreError::Foreign { session, .. } => (Some(*session), Reason::Foreign),
            StoreError::Protocol { session, .. } => (Some(*session), Reason::Protocol),
        };
        let end = match error.is_for_want_of_room() {
            true => Self::NoRoom,
            false => Self::Refused,
        };
        end(Refusal {
            session,
            reason,
            why: error.into(),
        })
    }
}
