//! Sessions that claim the uuid of another: one of them lies, and their events must stay apart.

use std::collections::HashMap;

use ringmark_format::Uuid;

use crate::sessions::file_id::FileId;
use crate::sessions::session::Session;

/// Ring files by the uuids under which their sessions leave this process.
#[derive(Debug, Default)]
pub(crate) struct Owners(HashMap<Uuid, FileId>);

impl Owners {
    /// Makes sure that no two ring files share a uuid: the later one gets another. Returns the
    /// notice that says so.
    pub(crate) fn keep_apart(&mut self, session: &mut Session) -> Option<String> {
        let file = session.file_id();
        if *self.0.entry(session.uuid()).or_insert(file) == file {
            return None;
        }
        Some(self.set_apart(session))
    }

    /// Gives the session another uuid: its own belongs to another session. Returns the notice.
    pub(crate) fn set_apart(&mut self, session: &mut Session) -> String {
        session.set_apart();
        self.0.insert(session.uuid(), session.file_id());
        format!(
            "{}: claims the uuid of another session; its events stand under {}",
            session.path().display(),
            session.uuid()
        )
    }
}
