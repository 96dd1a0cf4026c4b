//! What threads are called now. A thread's ring has the name from when the thread came to it; many threads
//! name themselves, or are named, a moment later, and the kernel alone knows.

use std::collections::BTreeMap;
use std::fs;
use std::mem::offset_of;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use ringmark_format::page::PageHeader;
use ringmark_format::slot::state;
use ringmark_ring::{Owner, RingFile, SlotView, identity};
use rustix::time::{ClockId, clock_gettime};

use crate::sessions::pids;
use crate::sessions::session::Session;

/// Time between two looks for threads that are due: with thousands of them, a look takes its time.
const SCAN_EVERY: Duration = Duration::from_millis(50);
/// Time between two looks at a thread.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Looks at a thread that writes no page.
const LOOKS_IN_ANY_CASE: u32 = 2;
/// How far the time of a page may be from that of the kernel.
const SLACK_NS: u64 = 1_000_000;
/// Threads of which names are kept at most; of those that come later, the ring's are good enough.
const THREADS_MAX: usize = 1 << 16;

/// The names of a session's threads as they were seen last, by ring id: of those that run, and of those that
/// had another name than their ring.
#[derive(Debug, Default)]
pub(crate) struct ThreadNames {
    seen: BTreeMap<u64, Seen>,
    scanned_at: Option<Instant>,
}

#[derive(Debug)]
struct Seen {
    slot: u32,
    owner: Owner,
    name: [u8; 16],
    at: Instant,
    looks: u32,
    produced: u64,
}

impl ThreadNames {
    /// Looks at threads that were not seen yet, again a second later, and from then on each second in
    /// which they wrote a page.
    pub(crate) fn look(&mut self, session: &Session) {
        if self.scanned_at.is_some_and(|at| at.elapsed() < SCAN_EVERY) {
            return;
        }
        self.scanned_at = Some(Instant::now());
        self.look_at(session, |seen, produced| seen.is_due(produced));
    }

    /// Looks at all threads that run.
    pub(crate) fn look_at_all(&mut self, session: &Session) {
        self.look_at(session, |_, _| true);
    }

    fn look_at(&mut self, session: &Session, is_due: impl Fn(&Seen, u64) -> bool) {
        let ring = session.ring();
        let slots = (0..ring.slots_used()).filter_map(|index| Some((index, ring.slot(index)?)));
        let (mut process, mut found) = (None, Vec::new());
        for (index, slot) in slots.filter(|(_, slot)| slot.state() == state::ACTIVE) {
            let Some(owner) = slot.owner() else { continue };
            let before = self.seen.get(&owner.ring_id.0);
            if before.is_some_and(|seen| !is_due(seen, slot.produced())) {
                continue;
            }
            let process = process.get_or_insert_with(|| Process::of(session));
            let name = process.name_of(owner.tid, newest_page_ns(ring, &slot));
            found.push((index, slot, owner, name));
        }
        // What has executed another program has the same threads, under that one's names.
        if found.is_empty() || has_ended(session) {
            return;
        }
        for (index, slot, owner, name) in found {
            if !self.seen.contains_key(&owner.ring_id.0) {
                self.forget(index);
            }
            self.take((index, &slot), owner, name);
        }
    }

    /// Forgets the last owner of a slot, unless it had another name than its ring.
    fn forget(&mut self, slot: u32) {
        self.seen
            .retain(|_, seen| seen.slot != slot || seen.is_renamed());
    }

    fn take(&mut self, (slot, view): (u32, &SlotView<'_>), owner: Owner, name: Option<[u8; 16]>) {
        let ring = owner.ring_id.0;
        if self.seen.len() >= THREADS_MAX && !self.seen.contains_key(&ring) {
            return;
        }
        let produced = view.produced();
        let seen = self.seen.entry(ring).or_insert_with(|| Seen {
            slot,
            owner,
            name: owner.thread_name,
            at: Instant::now(),
            looks: 0,
            produced,
        });
        seen.name = name.unwrap_or(seen.name);
        seen.at = Instant::now();
        seen.looks = seen.looks.saturating_add(1);
        seen.produced = produced;
    }

    /// The name of a ring's owner as it was seen last.
    pub(crate) fn of(&self, owner: &Owner) -> [u8; 16] {
        let seen = self.seen.get(&owner.ring_id.0);
        seen.map_or(owner.thread_name, |seen| seen.name)
    }

    /// The threads that have another name than their ring: slot, and owner with its name.
    pub(crate) fn renamed(&self) -> impl Iterator<Item = (u32, Owner)> {
        let renamed = self.seen.values().filter(|seen| seen.is_renamed());
        renamed.map(|seen| {
            let thread_name = seen.name;
            let owner = Owner {
                thread_name,
                ..seen.owner
            };
            (seen.slot, owner)
        })
    }
}

impl Seen {
    fn is_due(&self, produced: u64) -> bool {
        let is_wanted = self.looks < LOOKS_IN_ANY_CASE || produced != self.produced;
        is_wanted && self.at.elapsed() >= LOOK_EVERY
    }

    fn is_renamed(&self) -> bool {
        self.name != self.owner.thread_name
    }
}

fn has_ended(session: &Session) -> bool {
    session.look_thoroughly();
    session.ended()
}

/// The names of a session's running threads now, by ring id, where they can be asked for.
pub(crate) fn now(session: &Session) -> impl Fn(&Owner) -> [u8; 16] {
    let mut names = ThreadNames::default();
    names.look_at_all(session);
    move |owner| names.of(owner)
}

/// A process whose threads are looked at, as it is numbered here.
struct Process {
    /// `None`: it is gone, or out of sight.
    pid: Option<u32>,
    /// Whether its clocks are ours: only then is it known what began before what.
    shares_clocks: bool,
    /// The numbers of its threads here, by those in its own pid namespace; `None`: they are the same.
    threads: Option<BTreeMap<u32, u32>>,
}

impl Process {
    fn of(session: &Session) -> Self {
        let pid = session.pid_here();
        let is_ours = session.header().pid_namespace == identity::own_pid_namespace();
        Self {
            pid,
            shares_clocks: session.shares_clocks(),
            threads: pid.filter(|_| !is_ours).map(pids::threads),
        }
    }

    /// The name of the thread with this number in the process's own namespace. It must have begun before
    /// `page_ns`, when its ring's newest page was opened: a thread that ends without its destructors
    /// leaves its ring as it is, and another one may have its number.
    fn name_of(&self, tid: u32, page_ns: u64) -> Option<[u8; 16]> {
        let pid = self.pid?;
        let here = match &self.threads {
            None => tid,
            Some(threads) => *threads.get(&tid)?,
        };
        let text = fs::read(format!("/proc/{pid}/task/{here}/comm")).ok()?;
        let begun = || identity::start_time(&format!("{pid}/task/{here}"));
        let is_later = |begun| begun_ns(begun) > page_ns.saturating_add(SLACK_NS);
        if self.shares_clocks && begun().is_none_or(is_later) {
            return None;
        }
        padded(text.strip_suffix(b"\n").unwrap_or(&text))
    }
}

/// `CLOCK_MONOTONIC` in ns when a ring's newest page was opened; the largest number: there is none.
fn newest_page_ns(ring: &RingFile, slot: &SlotView<'_>) -> u64 {
    const WORD: usize = offset_of!(PageHeader, mono_base_ns) / 8;
    let geometry = slot.geometry();
    let newest = slot.produced().checked_sub(1);
    let word = newest
        .zip(ring.pages(geometry))
        .and_then(|(newest, words)| {
            let page = (newest % u64::from(geometry.pages)) as usize;
            words.get(page * (geometry.page_bytes as usize / 8) + WORD)
        });
    let ns = word.map_or(0, |word| word.load(Relaxed));
    if ns == 0 { u64::MAX } else { ns }
}

/// `CLOCK_MONOTONIC` in ns of a start time as `/proc` has it: in hundredths of a second since the boot, with the
/// time in which the machine slept.
fn begun_ns(hundredths: u64) -> u64 {
    let now = |clock| {
        let now = clock_gettime(clock);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    let slept = now(ClockId::Boottime).saturating_sub(now(ClockId::Monotonic));
    (hundredths * 10_000_000).saturating_sub(slept)
}

fn padded(name: &[u8]) -> Option<[u8; 16]> {
    let mut padded = [0; 16];
    padded.get_mut(..name.len())?.copy_from_slice(name);
    Some(padded)
}

#[cfg(test)]
mod tests {
    use ringmark_ring::clock;

    use super::*;

    #[test]
    fn a_thread_that_began_after_its_rings_newest_page_is_another_one() {
        let own = Process {
            pid: Some(std::process::id()),
            shares_clocks: true,
            threads: None,
        };
        let named = std::thread::Builder::new().name("now and here".to_owned());
        let names = named.spawn(move || {
            let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
            let now_ns = clock::monotonic_ns();
            [1, now_ns, u64::MAX].map(|page_ns| own.name_of(tid, page_ns))
        });
        let name = padded(b"now and here");
        assert_eq!(names.unwrap().join().unwrap(), [None, name, name]);
        let apart = Process {
            pid: Some(std::process::id()),
            shares_clocks: false,
            threads: None,
        };
        assert!(apart.name_of(std::process::id(), 1).is_some());
    }

    #[test]
    fn names_are_padded_or_too_long() {
        assert_eq!(padded(b""), Some([0; 16]));
        assert_eq!(padded(b"0123456789abcdef"), Some(*b"0123456789abcdef"));
        assert_eq!(padded(b"0123456789abcdefg"), None);
    }
}
