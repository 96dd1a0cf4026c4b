//! Functions whose return address must stay where it is and as it is: they read it, as `setjmp` and
//! `dlopen` do, or jump to one that does.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register,
};

use crate::frames::{Frames, Row};
use crate::image::Image;
use crate::instructions::Passed;
use crate::refusal::LeadKind;

/// Numbers of registers in unwind tables.
const RBP: u16 = 6;
const RSP: u16 = 7;

/// Where these functions begin.
pub(crate) fn read(image: &Image<'_>, frames: &Frames<'_>, passed: &Passed) -> BTreeSet<u64> {
    let mut info = InstructionInfoFactory::new();
    let mut found = BTreeSet::new();
    for frame in &frames.all {
        let rows = frames.rows(frame);
        if rows.iter().any(|row| reads_in(image, row, &mut info)) {
            found.insert(frame.start);
        }
    }
    with_jumps_to_it(frames, passed, found)
}

/// Adds the functions that jump to one of them.
fn with_jumps_to_it(
    frames: &Frames<'_>,
    passed: &Passed,
    mut found: BTreeSet<u64>,
) -> BTreeSet<u64> {
    let mut jumps: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for branch in passed
        .branches
        .iter()
        .filter(|one| one.kind == LeadKind::Jump)
    {
        let around = |at: u64| frames.around(at).map(|frame| frame.start);
        if let (Some(own), Some(to)) = (around(branch.from), around(branch.to))
            && own != to
        {
            jumps.entry(to).or_default().push(own);
        }
    }
    let mut open: Vec<_> = found.iter().copied().collect();
    while let Some(function) = open.pop() {
        for from in jumps.remove(&function).unwrap_or_default() {
            if found.insert(from) {
                open.push(from);
            }
        }
    }
    found
}

/// Whether an instruction at which the frame's end is where `row` says uses the last word of the frame.
fn reads_in(image: &Image<'_>, row: &Row, info: &mut InstructionInfoFactory) -> bool {
    if row.register != RSP && row.register != RBP {
        return false;
    }
    let code = image.code_in(&(row.start..row.end));
    let mut decoder = Decoder::with_ip(64, code, row.start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if !instruction.is_invalid() && may_read(&instruction) && is_used(&instruction, row, info) {
            return true;
        }
    }
    false
}

/// Whether an instruction could read the return address as a value. Calls and returns use it as what it is.
fn may_read(instruction: &Instruction) -> bool {
    let has_memory = (0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory);
    match instruction.mnemonic() {
        Mnemonic::Ret | Mnemonic::Call | Mnemonic::Lea | Mnemonic::Nop => false,
        Mnemonic::Pop => true,
        // A fence.
        Mnemonic::Or if instruction.has_lock_prefix() => false,
        _ => has_memory,
    }
}

fn is_used(instruction: &Instruction, row: &Row, info: &mut InstructionInfoFactory) -> bool {
    let used = info.info(instruction).used_memory();
    used.iter().any(|memory| {
        let register = match memory.base() {
            Register::RSP => RSP,
            Register::RBP => RBP,
            _ => return false,
        };
        let place = row.offset.wrapping_sub(8).cast_unsigned();
        register == row.register
            && memory.index() == Register::None
            && memory.displacement() == place
    })
}
