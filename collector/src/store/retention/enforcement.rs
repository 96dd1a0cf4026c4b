//! One enforcement: what is too old or too much is removed, and no more of it than may go at once.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use ringmark_decoder::Stamper;

use super::by_host::{ByHost, Candidate};
use crate::store::error::StoreError;
use crate::store::free_space::FreeSpace;
use crate::store::options::Retention;

/// What an enforcement needs of the sessions that write the segments.
pub(in crate::store) trait Sessions {
    /// Whether a segment may still change, or be needed again.
    fn is_written(&self, segment: &Path) -> bool;
    /// Whether a session appends to a segment.
    fn is_open(&self, segment: &Path) -> bool;
    /// Has a session append to it no longer.
    fn close(&self, segment: &Path);
    /// Removes a segment; `false`: it must stay.
    fn remove(&self, segment: &Path) -> Result<bool, StoreError>;
}

/// Why the store is enforced now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Occasion {
    /// It is time.
    Regular,
    /// More came than may be kept: only as much as came is removed.
    TooMuchCame,
}

/// What an enforcement found and did.
#[derive(Debug, Default)]
pub(in crate::store) struct Enforced {
    /// Segments removed.
    pub(in crate::store) removed: u64,
    /// Their bytes.
    pub(in crate::store) removed_bytes: u64,
    /// Those of each host, by why they are removed.
    pub(in crate::store) removed_of: BTreeMap<(String, Why), Removed>,
    /// Bytes of all segments that are left.
    pub(in crate::store) bytes: u64,
    pub(in crate::store) errors: Vec<StoreError>,
    /// Notices for the operator.
    pub(in crate::store) notices: Vec<String>,
}

/// Segments of a host that were removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct Removed {
    pub(in crate::store) segments: u64,
    pub(in crate::store) bytes: u64,
    /// When their first and last events were, in ns since 1970.
    times: (u64, u64),
}

/// Why segments are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store) enum Why {
    Age(Duration),
    HostSize(u64),
    Size(u64),
    Free(u64),
}

/// An enforcement under way.
pub(super) struct Enforcement<'e, S> {
    pub(super) sessions: &'e S,
    pub(super) left: ByHost,
    pub(super) done: Enforced,
    /// Bytes that may be removed now.
    pub(super) most: u64,
    /// One segment may go even if it is larger.
    pub(super) may_exceed: bool,
    /// Not all that is too much could be removed now.
    pub(super) is_held_back: bool,
}

impl<S: Sessions> Enforcement<'_, S> {
    /// Removes what is too old, then what is too much of a host, of all, or for the file system.
    pub(super) fn remove_all(
        &mut self,
        retention: &Retention,
        old_ns: u64,
        free: Option<FreeSpace>,
    ) {
        let age = retention.age.unwrap_or_default();
        for candidate in self.left.take_older_than(old_ns) {
            self.remove(candidate, Why::Age(age));
        }
        if let Some(most) = retention.host_bytes {
            while !self.is_held_back
                && let Some(candidate) = self.left.next_above(most)
            {
                self.remove(candidate, Why::HostSize(most));
            }
        }
        if let Some(most) = retention.bytes {
            self.remove_while(|now| now > most, Why::Size(most));
        }
        if let Some(free) = free {
            let floor = retention.min_free.bytes(free.whole_bytes);
            let lack = floor.saturating_sub(free.free_bytes);
            let keep = self.left.bytes().saturating_sub(lack);
            self.remove_while(|now| now > keep, Why::Free(floor));
        }
        self.done.tell();
    }

    /// Removes from the host that has most while all together are too much.
    fn remove_while(&mut self, is_much: impl Fn(u64) -> bool, why: Why) {
        while is_much(self.left.bytes())
            && !self.is_held_back
            && let Some(candidate) = self.left.next_of_fullest()
        {
            self.remove(candidate, why);
        }
    }

    /// Removes a segment if that is not too much at once. One that is open is closed, and counts as
    /// gone: the next enforcement removes it.
    fn remove(&mut self, candidate: Candidate, why: Why) {
        let is_first = self.done.removed == 0 && self.may_exceed;
        if !is_first && self.done.removed_bytes + candidate.bytes > self.most {
            self.is_held_back = true;
            return;
        }
        if candidate.is_open {
            self.sessions.close(&candidate.path);
            self.left.gone(&candidate);
            return;
        }
        match self.sessions.remove(&candidate.path) {
            Ok(true) => {
                self.left.gone(&candidate);
                self.done.count(&candidate, why);
            }
            Ok(false) => {}
            Err(error) => self.done.errors.push(error),
        }
    }
}

impl Enforced {
    /// Counts a segment that was removed.
    fn count(&mut self, segment: &Candidate, why: Why) {
        self.removed += 1;
        self.removed_bytes += segment.bytes;
        let (first, last) = (segment.times.first_ns, segment.times.last_ns);
        let of = self.removed_of.entry((segment.host(), why));
        let of = of.or_insert(Removed {
            segments: 0,
            bytes: 0,
            times: (first, last),
        });
        of.segments += 1;
        of.bytes += segment.bytes;
        of.times = (first.min(of.times.0), last.max(of.times.1));
    }

    /// What an operator is told of them: a line for each host, and not for each segment.
    fn tell(&mut self) {
        let lines = self.removed_of.iter().map(|((host, why), of)| {
            let (first, last) = (stamp(of.times.0), stamp(of.times.1));
            let (segments, bytes) = (of.segments, of.bytes);
            let s = if segments == 1 { "" } else { "s" };
            format!("removed {segments} segment{s} of host {host}, {first} to {last}, {bytes} bytes: {why}")
        });
        self.notices.extend(lines);
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Age(age) => write!(f, "older than --keep-age, {} s", age.as_secs_f64()),
            Self::Size(most) => {
                write!(f, "of the host with most, beyond --keep-size, {most} bytes")
            }
            Self::HostSize(most) => write!(
                f,
                "the host's oldest beyond --keep-size-per-host, {most} bytes"
            ),
            Self::Free(least) => write!(f, "of the host with most, for --min-free, {least} bytes"),
        }
    }
}

/// A time to the second, for notices.
pub(super) fn stamp(ns: u64) -> String {
    String::from_utf8_lossy(&Stamper::default().stamp(ns)[..19]).into_owned()
}
