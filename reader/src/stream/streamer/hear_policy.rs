//! A streamer that hears a policy, and applies what holds to its sessions.

use super::Streamer;

impl Streamer {
    /// Acts on a policy that the collector sent.
    pub(super) fn hear_policy(&mut self, bytes: &[u8]) {
        self.notices.extend(self.policies.hear(bytes));
        let serial = self.policies.serial().unwrap_or(0);
        self.link.say_policy_serial(serial);
        self.apply_policies();
    }

    /// Applies what holds now to all sessions, and hears what became of the rules.
    pub(super) fn apply_policies(&mut self) {
        if let Some(serial) = self.policies.take_ended() {
            let text = format!("policy {serial} has ended: this host's own settings hold");
            self.notices.push(text);
        }
        for session in &mut self.sessions {
            self.policies.apply(session);
        }
        for outcome in self.policies.outcomes() {
            let mut sessions = self.sessions.iter_mut();
            let Some(session) = sessions.find(|session| session.uuid == outcome.session) else {
                continue;
            };
            if let Some(why) = &outcome.refused
                && session.rules_refused.as_ref() != Some(why)
            {
                let text = format!("the rules of the policy are not in force: {why}");
                self.notices.push(text);
            }
            session.rules_refused = outcome.refused;
        }
    }
}
