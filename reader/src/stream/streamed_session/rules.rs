//! The rules of a policy for one session.

use ringmark_format::progress::ProgressPolicy;
use ringmark_format::session_text::{PolicyRules, SessionRequest};

use super::StreamedSession;
use crate::stream::policy::RuleOrder;

impl StreamedSession {
    /// Sets the policy that holds for it, which PROGRESS says.
    pub(in crate::stream) fn set_policy(&mut self, policy: Option<ProgressPolicy>) {
        self.ledger.policy = policy;
    }

    /// What is to be handed to its process, so that these rules hold; `None`: they do, as far as was tried.
    pub(in crate::stream) fn rules_order(
        &mut self,
        until_s: u64,
        rules: &str,
    ) -> Option<RuleOrder> {
        let request = SessionRequest::Policy(PolicyRules { until_s, rules }).to_string();
        let before = self.rules.as_deref();
        if before == Some(&request) || (before.is_none() && rules.is_empty()) {
            return None;
        }
        let session = self.mapped.as_ref()?.drain.session();
        let order = RuleOrder {
            session: self.uuid,
            ring_file: session.path().to_owned(),
            request: request.clone(),
        };
        self.rules = Some(request);
        Some(order)
    }
}
