//! Chooses sessions by where their processes ran: host, service, process id.

use ringmark_format::glob::matches as glob;

use crate::trace_file::session::Session;

/// A choice of sessions. A session has to pass every part; several hosts, services or processes are
/// alternatives. A new choice lets all pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionChoice {
    /// Names of hosts; `*` is any text, `?` any character.
    pub hosts: Vec<String>,
    /// Names of services, likewise.
    pub services: Vec<String>,
    /// Process ids, as the processes know them.
    pub pids: Vec<u32>,
    /// A share of the hosts: which one, counted from 0, and of how many.
    pub share: Option<(u32, u32)>,
}

fn names(patterns: &[String], name: &[u8]) -> bool {
    let mut patterns = patterns.iter();
    patterns.len() == 0 || patterns.any(|pattern| glob(pattern.as_bytes(), name))
}

impl SessionChoice {
    /// Whether it lets all sessions pass.
    #[must_use]
    pub fn is_all(&self) -> bool {
        let names = self.hosts.is_empty() && self.services.is_empty();
        names && self.pids.is_empty() && self.share.is_none()
    }

    /// Whether sessions of this host can pass.
    #[must_use]
    pub fn host_passes(&self, host: &[u8]) -> bool {
        let sum = |sum: u32, byte: &u8| sum.wrapping_mul(31).wrapping_add((*byte).into());
        let is_shared = |(share, of): (u32, u32)| host.iter().fold(0, sum) % of.max(1) == share;
        names(&self.hosts, host) && self.share.is_none_or(is_shared)
    }

    /// Whether the host alone says which sessions pass.
    pub(crate) fn is_by_host(&self) -> bool {
        self.services.is_empty() && self.pids.is_empty()
    }

    /// Whether a session passes.
    #[must_use]
    pub fn passes(&self, session: &Session) -> bool {
        self.host_passes(session.host())
            && names(&self.services, session.service())
            && (self.pids.is_empty() || self.pids.contains(&session.pid()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_is_in_one_share() {
        let hosts = (0..200).map(|number| format!("host-{number}"));
        let hosts: Vec<String> = hosts.chain([String::new()]).collect();
        let of_share = |share| {
            let choice = SessionChoice {
                share: Some((share, 4)),
                ..SessionChoice::default()
            };
            assert!(!choice.is_all());
            hosts
                .iter()
                .filter(|host| choice.host_passes(host.as_bytes()))
                .count()
        };
        let counts: Vec<_> = (0..4).map(of_share).collect();
        assert_eq!(counts.iter().sum::<usize>(), hosts.len());
        assert!(counts.iter().all(|count| *count > 30), "{counts:?}");
    }
}
