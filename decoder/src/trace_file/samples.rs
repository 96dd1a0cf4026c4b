//! SAMPLES blocks: where threads ran.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use ringmark_format::samples::{HAS_KERNEL, Sample, Samples};
use zerocopy::FromBytes;

use crate::blocks::damage::Fault;
use crate::trace_file::texts::{self, Texts};

/// A sample is before this time, in ns: 73 years.
const MONO_MAX_NS: u64 = 1 << 61;

/// A moment at which a thread ran, on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
struct Seen {
    mono_ns: u64,
    /// Time that it stands for.
    ns: u32,
    /// Number of its text.
    text: u32,
}

/// A sample of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampleAt<'d> {
    /// Its thread.
    pub tid: u32,
    /// When, on `CLOCK_MONOTONIC` of the process, in ns.
    pub mono_ns: u64,
    /// The time that it stands for, in ns.
    pub ns: u64,
    /// What ran.
    pub stack: StackText<'d>,
}

/// The functions of a stack as a trace has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackText<'d>(pub(crate) &'d [u8]);

impl<'d> StackText<'d> {
    /// The functions, the innermost first. Of the kernel's own code the first one is `[kernel]`.
    pub fn functions(&self) -> impl Iterator<Item = &'d [u8]> + use<'d> {
        texts::functions(self.0)
    }
}

/// Where threads ran in a span of time, with one stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RanIn<'d> {
    /// What ran.
    pub stack: StackText<'d>,
    /// How often it was met.
    pub samples: u64,
    /// The time that these samples stand for, in ns.
    pub ns: u64,
}

impl<'d> RanIn<'d> {
    /// Those with one stack together, the longest first.
    pub(crate) fn sums(all: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut found: BTreeMap<StackText<'d>, (u64, u64)> = BTreeMap::new();
        for ran in all {
            let (samples, ns) = found.entry(ran.stack).or_default();
            *samples += ran.samples;
            *ns = ns.saturating_add(ran.ns);
        }
        let ran = |(stack, (samples, ns))| RanIn { stack, samples, ns };
        let mut found: Vec<_> = found.into_iter().map(ran).collect();
        found.sort_by_key(|ran| (Reverse(ran.ns), ran.stack));
        found
    }
}

/// The samples of a process.
#[derive(Debug, Default)]
pub(crate) struct StackSamples {
    texts: Texts,
    /// By thread; by time once it is finished.
    threads: HashMap<u32, Vec<Seen>>,
    /// Whether there is a block of them, with or without any.
    pub(crate) are_there: bool,
    /// Whether the kernel's own code was sampled.
    pub(crate) has_kernel: bool,
    /// Samples that had no room.
    pub(crate) lost: u64,
}

impl StackSamples {
    /// Takes in the content of one block.
    pub(crate) fn take(&mut self, content: &[u8]) -> Result<(), Fault> {
        let value = |what, found, expected| Fault::Value {
            what,
            found,
            expected,
        };
        let size = |expected| value("size of a SAMPLES block", content.len() as u64, expected);
        let (head, rest) =
            Samples::read_from_prefix(content).map_err(|_| size(Samples::BYTES as u64))?;
        let samples = u64::from(head.samples) * Sample::BYTES as u64;
        let wanted = samples + u64::from(head.texts_bytes);
        if rest.len() as u64 != wanted {
            return Err(size(Samples::BYTES as u64 + wanted));
        }
        let period = |_| value("period of samples", head.period_ns, u64::from(u32::MAX));
        let ns = u32::try_from(head.period_ns).map_err(period)?;
        let (samples, texts) = rest.split_at(samples as usize);
        let samples = samples.chunks_exact(size_of::<Sample>());
        let mut found = Vec::with_capacity(samples.len());
        for sample in samples.filter_map(|bytes| Sample::read_from_bytes(bytes).ok()) {
            if sample.mono_ns >= MONO_MAX_NS {
                return Err(value("time of a sample", sample.mono_ns, MONO_MAX_NS - 1));
            }
            let place = (sample.text, sample.text_bytes);
            let text = texts::part(texts, place, "end of a sample's text")?;
            found.push((sample.tid, sample.mono_ns, text));
        }
        for (tid, mono_ns, text) in found {
            self.add(tid, (mono_ns, ns), text);
        }
        self.are_there = true;
        self.has_kernel |= head.flags & HAS_KERNEL != 0;
        self.lost = self.lost.saturating_add(head.lost);
        Ok(())
    }

    fn add(&mut self, tid: u32, (mono_ns, ns): (u64, u32), text: &[u8]) {
        let text = self.texts.number(text);
        let thread = self.threads.entry(tid).or_default();
        thread.push(Seen { mono_ns, ns, text });
    }

    /// Takes in those of another session of the process.
    pub(crate) fn join(&mut self, other: Self) {
        for (tid, samples) in other.threads {
            for seen in samples {
                self.add(tid, (seen.mono_ns, seen.ns), other.texts.text(seen.text));
            }
        }
        self.are_there |= other.are_there;
        self.has_kernel |= other.has_kernel;
        self.lost = self.lost.saturating_add(other.lost);
    }

    /// Puts them in order. A thread runs at one place at a time: of two at one moment one is left out.
    pub(crate) fn finish(&mut self) {
        self.texts.finish();
        let texts = &self.texts;
        for samples in self.threads.values_mut() {
            samples.sort_by_key(|seen| (seen.mono_ns, seen.ns, texts.text(seen.text)));
            samples.dedup_by_key(|seen| seen.mono_ns);
        }
    }

    /// Those of a thread in a span of time, by time.
    fn of(&self, tid: u32, part: &Range<u64>) -> &[Seen] {
        let all = self.threads.get(&tid).map_or(&[][..], Vec::as_slice);
        let place = |ns: u64| all.partition_point(|seen| seen.mono_ns < ns);
        all.get(place(part.start)..place(part.end))
            .unwrap_or_default()
    }

    /// Whether there is one of a thread in a span of time.
    pub(crate) fn are_in(&self, tid: u32, part: &Range<u64>) -> bool {
        !self.of(tid, part).is_empty()
    }

    /// Where a thread ran in a span of time, the longest first.
    pub(crate) fn ran_in(&self, tid: u32, part: &Range<u64>) -> Vec<RanIn<'_>> {
        let ran = self.of(tid, part).iter().map(|seen| RanIn {
            stack: StackText(self.texts.text(seen.text)),
            samples: 1,
            ns: seen.ns.into(),
        });
        RanIn::sums(ran)
    }

    /// All in a span of time, by thread and time.
    pub(crate) fn piece(&self, part: &Range<u64>) -> Vec<SampleAt<'_>> {
        let of = |tid: &u32| {
            let tid = *tid;
            self.of(tid, part).iter().map(move |seen| SampleAt {
                tid,
                mono_ns: seen.mono_ns,
                ns: seen.ns.into(),
                stack: StackText(self.texts.text(seen.text)),
            })
        };
        let mut found: Vec<_> = self.threads.keys().flat_map(of).collect();
        found.sort_unstable();
        found
    }
}
