//! WAITS blocks: what threads were seen waiting for.

use std::collections::HashMap;
use std::mem::size_of;
use std::ops::Range;

use ringmark_format::seen_waits::{SeenWait, SeenWaits as Head};
use zerocopy::FromBytes;

use crate::blocks::damage::Fault;
use crate::trace_file::texts::{self, Texts};

/// A wait is before this time, in ns: 73 years.
const MONO_MAX_NS: u64 = 1 << 61;

/// A wait of a thread, on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
struct Seen {
    from: u64,
    to: u64,
    /// Number of its text.
    text: u32,
}

/// What the threads of a process were seen waiting for.
#[derive(Debug, Default)]
pub(crate) struct SeenWaits {
    texts: Texts,
    /// By thread; by time once it is finished.
    threads: HashMap<u32, Vec<Seen>>,
}

impl SeenWaits {
    pub(crate) fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Takes in the content of one block.
    pub(crate) fn take(&mut self, content: &[u8]) -> Result<(), Fault> {
        let size = |expected: u64| Fault::Value {
            what: "size of a WAITS block",
            found: content.len() as u64,
            expected,
        };
        let (head, rest) = Head::read_from_prefix(content).map_err(|_| size(Head::BYTES as u64))?;
        let waits = u64::from(head.waits) * SeenWait::BYTES as u64;
        let wanted = waits + u64::from(head.texts_bytes);
        if rest.len() as u64 != wanted {
            return Err(size(Head::BYTES as u64 + wanted));
        }
        let (waits, texts) = rest.split_at(waits as usize);
        let waits = waits.chunks_exact(size_of::<SeenWait>());
        let waits: Vec<_> = waits
            .filter_map(|bytes| SeenWait::read_from_bytes(bytes).ok())
            .collect();
        let mut found = Vec::with_capacity(waits.len());
        for wait in &waits {
            check(wait)?;
            let place = (wait.text, wait.text_bytes);
            found.push(texts::part(texts, place, "end of a wait's text")?);
        }
        for (wait, text) in waits.iter().zip(found) {
            self.add(wait.tid, (wait.from_mono_ns, wait.to_mono_ns), text);
        }
        Ok(())
    }

    fn add(&mut self, tid: u32, (from, to): (u64, u64), text: &[u8]) {
        let text = self.texts.number(text);
        let thread = self.threads.entry(tid).or_default();
        thread.push(Seen { from, to, text });
    }

    /// Takes in those of another session of the process.
    pub(crate) fn join(&mut self, other: Self) {
        for (tid, waits) in other.threads {
            for seen in waits {
                self.add(tid, (seen.from, seen.to), other.texts.text(seen.text));
            }
        }
    }

    /// Puts them in order. A thread is in one wait at a time: one that begins before the end of the one before is left
    /// out.
    pub(crate) fn finish(&mut self) {
        self.texts.finish();
        for waits in self.threads.values_mut() {
            waits.sort_by_key(|seen| (seen.from, seen.to));
            let mut end = 0;
            waits.retain(|seen| {
                let is_later = seen.from >= end;
                end = seen.to.max(end);
                is_later
            });
        }
    }

    /// Those of a thread that touch a span of time, by time: when they were seen first and last, and their texts.
    pub(crate) fn touching(
        &self,
        tid: u32,
        from: u64,
        to: u64,
    ) -> impl Iterator<Item = (u64, u64, &[u8])> {
        let all = self.threads.get(&tid).map_or(&[][..], Vec::as_slice);
        let first = all.partition_point(|seen| seen.to < from);
        let touching = all[first..].iter().take_while(move |seen| seen.from <= to);
        touching.map(|seen| (seen.from, seen.to, self.texts.text(seen.text)))
    }

    /// All that touch a span of time: thread, first and last look, text.
    pub(crate) fn piece(&self, part: &Range<u64>) -> Vec<(u32, u64, u64, &[u8])> {
        let mut found = Vec::new();
        for tid in self.threads.keys() {
            let touching = self.touching(*tid, part.start, part.end);
            found.extend(touching.map(|(from, to, text)| (*tid, from, to, text)));
        }
        found.sort_unstable();
        found
    }
}

/// Whether the times of a wait can be.
fn check(wait: &SeenWait) -> Result<(), Fault> {
    let value = |what, found, expected| Fault::Value {
        what,
        found,
        expected,
    };
    let (from, to) = (wait.from_mono_ns, wait.to_mono_ns);
    if to >= MONO_MAX_NS {
        return Err(value("end of a wait", to, MONO_MAX_NS - 1));
    }
    if to < from {
        return Err(value("end of a wait", to, from));
    }
    Ok(())
}
