//! OPEN_SPANS blocks: the stacks of open spans that came with a trace file, and what threads are called.

use std::collections::BTreeMap;
use std::mem::size_of;

use ringmark_format::open_span::{FRAMES, Frame, OpenSpans};
use zerocopy::FromBytes;

use crate::blocks::damage::Fault;

/// The stack of one thread.
#[derive(Debug, Clone)]
pub(crate) struct OpenStack {
    pub header: OpenSpans,
    pub frames: Vec<Frame>,
}

/// The stacks of a session that were copied last.
#[derive(Debug, Default)]
pub(crate) struct OpenStacks(Vec<OpenStack>);

impl OpenStacks {
    /// Takes in the content of one block. The latest copy counts.
    pub(crate) fn take(&mut self, content: &[u8]) -> Result<(), Fault> {
        let damage = |expected: u64| Fault::Value {
            what: "size of an OPEN_SPANS block",
            found: content.len() as u64,
            expected,
        };
        let (header, rest) =
            OpenSpans::read_from_prefix(content).map_err(|_| damage(OpenSpans::BYTES as u64))?;
        let wanted = header.frames.min(FRAMES + 1) as usize * size_of::<Frame>();
        if header.frames > FRAMES || rest.len() < wanted {
            return Err(damage((OpenSpans::BYTES + wanted) as u64));
        }
        let frames = rest[..wanted].chunks_exact(size_of::<Frame>());
        let frames = frames.filter_map(|bytes| Frame::read_from_bytes(bytes).ok());
        let stack = OpenStack {
            header,
            frames: frames.collect(),
        };
        let latest = self.0.iter().map(|stack| stack.header.tick).max();
        if latest.is_some_and(|latest| latest > header.tick) {
            return Ok(());
        }
        self.0.retain(|kept| {
            kept.header.tick == header.tick && kept.header.ring_id != header.ring_id
        });
        self.0.push(stack);
        Ok(())
    }

    /// What the owners of rings are called, by ring id.
    pub(crate) fn names(&self) -> BTreeMap<u64, [u8; 16]> {
        let headers = self.0.iter().map(|stack| &stack.header);
        headers
            .map(|header| (header.ring_id, header.thread_name))
            .collect()
    }

    /// The stacks, by slot.
    pub(crate) fn finish(mut self) -> Vec<OpenStack> {
        self.0.retain(|stack| stack.header.ring_id != 0);
        self.0.sort_by_key(|stack| stack.header.slot);
        self.0
    }
}
