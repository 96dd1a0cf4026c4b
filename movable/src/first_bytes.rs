//! The first instructions of a function, judged: which bytes can be moved, and how the jump is put there.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, RflagsBits};

use crate::distances::is_cold;
use crate::frames::{Beginning, Frames};
use crate::image::Image;
use crate::instructions::{Lead, ends};
use crate::leads::Leads;
use crate::padding::Padding;
use crate::refusal::{LeadKind, Refusal};
use crate::starts::{Start, Starts};

/// Bytes of the jump to a trampoline.
const JUMP_BYTES: u64 = 5;
/// Bytes that are decoded at most.
const CODE_BYTES_MAX: usize = 64;
/// Stores are whole within aligned words of these many bytes.
const WORD_BYTES: u64 = 8;
const WIDE_WORD_BYTES: u64 = 16;

/// How the jump is put where instructions were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// A store of five bytes over one instruction: no thread can be between two of its bytes.
    OneStore,
    /// A store of two bytes over one instruction: a short jump to a jump in padding.
    Hop {
        /// Address of that padding.
        at: u64,
        /// What stands there.
        padding: [u8; 5],
    },
    /// A jump over several instructions, or over instructions and padding: no thread may be between them meanwhile.
    Several,
    /// The last of the instructions is a call, which is aimed elsewhere.
    Call,
}

/// The first instructions of a function that can be traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Movable {
    /// Address in the file of the first moved byte: that of the function, or after its `endbr64`.
    pub site: u64,
    /// Bytes of the moved instructions.
    pub bytes: u8,
    /// How the jump is put there.
    pub form: Form,
    /// What stands at the site: the moved instructions, and five bytes at least where there are as many.
    code: [u8; FIRST_BYTES_MAX],
    code_bytes: u8,
}

/// Four bytes and the longest instruction.
const FIRST_BYTES_MAX: usize = 19;

impl Movable {
    /// What stands at the site: the moved instructions, and five bytes at least where there are as many.
    #[must_use]
    pub fn code(&self) -> &[u8] {
        self.code.get(..self.code_bytes.into()).unwrap_or_default()
    }
}

/// All that is known of a file.
pub(crate) struct Known<'k, 'f> {
    pub(crate) image: &'k Image<'f>,
    pub(crate) frames: &'k Frames<'f>,
    pub(crate) leads: &'k Leads,
    pub(crate) starts: &'k Starts,
    /// Code whose places others compare addresses with.
    pub(crate) known_places: &'k [Range<u64>],
}

/// Judges the function that begins at `at`.
pub(crate) fn judge(
    known: &Known<'_, '_>,
    at: u64,
    start: &Start,
    padding: &mut Padding,
) -> Result<Movable, Refusal> {
    known.is_function(at, start)?;
    let mut first = First::decode(known, at, start.end)?;
    first.check(known, at, start)?;
    let place = first.place()?;
    if let Some(form) = first.one_store(known, padding) {
        let bytes = first.instruction.len() as u8;
        return Ok(first.movable(known, bytes, form));
    }
    first.several(known, padding, place)
}

impl Known<'_, '_> {
    /// Whether a function begins there that a call enters.
    fn is_function(&self, at: u64, start: &Start) -> Result<(), Refusal> {
        if start.is_resolver {
            return Err(Refusal::Resolver);
        }
        if is_cold(&start.names) {
            return Err(Refusal::Part);
        }
        match self.frames.around(at) {
            None => return Err(Refusal::NoFrame),
            Some(frame) if frame.start != at => {
                let around = frame.start;
                return Err(Refusal::Inside { around });
            }
            Some(frame) => match frame.beginning {
                Beginning::Called => {}
                Beginning::Other => return Err(Refusal::NotCalled),
                Beginning::Outermost => return Err(Refusal::Outermost),
                Beginning::Signal => return Err(Refusal::Signal),
            },
        }
        if self
            .image
            .code_around(at)
            .is_none_or(|code| code.is_writable)
        {
            return Err(Refusal::Writable);
        }
        let mut inside = self.leads.into(at + 1..start.end).iter();
        if let Some(lead) = inside.find(|lead| lead.kind == LeadKind::Address) {
            return Err(Refusal::Label {
                from: lead.from,
                to: lead.to,
            });
        }
        let is_compared = |name: &Vec<u8>| {
            // A handler knows where these may fault; a cancellation where this one waits.
            name.starts_with(b"SafeFetch") || name == b"__syscall_cancel_arch"
        };
        let is_known = self.known_places.iter().any(|range| range.contains(&at));
        if is_known || start.names.iter().any(is_compared) {
            return Err(Refusal::KnownPlaces);
        }
        Ok(())
    }

    /// Refuses bytes of which something leads to another than the first.
    fn nothing_leads_into(&self, bytes: &Range<u64>) -> Result<(), Refusal> {
        let inside = bytes.start + 1..bytes.end;
        let lead = self.leads.into(inside.clone()).first().copied();
        let symbol = self.starts.labels.range(inside).next();
        let symbol = symbol.map(|at| Lead {
            to: *at,
            from: *at,
            kind: LeadKind::Symbol,
        });
        match lead.or(symbol) {
            None => Ok(()),
            Some(Lead { to, from, kind }) => Err(Refusal::LeadsInto { kind, from, to }),
        }
    }
}

/// A function's first instruction.
struct First<'c> {
    /// Where it begins.
    site: u64,
    /// Where the function ends.
    end: u64,
    instruction: Instruction,
    /// Stands after it.
    decoder: Decoder<'c>,
}

/// What becomes of an instruction that is moved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It does the same elsewhere.
    Anywhere,
    /// A call, which would leave another return address.
    Call,
}

impl<'c> First<'c> {
    fn decode(known: &Known<'_, 'c>, at: u64, end: u64) -> Result<Self, Refusal> {
        let code = known.image.code_from(at);
        let code = code.get(..CODE_BYTES_MAX).unwrap_or(code);
        let mut decoder = Decoder::with_ip(64, code, at, DecoderOptions::NONE);
        let mut instruction = decoder.decode();
        if instruction.mnemonic() == Mnemonic::Endbr64 {
            instruction = decoder.decode();
        }
        let site = instruction.ip();
        if site >= end {
            return Err(Refusal::Short { bytes: end - at });
        }
        Ok(Self {
            site,
            end,
            instruction,
            decoder,
        })
    }

    /// What holds for the site in any form.
    fn check(&self, known: &Known<'_, '_>, at: u64, start: &Start) -> Result<(), Refusal> {
        let Self {
            site, instruction, ..
        } = self;
        let bytes = *site..site + JUMP_BYTES.max(instruction.len() as u64);
        if known.leads.is_relocated(&bytes) {
            return Err(Refusal::Relocated);
        }
        let leads = [at, *site]
            .into_iter()
            .flat_map(|to| known.leads.into(to..to + 1));
        let is_own = |from: u64| (at..start.end).contains(&from);
        let mut jumps = leads.filter(|lead| lead.kind == LeadKind::Jump && is_own(lead.from));
        match jumps.next() {
            Some(lead) => Err(Refusal::Loop { from: lead.from }),
            None => Ok(()),
        }
    }

    fn movable(&self, known: &Known<'_, '_>, bytes: u8, form: Form) -> Movable {
        let length = usize::from(bytes).max(JUMP_BYTES as usize);
        let there = known.image.code_from(self.site);
        let there = there.get(..length).unwrap_or(there);
        let mut code = [0; FIRST_BYTES_MAX];
        code[..there.len()].copy_from_slice(there);
        Movable {
            site: self.site,
            bytes,
            form,
            code,
            code_bytes: there.len() as u8,
        }
    }

    fn place(&self) -> Result<Place, Refusal> {
        judge_instruction(&self.instruction, self.site, 0)
    }

    /// The form that takes one store, if it is possible: the bytes of one instruction change.
    fn one_store(&self, known: &Known<'_, '_>, padding: &mut Padding) -> Option<Form> {
        let Self {
            site, instruction, ..
        } = self;
        if self.place() != Ok(Place::Anywhere) {
            return None;
        }
        let after = instruction.next_ip();
        known.nothing_leads_into(&(*site..after)).ok()?;
        let is_in_a_word = |bytes: u64| site % WORD_BYTES + bytes <= WORD_BYTES;
        if is_in_a_word(JUMP_BYTES) && self.take_room(padding) {
            return Some(Form::OneStore);
        }
        if instruction.len() >= 2 && is_in_a_word(2) {
            let at = padding.take(*site)?;
            let there = known.image.code_from(at).first_chunk::<5>();
            return there.map(|padding| Form::Hop {
                at,
                padding: *padding,
            });
        }
        None
    }

    /// Takes five bytes: those of the instruction, and padding after one that never goes on. `false`: there are not
    /// as many.
    fn take_room(&self, padding: &mut Padding) -> bool {
        let (after, needed) = (self.instruction.next_ip(), self.site + JUMP_BYTES);
        let is_last = ends(&self.instruction) && after >= self.end;
        after >= needed || is_last && padding.take_all(after..needed)
    }

    /// The form for several instructions.
    fn several(
        &mut self,
        known: &Known<'_, '_>,
        padding: &mut Padding,
        first: Place,
    ) -> Result<Movable, Refusal> {
        let site = self.site;
        let needed = site + JUMP_BYTES;
        let mut place = first;
        let mut written = self.instruction.rflags_modified();
        let mut last = self.instruction;
        while last.next_ip() < needed {
            if place == Place::Call {
                return Err(Refusal::CallInside { at: last.ip() });
            }
            if last.next_ip() >= self.end || ends(&last) {
                return self.with_padding(known, padding, last.next_ip());
            }
            last = self.decoder.decode();
            place = judge_instruction(&last, site, written)?;
            written |= last.rflags_modified();
        }
        let after = last.next_ip();
        known.nothing_leads_into(&(site..after))?;
        if known.leads.is_relocated(&(site..after)) {
            return Err(Refusal::Relocated);
        }
        let form = match place {
            Place::Anywhere => Form::Several,
            Place::Call if is_aimable(&last) => Form::Call,
            Place::Call => return Err(Refusal::CallFixed { at: last.ip() }),
        };
        Ok(self.movable(known, (after - site) as u8, form))
    }

    /// Instructions that end at `end`, before five bytes are full: the rest must be padding.
    fn with_padding(
        &self,
        known: &Known<'_, '_>,
        padding: &mut Padding,
        end: u64,
    ) -> Result<Movable, Refusal> {
        let needed = self.site + JUMP_BYTES;
        if end < self.end || !padding.take_all(end..needed) {
            let bytes = end - self.site;
            return Err(Refusal::Short { bytes });
        }
        known.nothing_leads_into(&(self.site..end))?;
        Ok(self.movable(known, (end - self.site) as u8, Form::Several))
    }
}

/// Whether an instruction can be moved. `written`: flags that those before it, from `site` on, have written.
fn judge_instruction(instruction: &Instruction, site: u64, written: u32) -> Result<Place, Refusal> {
    let at = instruction.ip();
    if instruction.is_invalid() {
        return Err(Refusal::Undefined { at });
    }
    if instruction.rflags_read() & !written & !RflagsBits::DF != 0 {
        return Err(Refusal::ReadsFlags);
    }
    match instruction.mnemonic() {
        Mnemonic::Int3 => return Err(Refusal::Trap { at }),
        Mnemonic::Xbegin | Mnemonic::Xabort => return Err(Refusal::Transaction),
        Mnemonic::Pop if at == site => return Err(Refusal::PopsReturnAddress),
        Mnemonic::Loop
        | Mnemonic::Loope
        | Mnemonic::Loopne
        | Mnemonic::Jrcxz
        | Mnemonic::Jecxz
        | Mnemonic::Jcxz => return Err(Refusal::ShortJump),
        // They count as calls for the decoder.
        Mnemonic::Syscall | Mnemonic::Sysenter => return Ok(Place::Anywhere),
        _ => {}
    }
    match instruction.flow_control() {
        FlowControl::Call | FlowControl::IndirectCall => Ok(Place::Call),
        FlowControl::Interrupt => Err(Refusal::Trap { at }),
        _ => Ok(Place::Anywhere),
    }
}

/// Whether a call is direct, and its distance one store.
fn is_aimable(call: &Instruction) -> bool {
    let distance = call.next_ip() - 4;
    call.op0_kind() == OpKind::NearBranch64
        && call.len() == JUMP_BYTES as usize
        && distance % WIDE_WORD_BYTES + 4 <= WIDE_WORD_BYTES
}
