//! SWITCHES blocks: checked one by one, then put together for each process, with its WAITS and SAMPLES blocks.

use std::mem::size_of;

use ringmark_format::switches::{Switch, Switches};
use zerocopy::FromBytes;

use crate::blocks::damage::Fault;
use crate::trace_file::samples::StackSamples;
use crate::trace_file::seen_waits::SeenWaits;
use crate::trace_file::switched::{Stretch, Switched};

/// The time of a switch is before this, in ns: 73 years.
const MONO_MAX_NS: u64 = 1 << 61;

/// The switches of a span of time.
#[derive(Debug)]
struct SwitchBlock {
    head: Switches,
    switches: Vec<Switch>,
}

impl SwitchBlock {
    fn read(content: &[u8]) -> Result<Self, Fault> {
        let found = content.len() as u64;
        let size = |expected: u64| Fault::Value {
            what: "size of a SWITCHES block",
            found,
            expected,
        };
        let (head, rest) =
            Switches::read_from_prefix(content).map_err(|_| size(Switches::BYTES as u64))?;
        let wanted = u64::from(head.switches) * Switch::BYTES as u64;
        if rest.len() as u64 != wanted {
            return Err(size(Switches::BYTES as u64 + wanted));
        }
        let switches = rest.chunks_exact(size_of::<Switch>());
        let switches = switches.filter_map(|bytes| Switch::read_from_bytes(bytes).ok());
        let block = Self {
            head,
            switches: switches.collect(),
        };
        block.check().map_or(Ok(block), Err)
    }

    /// What is wrong with its times; `None`: nothing.
    fn check(&self) -> Option<Fault> {
        let value = |what, found, expected| Fault::Value {
            what,
            found,
            expected,
        };
        let (from, to) = (self.head.from_mono_ns, self.head.to_mono_ns);
        if to >= MONO_MAX_NS {
            return Some(value("end of a SWITCHES block", to, MONO_MAX_NS - 1));
        }
        if to < from {
            return Some(value("end of a SWITCHES block", to, from));
        }
        let mut earliest = from;
        for switch in &self.switches {
            if switch.mono_ns < earliest || switch.mono_ns >= to {
                return Some(value("time of a switch", switch.mono_ns, earliest));
            }
            earliest = switch.mono_ns;
        }
        None
    }
}

/// The blocks of a session, or of all sessions of a process.
#[derive(Debug, Default)]
pub(crate) struct SwitchBlocks {
    switches: Vec<SwitchBlock>,
    waits: SeenWaits,
    samples: StackSamples,
}

impl SwitchBlocks {
    /// Takes in the content of one block.
    pub(crate) fn take(&mut self, content: &[u8]) -> Result<(), Fault> {
        self.switches.push(SwitchBlock::read(content)?);
        Ok(())
    }

    /// Takes in the content of a WAITS block.
    pub(crate) fn take_waits(&mut self, content: &[u8]) -> Result<(), Fault> {
        self.waits.take(content)
    }

    /// Takes in the content of a SAMPLES block.
    pub(crate) fn take_samples(&mut self, content: &[u8]) -> Result<(), Fault> {
        self.samples.take(content)
    }

    /// Takes in those of another session of the process.
    pub(crate) fn join(&mut self, other: Self) {
        self.switches.extend(other.switches);
        self.waits.join(other.waits);
        self.samples.join(other.samples);
    }

    /// Puts the blocks in order. Of two that hold the same time, the one that begins first counts.
    pub(crate) fn finish(mut self) -> Switched {
        let key = |block: &SwitchBlock| (block.head.from_mono_ns, u64::MAX - block.head.to_mono_ns);
        self.switches.sort_by_key(key);
        self.waits.finish();
        self.samples.finish();
        let mut found = Switched::with(self.waits, self.samples);
        let mut end = None;
        for block in self.switches {
            let (from, to) = (block.head.from_mono_ns, block.head.to_mono_ns);
            if end.is_some_and(|end| from < end) {
                continue;
            }
            // Of what was before a block that lacks some, nothing follows for what is after it.
            match block.head.lost {
                0 => found.add(Stretch { from, to }, &block.switches),
                lost => found.lose(Stretch { from, to }, lost),
            }
            end = Some(to);
        }
        found
    }
}
