//! Undoes that hosts were given up: when a segment brings something new of one of their sessions, the files with what was there
//! leave the tables, and the sessions go on from where they were before.

use std::collections::BTreeMap;

use ringmark_decoder::CoveredSession;
use ringmark_format::Uuid;

use super::inputs::Footer;
use super::plan::{Known, Plan};
use super::tables::{Paths, has};

/// What was undone.
#[derive(Debug, Default)]
pub(crate) struct Undone {
    /// Sessions that go on.
    pub(crate) sessions: u64,
    /// Files that leave the tables.
    pub(crate) files: Paths,
}

impl Plan {
    /// Undoes that sessions were given up which these segments have something of. `segments`: all that are there; without those
    /// that were read then nothing is undone.
    pub(crate) fn take_back(
        &mut self,
        heard: &BTreeMap<String, Footer>,
        segments: &BTreeMap<String, u64>,
    ) -> Undone {
        let all = std::mem::take(&mut self.given_up);
        let (undone, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(|of| {
            let is_there = |name: &String| segments.contains_key(name);
            of.segments.iter().all(is_there) && heard.iter().any(|new| of.is_heard(new))
        });
        self.given_up = kept;
        let mut removed = Undone::default();
        for of in undone {
            removed.sessions += of.sessions.len() as u64;
            self.done.retain(|name| !of.segments.contains(name));
            for covered in of.sessions {
                let is_it = |known: &Known| known.is_of((&covered.host, covered.session));
                self.sessions.retain(|known| !is_it(known));
                self.sessions.push(Known {
                    covered,
                    over_ns: 0,
                });
            }
            for (table, paths) in of.files {
                removed.files.entry(table).or_default().extend(paths);
            }
        }
        removed
    }

    /// Forgets how to undo what was given up so long ago that its sessions are forgotten.
    pub(crate) fn forget_given_up(&mut self) {
        let sessions = &self.sessions;
        let is_known = |of: &CoveredSession| {
            sessions
                .iter()
                .any(|known| known.is_of((&of.host, of.session)))
        };
        self.given_up.retain(|of| of.sessions.iter().any(is_known));
    }

    /// Whether a session is one that was given up.
    pub(crate) fn may_go_on(&self, (host, session): (&[u8], Uuid)) -> bool {
        let is_it = |of: &CoveredSession| of.session == session && of.host == host;
        self.given_up.iter().any(|of| of.sessions.iter().any(is_it))
    }

    /// Whether a segment is read again if a host that was given up speaks.
    pub(crate) fn may_read_again(&self, segment: &str) -> bool {
        self.given_up.iter().any(|of| of.segments.contains(segment))
    }

    /// Whether a file of a table is one that a batch took out of it, or that a later one may.
    pub(crate) fn may_leave(&self, table: &str, path: &str) -> bool {
        let given_up = self.given_up.iter().map(|of| &of.files);
        let mut all = given_up.chain([&self.removed]);
        all.any(|files| has(files, (table, path)))
    }
}
