//! What a dump holds of each host.

use crate::sums::verify::Verification;
use crate::trace_file::dump::Dump;

/// The figures of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFigures {
    /// Its name, as [`Session::host`](crate::Session::host) gives it; empty if not known.
    pub host: Vec<u8>,
    /// Its processes.
    pub processes: u64,
    /// Events that are here.
    pub events: u64,
    /// Events that were never written.
    pub lost: u64,
    /// Earliest event, ns since 1970.
    pub first_ns: Option<u64>,
    /// Latest event, ns since 1970.
    pub last_ns: Option<u64>,
}

impl Dump {
    /// Whether its sessions ran on several hosts.
    #[must_use]
    pub fn has_several_hosts(&self) -> bool {
        let mut hosts = self.sessions.iter().map(|s| s.host());
        let first = hosts.next();
        hosts.any(|host| Some(host) != first)
    }

    /// The figures of each host, by name.
    #[must_use]
    pub fn hosts(&self) -> Vec<HostFigures> {
        let mut names: Vec<_> = self.sessions.iter().map(|s| s.host()).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(|host| self.of_host(host)).collect()
    }

    fn of_host(&self, host: &[u8]) -> HostFigures {
        let mut sum = Verification::default();
        let mut processes = Vec::new();
        for session in self.sessions.iter().filter(|s| s.host() == host) {
            sum.add_session(session);
            processes.push(session.process);
        }
        processes.sort_unstable();
        processes.dedup();
        HostFigures {
            host: host.to_vec(),
            processes: processes.len() as u64,
            events: sum.events,
            lost: sum.lost,
            first_ns: sum.first_ns,
            last_ns: sum.last_ns,
        }
    }
}
