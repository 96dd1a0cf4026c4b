//! What a thread waited for between two of its records, as far as it was seen.

use crate::trace_file::switched::Switched;
use crate::trace_file::thread_states::ThreadDoes;
use crate::trace_file::wait_text::WaitText;

/// What a thread waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitedFor<'d> {
    /// What for, and where.
    pub text: WaitText<'d>,
    /// How long, in ns. Where switches were recorded, this is exact; else it is from the first look to the last one, at
    /// least.
    pub ns: u64,
    /// Waits.
    pub times: u64,
}

impl Switched {
    /// What a thread waited for between two moments of `CLOCK_MONOTONIC`, the longest first.
    pub(crate) fn waited_for(&self, tid: u32, from: u64, to: u64) -> Vec<WaitedFor<'_>> {
        let mut found: Vec<(&[u8], u64, u64)> = Vec::new();
        let mut add = |text, ns| match found.iter_mut().find(|(known, ..)| *known == text) {
            Some((_, sum, times)) => (*sum, *times) = (sum.saturating_add(ns), *times + 1),
            None => found.push((text, ns, 1)),
        };
        if self.times(tid, from, to).is_some() {
            self.off(tid, from, to, |state| {
                let (first, last) = (state.from.max(from), state.to.min(to));
                let seen = self.waits.touching(tid, first, last).next();
                if let (ThreadDoes::Waits, Some((_, _, text))) = (state.does, seen)
                    && first < last
                {
                    add(text, last - first);
                }
            });
        } else {
            for (first, last, text) in self.waits.touching(tid, from, to) {
                add(text, last.min(to).saturating_sub(first.max(from)));
            }
        }
        found.sort_by_key(|(text, ns, _)| (std::cmp::Reverse(*ns), *text));
        let waited = found.into_iter().map(|(text, ns, times)| WaitedFor {
            text: WaitText::of(text),
            ns,
            times,
        });
        waited.collect()
    }
}
