//! Keeps sessions apart that claim one uuid.
//!
//! A ring file is written by any program of the user, and a copied or hostile one may carry the
//! uuid of another session. Under one uuid a decoder would mix the events of both.

use std::collections::HashMap;

use ringmark_format::Uuid;

use crate::sessions::file_id::FileId;
use crate::sessions::session::Session;

/// Which ring file each uuid stands for in what this process writes or sends.
#[derive(Debug, Default)]
pub(crate) struct UuidOwners(HashMap<Uuid, FileId>);

impl UuidOwners {
    /// Makes sure that no two ring files share a uuid: the later one gets another, and a notice
    /// says so.
    pub(crate) fn keep_apart(&mut self, session: &mut Session) -> Option<String> {
        let file = session.file_id();
        if *self.0.entry(session.uuid()).or_insert(file) == file {
            return None;
        }
        Some(self.set_apart(session))
    }

    /// Gives the session another uuid; returns a notice.
    pub(crate) fn set_apart(&mut self, session: &mut Session) -> String {
        session.set_apart();
        self.0.insert(session.uuid(), session.file_id());
        format!(
            "{}: claims the uuid of another session; its events are under {}",
            session.path().display(),
            session.uuid()
        )
    }
}
