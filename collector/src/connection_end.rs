//! Why a connection ended, and the message that says so.

use ringmark_format::Uuid;
use ringmark_format::stream::refusal;

use crate::messages;
use crate::store::StoreError;

/// Why a connection ended.
#[derive(Debug)]
pub(crate) enum End {
    /// It said BYE, or went away.
    Gone,
    /// It was refused, for this reason.
    Refused(u32, String),
    /// A session of it was refused.
    RefusedSession(Uuid, u32, String),
}

impl End {
    /// Refuses a peer that breaks the protocol.
    pub(crate) fn protocol(what: impl ToString) -> Self {
        Self::Refused(refusal::PROTOCOL, what.to_string())
    }

    /// The message that says it; `None`: there is nothing to say.
    pub(crate) fn message(&self) -> Option<Vec<u8>> {
        match self {
            Self::Gone => None,
            Self::Refused(code, why) => Some(messages::refused(*code, why)),
            Self::RefusedSession(session, code, why) => {
                Some(messages::refused_session(*session, *code, why))
            }
        }
    }

    /// Why it was refused.
    pub(crate) fn why(&self) -> Option<&str> {
        match self {
            Self::Gone => None,
            Self::Refused(_, why) | Self::RefusedSession(_, _, why) => Some(why),
        }
    }
}

impl From<std::io::Error> for End {
    fn from(_: std::io::Error) -> Self {
        Self::Gone
    }
}

impl From<StoreError> for End {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::Io { .. } | StoreError::Taken { .. } | StoreError::NotOurs { .. } => {
                refusal::STORE
            }
            StoreError::Foreign { .. } => refusal::FOREIGN,
            StoreError::Full { .. } => refusal::BUSY,
            StoreError::Protocol { .. } => refusal::PROTOCOL,
        };
        let why = error.to_string();
        match error {
            StoreError::Foreign { session, .. } | StoreError::Protocol { session, .. } => {
                Self::RefusedSession(session, code, why)
            }
            _ => Self::Refused(code, why),
        }
    }
}
