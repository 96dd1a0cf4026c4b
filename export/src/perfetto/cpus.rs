//! Processors by numbers that no other host's have.

use std::collections::{BTreeMap, HashMap};

use ringmark_decoder::{Dump, Session};

/// Perfetto's readers take no number of a processor that is not below this.
const CPUS_MAX: u32 = 4096;

/// Numbers of processors. Those of the first host are its own, those of the others come after them, and then one for
/// each thread of which it is not known where it runs.
#[derive(Debug)]
pub(super) struct Cpus {
    /// By host: what is added to its numbers.
    hosts: BTreeMap<Vec<u8>, u32>,
    unknown: HashMap<u32, u32>,
    next: u32,
}

impl Cpus {
    pub(super) fn new(dump: &Dump) -> Self {
        let mut most: Vec<(&[u8], u32)> = Vec::new();
        for session in &dump.sessions {
            let (host, cpus) = (session.host(), session.cpus());
            match most.iter_mut().find(|(known, _)| *known == host) {
                Some((_, most)) => *most = cpus.max(*most),
                None => most.push((host, cpus)),
            }
        }
        let (mut hosts, mut next) = (BTreeMap::new(), 0_u32);
        for (host, cpus) in most {
            hosts.insert(host.to_vec(), next);
            next = next.saturating_add(cpus);
        }
        Self {
            hosts,
            unknown: HashMap::new(),
            next,
        }
    }

    /// The number of a processor of a session's host, as a thread has it; `None`: there are too many.
    pub(super) fn number(
        &mut self,
        session: &Session,
        thread: u32,
        cpu: Option<u16>,
    ) -> Option<u32> {
        let number = match cpu {
            Some(cpu) => self.hosts.get(session.host())?.saturating_add(cpu.into()),
            None => *self.unknown.entry(thread).or_insert_with(|| {
                self.next = self.next.saturating_add(1);
                self.next - 1
            }),
        };
        (number < CPUS_MAX).then_some(number)
    }
}
