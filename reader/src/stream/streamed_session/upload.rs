//! Sessions in overwrite mode whose pages stay in their rings until something happens.

use ringmark_format::ending::Ending;

use super::hold::Hold;
use super::pass::{NOTHING, Passed};
use super::{Stage, StreamedSession};
use crate::sessions::session::Session;

impl StreamedSession {
    /// Has the pages of a session in overwrite mode wait for a trigger from now on.
    pub(in crate::stream) fn hold(&mut self) {
        let session = self.drain().map(|drain| drain.session());
        if session.is_some_and(|session| !session.consumes()) {
            self.hold = Hold::Waiting;
        }
    }

    /// Sends what is there now, if it waits for a trigger. Returns whether it did.
    pub(in crate::stream) fn upload(&mut self) -> bool {
        let waited = self.hold == Hold::Waiting;
        if waited {
            self.hold = Hold::Uploading;
            self.uploads += 1;
        }
        waited
    }

    /// Whether its pages stay where they are: it waits for a trigger, or nothing of it is wanted.
    pub(in crate::stream) const fn is_held(&self) -> bool {
        matches!(self.hold, Hold::Waiting | Hold::Unwanted)
    }

    /// Leaves its pages where they are; ends the session if nothing of it is wanted.
    pub(super) fn stay(&mut self) -> Passed {
        if self.hold == Hold::Unwanted {
            self.stage = Stage::Sent;
        }
        NOTHING
    }

    /// Notes that all that was there is sent. A session that goes on waits for a trigger again.
    pub(super) fn sent_all(&mut self, ended: bool) {
        self.stage = Stage::Sent;
        if self.hold == Hold::Uploading && !ended {
            (self.hold, self.stage) = (Hold::Waiting, Stage::Streaming);
        }
    }

    /// Ends the wait of a session whose process has ended: after a bad end it is sent. Returns what
    /// the user is told.
    pub(super) fn look_at_end(&mut self) -> Option<String> {
        let mapped = self.mapped.as_mut()?;
        let session = mapped.drain.session();
        // This also finds a process that has become another program.
        let _ = mapped.lifetime.has_ended(session);
        let ending = session.has_died_by_now().then(|| session.ending())??;
        if ending.is_clean() {
            self.hold = Hold::Unwanted;
            return None;
        }
        let told = notice(session, ending);
        self.upload().then_some(told)
    }
}

fn notice(session: &Session, ending: Ending) -> String {
    format!(
        "pid {}: {ending}: what the rings hold is sent",
        session.pid()
    )
}
