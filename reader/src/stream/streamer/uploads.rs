//! What has the rings of flight recorders sent.

use ringmark_format::Uuid;

use super::Streamer;
use super::triggers::TriggerWatch;
use crate::stream::streamed_session::StreamedSession;

impl Streamer {
    /// Sends what the rings of all sessions in overwrite mode hold now, where these wait for a
    /// trigger (`Upload::OnTrigger`).
    pub fn upload(&mut self) {
        let uploads = self.sessions.iter_mut().map(StreamedSession::upload);
        let sessions = match uploads.filter(|uploads| *uploads).count() {
            1 => "1 session".to_owned(),
            count => format!("{count} sessions"),
        };
        self.notices
            .push(format!("{sessions}: what the rings hold is sent"));
    }

    /// Sends what is in the rings of the processes whose triggers wanted that.
    pub(super) fn hear_triggers(&mut self) {
        let wanted = self.triggers.as_ref().map(TriggerWatch::take_wanted);
        for uuid in wanted.unwrap_or_default() {
            self.upload_process_of(uuid);
        }
    }

    /// Sends what is in the rings of all sessions of this one's process.
    fn upload_process_of(&mut self, uuid: Uuid) {
        let header = |s: &StreamedSession| Some(*s.drain()?.session().header());
        let Some(its) = self
            .sessions
            .iter()
            .find(|s| s.uuid == uuid)
            .and_then(header)
        else {
            return;
        };
        let is_its = |s: &StreamedSession| {
            s.uuid == uuid
                || its.process().is_some() && header(s).and_then(|h| h.process()) == its.process()
        };
        let sessions = self.sessions.iter_mut().filter(|s| is_its(s));
        if sessions.map(StreamedSession::upload).filter(|u| *u).count() > 0 {
            let pid = its.pid;
            self.notices
                .push(format!("pid {pid}: a trigger: what the rings hold is sent"));
        }
    }
}
