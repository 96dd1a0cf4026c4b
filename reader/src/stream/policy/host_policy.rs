//! The policy that holds on this host, and the bounds that the host's own settings have.
//!
//! Nothing here reads a clock or a file: the caller says what time it is, and keeps what was taken.

use ringmark_format::policy::{Budget, Policy, ServicePolicy};

use super::key::{PolicyFault, PolicyKey};
use crate::sessions::stream_status::PolicyState;

/// What a streamer knows of policies.
#[derive(Debug, Default)]
pub(in crate::stream) struct HostPolicy {
    /// The operator's key; `None`: policies are ignored.
    key: Option<PolicyKey>,
    /// What the host's own settings allow at most.
    own: Vec<ServicePolicy>,
    /// The newest policy that was taken; it may have ended.
    taken: Option<Policy>,
    /// Why the last one that came was refused, if none was taken since.
    refused: Option<PolicyFault>,
}

/// What was done with a policy that came.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::stream) enum Heard {
    /// It holds from now on.
    Taken,
    /// It was taken before.
    Known,
    /// It does not count.
    Refused(PolicyFault),
    /// There is no key, so none counts.
    Ignored,
}

impl HostPolicy {
    /// Without a key, policies are ignored. `own`: what the host's own settings allow at most.
    pub(in crate::stream) fn new(key: Option<PolicyKey>, own: Vec<ServicePolicy>) -> Self {
        Self {
            key,
            own,
            ..Self::default()
        }
    }

    /// Serial of the newest policy that was taken, 0 if none was; `None`: policies are ignored.
    pub(in crate::stream) fn serial(&self) -> Option<u64> {
        self.key.as_ref()?;
        Some(self.taken.as_ref().map_or(0, |policy| policy.serial))
    }

    /// Takes up a policy that was taken before, also if it has ended: an older one is not to come back.
    pub(in crate::stream) fn remember(&mut self, bytes: &[u8]) {
        let kept = self.key.as_ref().and_then(|key| key.read(bytes).ok());
        self.taken = kept.or(self.taken.take());
    }

    /// Looks at a policy that came.
    pub(in crate::stream) fn hear(&mut self, bytes: &[u8], now_s: u64) -> Heard {
        let Some(key) = &self.key else {
            return Heard::Ignored;
        };
        match key.read(bytes).and_then(|policy| self.check(policy, now_s)) {
            Ok(None) => {
                self.refused = None;
                Heard::Known
            }
            Ok(taken) => {
                (self.taken, self.refused) = (taken, None);
                Heard::Taken
            }
            Err(fault) => {
                self.refused = Some(fault.clone());
                Heard::Refused(fault)
            }
        }
    }

    /// The policy, if it is to be taken; `None`: it was.
    fn check(&self, policy: Policy, now_s: u64) -> Result<Option<Policy>, PolicyFault> {
        let serial = policy.serial;
        if policy.until_s <= now_s {
            return Err(PolicyFault::Over { serial });
        }
        match &self.taken {
            Some(taken) if *taken == policy => Ok(None),
            Some(Policy { serial: newest, .. }) if serial < *newest => Err(PolicyFault::Old {
                serial,
                newest: *newest,
            }),
            Some(taken) if serial == taken.serial => Err(PolicyFault::Other { serial }),
            _ => Ok(Some(policy)),
        }
    }

    /// The policy that holds now.
    pub(in crate::stream) fn holds(&self, now_s: u64) -> Option<&Policy> {
        let taken = self.taken.as_ref();
        taken.filter(|policy| now_s < policy.until_s)
    }

    /// The rules for the sessions of a service, as its request has them; empty: none.
    pub(in crate::stream) fn rules_of(&self, service: &str, now_s: u64) -> String {
        let section = self.holds(now_s).and_then(|policy| policy.of(service));
        section.map_or_else(String::new, |section| section.rules.join(" "))
    }

    /// The budget of a service: the smaller of the host's own and the policy's.
    pub(in crate::stream) fn budget_of(&self, service: &str, now_s: u64) -> Budget {
        let own = ServicePolicy::of(&self.own, service).map(|own| own.budget);
        let policy = self.holds(now_s).and_then(|policy| policy.of(service));
        let policy = policy.map(|section| section.budget);
        own.unwrap_or_default().and(policy.unwrap_or_default())
    }

    /// What is to be said to people.
    pub(in crate::stream) fn state(&self, now_s: u64) -> PolicyState {
        let holds = self.holds(now_s);
        PolicyState {
            serial: holds.map(|policy| policy.serial),
            until_s: holds.map(|policy| policy.until_s),
            refused: self.refused.as_ref().map(ToString::to_string),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::tests::{policy, signer};
    use super::*;

    fn signed(serial: u64, until_s: u64) -> Vec<u8> {
        signer(1)
            .sign(&policy(serial, until_s))
            .unwrap()
            .into_bytes()
    }

    fn host() -> HostPolicy {
        HostPolicy::new(signer(1).key(), Vec::new())
    }

    #[test]
    fn serials_only_grow_and_a_policy_ends() {
        let mut host = host();
        assert_eq!(host.serial(), Some(0));
        assert_eq!(host.hear(&signed(5, 100), 10), Heard::Taken);
        assert_eq!(host.hear(&signed(5, 100), 20), Heard::Known);
        assert_eq!(host.rules_of("shop", 99), "disable *");
        assert_eq!(host.rules_of("other", 99), "");
        let old = PolicyFault::Old {
            serial: 4,
            newest: 5,
        };
        assert_eq!(host.hear(&signed(4, 900), 20), Heard::Refused(old.clone()));
        assert_eq!(host.state(20).refused, Some(old.to_string()));
        assert_eq!(host.state(20).serial, Some(5), "it holds all the same");
        let other = PolicyFault::Other { serial: 5 };
        assert_eq!(host.hear(&signed(5, 900), 20), Heard::Refused(other));
        // Over: the host's own settings alone count, and an older one does not come back.
        assert_eq!(
            (host.rules_of("shop", 100), host.state(100).serial),
            (String::new(), None)
        );
        assert!(matches!(host.hear(&signed(4, 900), 100), Heard::Refused(_)));
        let over = PolicyFault::Over { serial: 6 };
        assert_eq!(host.hear(&signed(6, 100), 100), Heard::Refused(over));
        assert_eq!(host.hear(&signed(6, 200), 100), Heard::Taken);
        assert_eq!(host.serial(), Some(6));
    }

    #[test]
    fn a_policy_that_has_ended_is_remembered() {
        let mut host = host();
        host.remember(&signed(7, 100));
        assert_eq!((host.serial(), host.state(200).serial), (Some(7), None));
        let old = PolicyFault::Old {
            serial: 6,
            newest: 7,
        };
        assert_eq!(host.hear(&signed(6, 900), 200), Heard::Refused(old));
        let mut other = HostPolicy::new(signer(2).key(), Vec::new());
        other.remember(&signed(7, 100));
        assert_eq!(other.serial(), Some(0), "its signature is another's");
    }

    #[test]
    fn without_a_key_and_with_another_one_nothing_counts() {
        let mut none = HostPolicy::default();
        assert_eq!(none.hear(&signed(5, 100), 10), Heard::Ignored);
        assert_eq!(
            (none.serial(), none.state(10)),
            (None, PolicyState::default())
        );
        let mut other = HostPolicy::new(signer(2).key(), Vec::new());
        let heard = other.hear(&signed(5, 100), 10);
        assert_eq!(heard, Heard::Refused(PolicyFault::Signature));
        for bytes in [&b""[..], b"\xFF", &[b'\n'; 70_000]] {
            assert!(matches!(host().hear(bytes, 10), Heard::Refused(_)));
        }
    }

    #[test]
    fn a_policy_bounds_below_the_hosts_own_bound() {
        let budget = |bytes| Budget {
            bytes_per_hour: Some(bytes),
            burst: None,
        };
        let section = |service: &str, bytes| ServicePolicy {
            service: service.to_owned(),
            budget: budget(bytes),
            ..ServicePolicy::default()
        };
        let own = vec![section("*", 100), section("shop", 50)];
        let mut host = HostPolicy::new(signer(1).key(), own);
        let asked = Policy {
            serial: 1,
            until_s: 100,
            services: vec![section("shop", 70), section("db", 30)],
        };
        let signed = signer(1).sign(&asked).unwrap();
        assert_eq!(host.hear(signed.as_bytes(), 1), Heard::Taken);
        for (service, bytes) in [("shop", 50), ("db", 30), ("other", 100)] {
            assert_eq!(host.budget_of(service, 1), budget(bytes), "{service}");
        }
        assert_eq!(host.budget_of("db", 100), budget(100), "it has ended");
    }
}
