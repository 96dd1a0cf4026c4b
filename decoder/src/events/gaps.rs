//! The times in which records are missing: what a span that lasts through one does not know.

use std::collections::HashMap;

use ringmark_format::Uuid;

use crate::trace_file::dump::Dump;
use crate::trace_file::loss;
use crate::trace_file::session::{Session, Slot};

/// Intervals between two ticks, sorted and apart. Nothing is missing at the ticks themselves: those are the last record
/// before a gap and the first one behind it.
#[derive(Debug, Default)]
struct Intervals(Vec<(u64, u64)>);

impl Intervals {
    /// Sorts the intervals and joins those that touch.
    fn settle(&mut self) {
        self.0.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (from, to) in self.0.drain(..) {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        self.0 = joined;
    }

    fn touch(&self, from: u64, to: u64) -> bool {
        let place = self.0.partition_point(|interval| interval.1 <= from);
        self.0.get(place).is_some_and(|interval| interval.0 < to)
    }
}

/// Where the records of a dump have gaps, by session and by thread.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    sessions: HashMap<Uuid, Intervals>,
    /// By number of the thread, over all its rings.
    threads: HashMap<u32, Intervals>,
}

impl Gaps {
    /// The gaps of all sessions. A loss lies between the pages around it; one with no page around
    /// it may be at any time.
    pub(crate) fn of(dump: &Dump) -> Self {
        let mut gaps = Self::default();
        for session in &dump.sessions {
            for slot in &session.slots {
                gaps.add_slot(session, slot);
            }
            gaps.add_window(session);
            if !loss::of_session(session).is_empty() {
                gaps.add(session, None, (0, u64::MAX));
            }
        }
        for thread in unordered(dump) {
            gaps.threads
                .entry(thread)
                .or_default()
                .0
                .push((0, u64::MAX));
        }
        gaps.sessions.values_mut().for_each(Intervals::settle);
        gaps.threads.values_mut().for_each(Intervals::settle);
        gaps
    }

    fn add_slot(&mut self, session: &Session, slot: &Slot) {
        let losses = loss::of_slot(session, slot);
        for (before, _) in &losses.items {
            let (next, last) = (slot.pages.get(*before), before.checked_sub(1));
            let last = last.and_then(|place| slot.pages.get(place));
            let from = last.and_then(|page| page.summary.ticks).map_or(0, |t| t.1);
            let to = next.map_or(u64::MAX, |page| page.header.tick_base);
            for page in [last, next].into_iter().flatten() {
                self.add(session, Some(page.thread), (from, to));
            }
        }
    }

    /// What is earlier than the recorded window is not here, but for what reaches into it.
    fn add_window(&mut self, session: &Session) {
        let pages = session.slots.iter().flat_map(|slot| &slot.pages);
        for page in pages.filter(|page| page.from > 0) {
            self.add(session, Some(page.thread), (0, page.from));
        }
    }

    fn add(&mut self, session: &Session, thread: Option<u32>, interval: (u64, u64)) {
        let all = self.sessions.entry(session.uuid).or_default();
        all.0.push(interval);
        if let Some(thread) = thread {
            self.threads.entry(thread).or_default().0.push(interval);
        }
    }

    /// Whether any ring of the session has a gap from one tick to the other.
    pub(crate) fn in_session(&self, session: Uuid, from: u64, to: u64) -> bool {
        let gaps = self.sessions.get(&session);
        gaps.is_some_and(|gaps| gaps.touch(from, to))
    }

    /// Whether a ring of this thread has a gap from one tick to the other.
    pub(crate) fn in_thread(&self, thread: u32, from: u64, to: u64) -> bool {
        let gaps = self.threads.get(&thread);
        gaps.is_some_and(|gaps| gaps.touch(from, to))
    }
}

/// Threads with records in several sessions that share ticks of a coarse clock: such records have no order over sessions.
pub(crate) fn unordered(dump: &Dump) -> impl Iterator<Item = u32> {
    let mut sessions_of: HashMap<u32, (usize, bool)> = HashMap::new();
    for session in dump.sessions.iter().filter(|session| session.is_coarse()) {
        for page in session.slots.iter().flat_map(|slot| &slot.pages) {
            let first = sessions_of
                .entry(page.thread)
                .or_insert((session.number, false));
            first.1 |= first.0 != session.number;
        }
    }
    let several = sessions_of
        .into_iter()
        .filter(|(_, (_, is_several))| *is_several);
    several.map(|(thread, _)| thread)
}
