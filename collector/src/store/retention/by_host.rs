//! Segments by host: the one that takes most gives first, so no host evicts what another one sent.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use ringmark_decoder::store as files;

use super::segment_times::SegmentTimes;

/// A segment that may be removed. The order is that of removal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    pub(super) times: SegmentTimes,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// A session writes it.
    pub(super) is_open: bool,
}

impl Candidate {
    /// The host that sent it, as the name of a directory.
    pub(super) fn host(&self) -> String {
        files::host(&self.path).unwrap_or_default().to_owned()
    }
}

/// The segments of one host.
#[derive(Debug, Default)]
pub(super) struct HostSegments {
    /// Bytes of all of them.
    pub(super) bytes: u64,
    /// Those that are not written any more, the oldest first.
    closed: VecDeque<Candidate>,
    /// Those that are, the largest last.
    open: Vec<Candidate>,
}

impl HostSegments {
    /// The next one that it gives: its oldest, or its largest open one, which is to be closed first.
    pub(super) fn next(&mut self) -> Option<Candidate> {
        self.closed.pop_front().or_else(|| self.open.pop())
    }

    fn is_empty(&self) -> bool {
        self.closed.is_empty() && self.open.is_empty()
    }
}

/// The segments of all hosts.
#[derive(Debug, Default)]
pub(super) struct ByHost(BTreeMap<String, HostSegments>);

impl ByHost {
    /// Sorts these by host.
    pub(super) fn of(mut candidates: Vec<Candidate>) -> Self {
        candidates.sort();
        let mut all = Self::default();
        for candidate in candidates {
            let host = all.0.entry(candidate.host()).or_default();
            host.bytes += candidate.bytes;
            match candidate.is_open {
                true => host.open.push(candidate),
                false => host.closed.push_back(candidate),
            }
        }
        for host in all.0.values_mut() {
            host.open.sort_by_key(|candidate| candidate.bytes);
        }
        all
    }

    /// Bytes of all of them.
    pub(super) fn bytes(&self) -> u64 {
        self.0.values().map(|host| host.bytes).sum()
    }

    /// The next segment that is given when all together are too much: of the host with most bytes.
    pub(super) fn next_of_fullest(&mut self) -> Option<Candidate> {
        self.next_above(0)
    }

    /// The next segment of the host with most bytes, if these are more than `most`.
    pub(super) fn next_above(&mut self, most: u64) -> Option<Candidate> {
        let hosts = self.0.values_mut();
        let giving = hosts.filter(|host| host.bytes > most && !host.is_empty());
        giving.max_by_key(|host| host.bytes)?.next()
    }

    /// Takes out the closed segments whose last event is older than this.
    pub(super) fn take_older_than(&mut self, old_ns: u64) -> Vec<Candidate> {
        let mut old = Vec::new();
        for host in self.0.values_mut() {
            let is_old = |candidate: &Candidate| candidate.times.last_ns < old_ns;
            while host.closed.front().is_some_and(is_old) {
                old.extend(host.closed.pop_front());
            }
        }
        old.sort();
        old
    }

    /// Counts a segment as gone.
    pub(super) fn gone(&mut self, candidate: &Candidate) {
        if let Some(host) = self.0.get_mut(&candidate.host()) {
            host.bytes = host.bytes.saturating_sub(candidate.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ringmark_format::Uuid;

    use super::*;

    fn segment(host: &str, number: u32, bytes: u64, is_open: bool) -> Candidate {
        let directory = Path::new("/store/2026-11-25/service").join(host);
        let ns = u64::from(number);
        Candidate {
            times: SegmentTimes {
                last_ns: ns,
                first_ns: ns,
                is_final: true,
            },
            path: files::segment(&directory, Uuid([7; 16]), number),
            bytes,
            is_open,
        }
    }

    #[test]
    fn the_host_with_most_gives_its_oldest_and_at_last_what_is_open() {
        let mut all = ByHost::of(vec![
            segment("evil", 9, 300, false),
            segment("evil", 8, 300, false),
            segment("evil", 7, 400, true),
            segment("web-1", 1, 500, false),
        ]);
        assert_eq!(all.bytes(), 1500);
        let mut order = Vec::new();
        while let Some(next) = all.next_of_fullest() {
            order.push((next.host(), next.times.last_ns));
            all.gone(&next);
        }
        let expected = [("evil", 8), ("evil", 9), ("web-1", 1), ("evil", 7)];
        assert_eq!(order, expected.map(|(host, ns)| (host.to_owned(), ns)));
        assert_eq!(all.bytes(), 0);
    }

    #[test]
    fn no_host_gives_what_it_may_keep() {
        let mut all = ByHost::of(vec![
            segment("a", 1, 100, false),
            segment("a", 2, 100, false),
            segment("b", 1, 90, false),
        ]);
        let next = all.next_above(100).unwrap();
        assert_eq!((next.host().as_str(), next.times.last_ns), ("a", 1));
        all.gone(&next);
        assert_eq!(all.next_above(100), None);
        let old: Vec<_> = all.take_older_than(2).iter().map(Candidate::host).collect();
        assert_eq!(old, ["b"]);
    }
}
