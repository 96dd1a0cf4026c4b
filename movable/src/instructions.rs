//! One pass over all code of a file: where it leads, and which of it ends without going on.

use std::collections::HashSet;
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

use crate::frames::Frames;
use crate::image::Image;
use crate::refusal::LeadKind;
use crate::starts::Starts;

/// Something that leads to an address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lead {
    pub(crate) to: u64,
    /// Where the instruction or the constant is.
    pub(crate) from: u64,
    pub(crate) kind: LeadKind,
}

/// An address that an instruction computes, or reads at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Computed {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// What the code of a file does.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// Direct jumps and calls.
    pub(crate) branches: Vec<Lead>,
    pub(crate) computed: Vec<Computed>,
    /// Addresses of tables of addresses by which code jumps.
    pub(crate) tables: Vec<u64>,
    /// Ends of code whose last instruction never goes on to the next one.
    pub(crate) closed: HashSet<u64>,
}

/// Goes over all code: what the unwind table describes, each from its beginning, and what lies between.
pub(crate) fn pass(image: &Image<'_>, frames: &Frames<'_>, starts: &Starts) -> Passed {
    let mut passed = Passed::default();
    for range in ranges(image, frames, starts) {
        passed.over(image, &range);
    }
    passed
}

/// The ranges to decode. Their beginnings begin instructions; in what no unwind entry describes, symbols do.
fn ranges(image: &Image<'_>, frames: &Frames<'_>, starts: &Starts) -> Vec<Range<u64>> {
    let mut ranges: Vec<_> = frames
        .all
        .iter()
        .map(|frame| frame.start..frame.end)
        .collect();
    let mut between = Vec::new();
    let mut frames = frames.all.iter().peekable();
    for piece in &image.code {
        let mut at = piece.at;
        while let Some(frame) = frames.next_if(|frame| frame.start < piece.end()) {
            if frame.start > at {
                between.push(at..frame.start);
            }
            at = at.max(frame.end);
        }
        if at < piece.end() {
            between.push(at..piece.end());
        }
    }
    for gap in between {
        let mut at = gap.start;
        let inside = starts
            .labels
            .range(gap.clone())
            .filter(|label| **label > gap.start);
        for label in inside {
            ranges.push(at..*label);
            at = *label;
        }
        ranges.push(at..gap.end);
    }
    ranges
}

impl Passed {
    fn over(&mut self, image: &Image<'_>, range: &Range<u64>) {
        let code = image.code_in(range);
        let mut decoder = Decoder::with_ip(64, code, range.start, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut is_closed = false;
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            is_closed = ends(&instruction);
            if !instruction.is_invalid() {
                self.take(image, &instruction);
            }
        }
        if is_closed && decoder.ip() == range.end {
            self.closed.insert(range.end);
        }
    }

    fn take(&mut self, image: &Image<'_>, instruction: &Instruction) {
        let from = instruction.ip();
        if instruction.op0_kind() == OpKind::NearBranch64 {
            let kind = match instruction.flow_control() {
                FlowControl::Call => LeadKind::Call,
                _ => LeadKind::Jump,
            };
            let to = instruction.near_branch_target();
            self.branches.push(Lead { to, from, kind });
        }
        let is_by_table = instruction.flow_control() == FlowControl::IndirectBranch
            && instruction.op0_kind() == OpKind::Memory
            && instruction.memory_base() == Register::None
            && instruction.memory_index() != Register::None;
        if is_by_table {
            self.tables.push(instruction.memory_displacement64());
        }
        if let Some(to) = computed(image, instruction) {
            self.computed.push(Computed { from, to });
        }
    }
}

/// Whether an instruction never goes on to the next one. A call may: it counts as one that does.
pub(crate) fn ends(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch
    ) || matches!(instruction.mnemonic(), Mnemonic::Ud2 | Mnemonic::Hlt)
}

/// The address that an instruction has as an operand, in memory or as a constant.
fn computed(image: &Image<'_>, instruction: &Instruction) -> Option<u64> {
    if instruction.is_ip_rel_memory_operand() {
        return Some(instruction.ip_rel_memory_address());
    }
    let constant = (0..instruction.op_count()).find(|n| {
        matches!(
            instruction.op_kind(*n),
            OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64
        )
    })?;
    let is_address = image.is_fixed || instruction.mnemonic() == Mnemonic::Mov;
    let to = instruction.immediate(constant);
    (is_address && !image.constants_from(to).is_empty()).then_some(to)
}
