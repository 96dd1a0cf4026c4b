//! The policy of this host's streamer: heard from the collector or kept from before, and applied.

use std::path::PathBuf;

use ringmark_format::policy::ServicePolicy;
use ringmark_format::progress::ProgressPolicy;

use super::rules::{RuleOutcome, RuleThread};
use crate::sessions::kept_policy::{self, now_s};
use crate::sessions::stream_status::PolicyState;
use crate::stream::policy::{Budgets, Heard, HostPolicy, PolicyKey};
use crate::stream::streamed_session::StreamedSession;
use crate::whole_file;

/// Policies, and what they bound.
#[derive(Default)]
pub(super) struct Policies {
    held: HostPolicy,
    pub(super) budgets: Budgets,
    /// Hands rules to sessions, once there are any.
    rules: Option<RuleThread>,
    /// Where the policy that was taken is kept.
    kept: PathBuf,
    /// The user was told that policies are ignored.
    told_ignored: bool,
    /// Serial of the policy that held when last looked.
    held_serial: Option<u64>,
}

impl Policies {
    /// Takes up the policy that an earlier streamer left.
    pub(super) fn new(key: Option<PolicyKey>, own: Vec<ServicePolicy>) -> Self {
        let mut new = Self {
            held: HostPolicy::new(key, own),
            kept: kept_policy::path(),
            ..Self::default()
        };
        if new.held.serial().is_some()
            && let Some(bytes) = kept_policy::read(&new.kept)
        {
            new.held.remember(&bytes);
        }
        new
    }

    /// The serial of the newest policy that was taken; `None`: policies are ignored.
    pub(super) fn serial(&self) -> Option<u64> {
        self.held.serial()
    }

    /// What is to be said to people.
    pub(super) fn state(&self) -> PolicyState {
        self.held.state(now_s())
    }

    /// The policy that holds, as PROGRESS says it.
    fn in_progress(&self) -> Option<ProgressPolicy> {
        self.held.holds(now_s()).map(|policy| ProgressPolicy {
            serial: policy.serial,
            until_s: policy.until_s,
        })
    }

    /// Looks at a policy that the collector sent. Returns what the user is told.
    pub(super) fn hear(&mut self, bytes: &[u8]) -> Option<String> {
        match self.held.hear(bytes, now_s()) {
            Heard::Known => None,
            Heard::Taken => {
                let serial = self.held.serial().unwrap_or_default();
                let kept = whole_file::replace(&self.kept, "policy.new", bytes);
                let not_kept = kept.err().map(|error| {
                    let at = self.kept.display();
                    format!("; {at}: {error}: the next streamer may take an older one")
                });
                Some(format!(
                    "policy {serial} holds{}",
                    not_kept.unwrap_or_default()
                ))
            }
            Heard::Refused(fault) => Some(format!("the collector's policy is refused: {fault}")),
            Heard::Ignored if self.told_ignored => None,
            Heard::Ignored => {
                self.told_ignored = true;
                Some("the collector has a policy, which is ignored without --policy-key".to_owned())
            }
        }
    }

    /// The serial of a policy that has ended since the last call.
    pub(super) fn take_ended(&mut self) -> Option<u64> {
        let serial = self.state().serial;
        let before = std::mem::replace(&mut self.held_serial, serial);
        before.filter(|_| serial.is_none())
    }

    /// What became of rules since the last call.
    pub(super) fn outcomes(&self) -> Vec<RuleOutcome> {
        let thread = self.rules.as_ref();
        thread.map(RuleThread::outcomes).unwrap_or_default()
    }

    /// Applies what holds now to a session, if that differs from before.
    pub(super) fn apply(&mut self, session: &mut StreamedSession) {
        let now = now_s();
        let budget = self.held.budget_of(&session.service, now);
        self.budgets.set(&session.service, budget);
        session.set_policy(self.in_progress());
        let rules = self.held.rules_of(&session.service, now);
        let until_s = match rules.is_empty() {
            true => 0,
            false => self.held.holds(now).map_or(0, |policy| policy.until_s),
        };
        let Some(order) = session.rules_order(until_s, &rules) else {
            return;
        };
        if self.rules.is_none() {
            self.rules = RuleThread::start();
        }
        if let Some(thread) = &self.rules {
            thread.order(order);
        }
    }
}
