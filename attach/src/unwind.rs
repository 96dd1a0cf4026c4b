//! Who called whom, from the unwind tables in the target's memory.

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, Encoding, EndianSlice, EvaluationResult, Format,
    LittleEndian, Location, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection,
    Value, X86_64,
};

use crate::memory::Memory;
use crate::module::Module;
use crate::ptrace::Registers;

/// More callers than this are not looked at.
const DEEP: usize = 2000;
const STACK_POINTER: usize = 7;
const RETURN_ADDRESS: usize = 16;
const ENCODING: Encoding = Encoding {
    address_size: 8,
    format: Format::Dwarf32,
    version: 4,
};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A function that has not returned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// Address of the next instruction that the function runs.
    pub(crate) pc: u64,
    /// Index of its module.
    pub(crate) module: usize,
    /// Where its return address is. Nowhere at the bottom.
    pub(crate) slot: Option<u64>,
    /// It is the return from a signal handler.
    pub(crate) is_signal: bool,
    /// The stack pointer after the function's return.
    pub(crate) stack_after: u64,
}

impl Frame {
    /// Its function and module are not known yet.
    fn found(slot: Option<u64>, is_signal: bool, next: &[u64; 17]) -> Self {
        let stack_after = next[STACK_POINTER];
        Self {
            pc: 0,
            module: 0,
            slot,
            is_signal,
            stack_after,
        }
    }

    /// An address inside the function: after a call that never returns another function begins.
    pub(crate) fn inside(&self, is_first: bool) -> u64 {
        self.pc - u64::from(!is_first)
    }
}

/// A stack that could not be followed to its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lost {
    pub(crate) at: u64,
}

/// All frames from the innermost to the thread's first.
pub(crate) fn frames(
    memory: &Memory,
    modules: &[Module],
    registers: &Registers,
) -> Result<Vec<Frame>, Lost> {
    let r = registers;
    let mut state = [
        r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12,
        r.r13, r.r14, r.r15, r.rip,
    ];
    let mut context = UnwindContext::new();
    let mut frames = Vec::new();
    let mut is_exact = true;
    while frames.len() < DEEP {
        let pc = state[RETURN_ADDRESS];
        let lost = Lost { at: pc };
        let lookup = pc.wrapping_sub(u64::from(!is_exact));
        let module = modules
            .iter()
            .position(|module| module.holds(lookup))
            .ok_or(lost)?;
        let step = Step {
            memory,
            state: &state,
        };
        let (next, mut frame) = step
            .up(&modules[module], lookup, &mut context)
            .ok_or(lost)?;
        (frame.pc, frame.module) = (pc, module);
        let is_bottom = frame.slot.is_none() || next[RETURN_ADDRESS] == 0;
        if is_bottom {
            frame.slot = None;
        } else if next[STACK_POINTER] <= state[STACK_POINTER] && !frame.is_signal {
            return Err(lost);
        }
        is_exact = frame.is_signal;
        frames.push(frame);
        if is_bottom {
            return Ok(frames);
        }
        state = next;
    }
    Err(Lost {
        at: state[RETURN_ADDRESS],
    })
}

struct Step<'a> {
    memory: &'a Memory,
    state: &'a [u64; 17],
}

impl Step<'_> {
    fn up(
        &self,
        module: &Module,
        at: u64,
        context: &mut UnwindContext<usize>,
    ) -> Option<([u64; 17], Frame)> {
        let [(header_at, header), (frames_at, frames)] = module.tables.as_ref()?;
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(*header_at)
            .set_eh_frame(*frames_at);
        let header = EhFrameHdr::new(header, LittleEndian)
            .parse(&bases, 8)
            .ok()?;
        let section = EhFrame::new(frames, LittleEndian);
        let cie = EhFrame::cie_from_offset;
        let fde = header
            .table()?
            .fde_for_address(&section, &bases, at, cie)
            .ok()?;
        let row = fde
            .unwind_info_for_address(&section, &bases, context, at)
            .ok()?;
        let cfa = self.cfa(row.cfa(), &section)?;
        let mut next = *self.state;
        next[STACK_POINTER] = cfa;
        let mut slot = None;
        for number in 0..17 {
            let rule = row.register(Register(number));
            let place = match rule {
                RegisterRule::Offset(offset) => cfa.wrapping_add_signed(offset),
                RegisterRule::Expression(expression) => {
                    self.evaluate(&expression, &section, Some(cfa))?
                }
                RegisterRule::ValOffset(offset) => {
                    next[usize::from(number)] = cfa.wrapping_add_signed(offset);
                    continue;
                }
                RegisterRule::Register(other) => {
                    next[usize::from(number)] = self.register(other)?;
                    continue;
                }
                RegisterRule::ValExpression(expression) => {
                    let value = self.evaluate(&expression, &section, Some(cfa))?;
                    next[usize::from(number)] = value;
                    continue;
                }
                _ => continue,
            };
            next[usize::from(number)] = self.memory.word(place).ok()?;
            if usize::from(number) == RETURN_ADDRESS {
                slot = Some(place);
            }
        }
        Some((next, Frame::found(slot, fde.is_signal_trampoline(), &next)))
    }

    fn cfa(&self, rule: &CfaRule<usize>, section: &EhFrame<Slice<'_>>) -> Option<u64> {
        match rule {
            CfaRule::RegisterAndOffset { register, offset } => {
                Some(self.register(*register)?.wrapping_add_signed(*offset))
            }
            CfaRule::Expression(expression) => self.evaluate(expression, section, None),
        }
    }

    fn register(&self, register: Register) -> Option<u64> {
        self.state.get(usize::from(register.0)).copied()
    }

    fn evaluate(
        &self,
        expression: &UnwindExpression<usize>,
        section: &EhFrame<Slice<'_>>,
        first: Option<u64>,
    ) -> Option<u64> {
        let expression = expression.get(section).ok()?;
        let mut evaluation = expression.evaluation(ENCODING);
        evaluation.set_max_iterations(1000);
        if let Some(first) = first {
            evaluation.set_initial_value(first);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = Value::Generic(self.register(register)?);
                    evaluation.resume_with_register(value).ok()?
                }
                EvaluationResult::RequiresMemory {
                    address, size: 8, ..
                } => {
                    let word = self.memory.word(address).ok()?;
                    evaluation.resume_with_memory(Value::Generic(word)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.as_result() {
            [piece] => match piece.location {
                Location::Address { address } => Some(address),
                Location::Register { register } => self.register(register),
                _ => None,
            },
            _ => None,
        }
    }
}

const _: () = assert!(X86_64::RA.0 as usize == RETURN_ADDRESS);
