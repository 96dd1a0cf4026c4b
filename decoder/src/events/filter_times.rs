//! Where a time lies, as a filter has it: before, inside or after.

use crate::events::event::Lost;
use crate::events::filter::{Filter, Moment};
use crate::trace_file::samples::SampleAt;
use crate::trace_file::session::Session;
use crate::trace_file::thread_states::ThreadState;
use crate::trace_file::time::SessionClock;

/// Where a time lies, as the times of a filter have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Before,
    Inside,
    After,
}

impl Moment {
    /// The least time since the session's start that is not before this moment.
    fn in_session(self, clock: &SessionClock) -> u64 {
        // The clock is monotone.
        let (mut low, mut high) = (0, u64::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.is_after(middle, clock.wall_ns(middle)) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

impl Filter {
    /// The first time that passes and the first one after those, since the start of a session with this
    /// clock; `None`: no bound.
    pub(crate) fn bounds(&self, clock: &SessionClock) -> (Option<u64>, Option<u64>) {
        let in_session = |moment: Moment| moment.in_session(clock);
        (self.from.map(in_session), self.to.map(in_session))
    }

    /// Where a time lies: `t_ns` since the session's start, which is the same time as `wall_ns`
    /// since 1970.
    pub(crate) fn when(&self, t_ns: u64, wall_ns: u64) -> When {
        if self.from.is_some_and(|m| m.is_after(t_ns, wall_ns)) {
            return When::Before;
        }
        match self.to.is_none_or(|m| m.is_after(t_ns, wall_ns)) {
            true => When::Inside,
            false => When::After,
        }
    }

    /// Whether events of this thread can pass.
    pub(crate) fn thread_passes(&self, tid: u32) -> bool {
        self.tids.is_empty() || self.tids.contains(&tid)
    }

    /// Gives `each` what a thread of a session did, by time: where that is known, and in the filter's time. `ran_ns`: times since
    /// the session's start at which the thread ran, such as those of some of its records.
    pub fn thread_states(
        &self,
        session: &Session,
        (tid, ran_ns): (u32, &[u64]),
        mut each: impl FnMut(ThreadState<'_>),
    ) {
        if !session.has_times() || !self.thread_passes(tid) {
            return;
        }
        let clock = &session.clock;
        let on_mono = |t_ns: u64| clock.mono_zero_ns.saturating_add(t_ns);
        let (first, end) = self.bounds(clock);
        let (first, end) = (first.map_or(0, on_mono), end.map_or(u64::MAX, on_mono));
        let ran: Vec<_> = ran_ns.iter().map(|ns| on_mono(*ns)).collect();
        session.switched.states(tid, &ran, |state| {
            let (from, to) = (state.from.max(first), state.to.min(end));
            if from < to {
                each(ThreadState {
                    from_ns: clock.wall_of_mono(from),
                    to_ns: clock.wall_of_mono(to),
                    does: state.does,
                    cpu: state.cpu,
                    is_last: state.is_last && to == state.to,
                    is_throttled: state.is_throttled,
                    waits_for: session.switched.text_of(tid, &state),
                });
            }
        });
    }

    /// The samples of where threads of a session's process ran, in the filter's threads and time, by thread and time.
    #[must_use]
    pub fn samples<'d>(&self, session: &'d Session) -> Vec<SampleAt<'d>> {
        let (first, end) = self.bounds(&session.clock);
        let first = first.map_or(0, |t_ns| session.on_mono(t_ns));
        let end = end.map_or(u64::MAX, |t_ns| session.on_mono(t_ns));
        let mut found = session.switched.samples.piece(&(first..end));
        found.retain(|sample| self.thread_passes(sample.tid));
        found
    }

    /// Whether no time can pass: the end is not after the beginning.
    #[must_use]
    pub fn is_reversed(&self) -> bool {
        match (self.from, self.to) {
            (Some(Moment::Wall(from)), Some(Moment::Wall(to)))
            | (Some(Moment::SinceStart(from)), Some(Moment::SinceStart(to))) => from >= to,
            _ => false,
        }
    }

    /// Whether this loss passes. Only time and thread count for a loss; a loss whose thread is not
    /// known passes. One without a page lies somewhere before the session's end.
    #[must_use]
    pub fn passes_lost(&self, lost: &Lost<'_>) -> bool {
        let tid = lost.page.map(|p| p.header.tid);
        let thread = tid.is_none_or(|tid| self.thread_passes(tid));
        let when = self.when(lost.t_ns, lost.session.clock.wall_ns(lost.t_ns));
        thread && (when == When::Inside || (lost.page.is_none() && when == When::Before))
    }
}
