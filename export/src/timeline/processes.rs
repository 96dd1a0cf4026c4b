//! Processes as viewers tell them apart: by an id that no other has, and a name.

use std::collections::{BTreeMap, BTreeSet};

use ringmark_decoder::{Dump, Session, escape};

/// Above the largest process id that Linux has.
pub(crate) const MADE_IDS: u32 = 1 << 22;

/// A process as it is written.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    /// Its id; another one where a process before it has the same, on another host or in another
    /// namespace.
    pub(crate) pid: u32,
    /// Its name, printable, with its host if there are several.
    pub(crate) name: Vec<u8>,
    /// Host and service, printable, as far as they are known.
    pub(crate) labels: Vec<Vec<u8>>,
}

/// The processes of a dump, by their number.
pub(crate) fn processes(dump: &Dump) -> BTreeMap<usize, Process> {
    let hosts: BTreeSet<_> = dump.sessions.iter().map(Session::host).collect();
    let mut pids = BTreeSet::new();
    let mut all = BTreeMap::new();
    for session in &dump.sessions {
        if all.contains_key(&session.process) {
            continue;
        }
        let mut pid = session.pid();
        if pid == 0 || !pids.insert(pid) {
            pid = MADE_IDS + session.process as u32;
            pids.insert(pid);
        }
        let mut name = printable(session.process_name());
        if hosts.len() > 1 && !session.host().is_empty() {
            name.extend_from_slice(b" on ");
            escape::text(session.host(), &mut name);
        }
        let labels = [session.host(), session.service()].into_iter();
        let labels = labels.filter(|label| !label.is_empty()).map(printable);
        let labels = labels.collect();
        all.insert(session.process, Process { pid, name, labels });
    }
    all
}

/// A name from a trace, made safe to show.
pub(crate) fn printable(name: &[u8]) -> Vec<u8> {
    let mut shown = Vec::new();
    escape::text(name, &mut shown);
    shown
}
