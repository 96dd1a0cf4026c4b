//! What a thread waited for between two of its records, as far as it was seen.

use std::cmp::Reverse;
use std::collections::BTreeMap;

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

impl<'d> WaitedFor<'d> {
    /// Those with one text together, the longest first.
    pub(crate) fn sums(all: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut found: BTreeMap<WaitText<'d>, (u64, u64)> = BTreeMap::new();
        for waited in all {
            let (ns, times) = found.entry(waited.text).or_default();
            *ns = ns.saturating_add(waited.ns);
            *times += waited.times;
        }
        let waited = |(text, (ns, times))| WaitedFor { text, ns, times };
        let mut found: Vec<_> = found.into_iter().map(waited).collect();
        found.sort_by_key(|waited| (Reverse(waited.ns), waited.text));
        found
    }
}

impl Switched {
    /// What a thread waited for between two moments of `CLOCK_MONOTONIC`, the longest first.
    pub(crate) fn waited_for(&self, tid: u32, from: u64, to: u64) -> Vec<WaitedFor<'_>> {
        let mut found = Vec::new();
        let mut add = |text, ns| {
            let (text, times) = (WaitText::of(text), 1);
            found.push(WaitedFor { text, ns, times });
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
        WaitedFor::sums(found)
    }
}
