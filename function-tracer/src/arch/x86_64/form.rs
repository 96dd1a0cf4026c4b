//! The bytes of a patch site, and the steps between them.
//!
//! | what | disabled | masked | enabled |
//! | --- | --- | --- | --- |
//! | five bytes of NOP, `call __fentry__` | `0f 1f 44 00 00`, `e8 …` | `a9 …` test eax, … | `e8 …` call trampoline |
//! | six bytes, `call *__fentry__(%rip)` | `ff 15 …` | `f7 c0 …` test eax, … | `67 e8 …` call trampoline |
//! | XRay entry and tail sled | `eb 09 …` jump over it | the same | `a8 09` test al, 9; `e8 …`; NOP |
//! | XRay exit sled | `c3 …` ret | the same | `e9 …` jmp trampoline |
//! | a moved instruction, five bytes | the instruction | the same | `e9 …` jmp trampoline |
//! | a moved instruction, two bytes | the instruction | the same | `eb …` jmp to padding, where `e9 …` jmp trampoline stands |
//! | several moved instructions | `e9 …` jmp trampoline | the same | the same |
//!
//! Masked differs from enabled and from disabled in the head only. The instructions have the same
//! length, so no processor sees a boundary where none is. TEST is correct with any operand, so the
//! other bytes may change after it in any order. TEST changes flags, which are unused where
//! functions begin, before a return, and before a jump that always leaves the function; a sled before any other
//! instruction is no site. A head of one byte cannot be torn, wherever it lies; a longer one
//! must lie in one aligned word of 8. Where an instruction was moved, no thread can be between two bytes of
//! it. The jump in padding stays there for ever, because a thread may be about to take it. Where several
//! instructions were moved, a thread can be: the jump is put there once, while none is, and stays. Such a site is
//! enabled and disabled by its target alone.

use super::ReturnPlace;
use super::distance::{disabled_head, distance};
use super::nops::{self, TEST};
use crate::arch::{Bytes, Edit, Origin, STEPS, SiteState, UnfitCode};

const CALL: u8 = 0xe8;
pub(super) const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
pub(super) const CALL_BYTES: usize = 5;
const JUMP: u8 = 0xeb;
const OVER: u8 = 9;
pub(super) const RETURN: u8 = 0xc3;
const SLED_BYTES: usize = 11;
const LONG_JUMP: u8 = 0xe9;
const SHORT_JUMP_BYTES: usize = 2;

/// How a patch site looks and changes. A process has one for each of its sites, so it is small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    shape: Shape,
    /// Whether a thread may be between two bytes of the site.
    has_boundaries: bool,
    /// Bytes after the call, which were the end of a longer NOP and become one of their own; after a jump, what was moved
    /// beyond it.
    tail: u8,
    /// The site's bytes, as many as its shape has.
    disabled: [u8; SLED_BYTES],
    /// The place of the return address, for a site inside a function.
    return_place: Option<ReturnPlace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Call5,
    Call6,
    SledEntry,
    SledExit,
    /// A jump in the place of an instruction that was moved.
    Jump,
    /// A short jump there, to a jump in padding at this distance from the site.
    Hop(i16),
    /// A jump in the place of several instructions, or of instructions and padding.
    Several,
}

impl Shape {
    /// Bytes of the head.
    fn head_bytes(self) -> usize {
        match self {
            Self::Call6 | Self::Hop(_) => SHORT_JUMP_BYTES,
            Self::Jump | Self::Several => CALL_BYTES,
            Self::Call5 | Self::SledEntry | Self::SledExit => 1,
        }
    }

    /// Bytes that change, head and body.
    fn bytes(self) -> usize {
        match self {
            Self::Call5 | Self::SledExit | Self::Jump | Self::Several => CALL_BYTES,
            Self::Call6 => CALL_BYTES + 1,
            Self::SledEntry => SLED_BYTES,
            Self::Hop(_) => SHORT_JUMP_BYTES,
        }
    }
}

/// The form of the site at address `at` in the place of an instruction that is moved. `code` is what stands
/// there, and `hop` the padding for a longer jump where the site's is short.
pub(crate) fn read_moved(code: &[u8], at: u64, hop: Option<u64>) -> Result<Form, UnfitCode> {
    let found = || code.get(..8).unwrap_or(code).to_vec();
    let shape = match hop {
        None => Shape::Jump,
        Some(hop) => {
            let from_jump = hop.wrapping_sub(at + SHORT_JUMP_BYTES as u64).cast_signed();
            i8::try_from(from_jump).map_err(|_| UnfitCode::Unmovable(found()))?;
            // At most 130, as checked above.
            Shape::Hop(hop.wrapping_sub(at).cast_signed() as i16)
        }
    };
    if code.len() < shape.bytes() {
        return Err(UnfitCode::Unmovable(found()));
    }
    if at % 8 + shape.bytes() as u64 > 8 {
        return Err(UnfitCode::Straddles);
    }
    Ok(Form::new(shape, code))
}

/// The form of a site in the place of several instructions of `length` bytes together, which `code` begins with.
pub(crate) fn read_several(code: &[u8], length: usize) -> Result<Form, UnfitCode> {
    if code.len() < CALL_BYTES.max(length) {
        return Err(UnfitCode::Unmovable(code.to_vec()));
    }
    let mut form = Form::new(Shape::Several, code);
    form.tail = length.saturating_sub(CALL_BYTES) as u8; // At most 14.
    Ok(form)
}

/// The form of the site whose code begins at address `at`.
pub(crate) fn read(code: &[u8], at: u64, origin: Origin) -> Result<Form, UnfitCode> {
    match origin {
        Origin::SledEntry => read_sled(code, Shape::SledEntry, &[JUMP, OVER]),
        Origin::SledExit => read_sled(code, Shape::SledExit, &[RETURN]),
        Origin::Mcount if code.first() == Some(&CALL) && code.len() >= CALL_BYTES => {
            Ok(Form::new(Shape::Call5, code))
        }
        Origin::Mcount if code.starts_with(&[0xff, 0x15]) && code.len() >= 6 => {
            let is_torn = at % 8 == 7;
            let form = Form::new(Shape::Call6, code);
            if is_torn {
                Err(UnfitCode::Straddles)
            } else {
                Ok(form)
            }
        }
        Origin::Inside if !code.starts_with(nops::of(CALL_BYTES)) => {
            Err(UnfitCode::NotNops(code.get(..8).unwrap_or(code).to_vec()))
        }
        Origin::Mcount | Origin::Patchable | Origin::Inside | Origin::Return => read_nops(code),
    }
}

fn read_sled(code: &[u8], shape: Shape, head: &[u8]) -> Result<Form, UnfitCode> {
    let bytes = code.get(..SLED_BYTES).unwrap_or(code);
    if bytes.len() < SLED_BYTES || !bytes.starts_with(head) {
        return Err(UnfitCode::NotNops(bytes.to_vec()));
    }
    Ok(Form::new(shape, bytes))
}

fn read_nops(code: &[u8]) -> Result<Form, UnfitCode> {
    let found = || code.get(..8).unwrap_or(code).to_vec();
    let nop = nops::first(code).ok_or_else(|| UnfitCode::NotNops(found()))?;
    if nop.length >= CALL_BYTES {
        let tail = nop.length - CALL_BYTES;
        if tail > 0 && (tail > CALL_BYTES || nop.free_from > CALL_BYTES) {
            return Err(UnfitCode::LongNop(nop.length));
        }
        let mut form = Form::new(Shape::Call5, code);
        form.tail = tail as u8; // At most 5, as checked above.
        return Ok(form);
    }
    let ones = code.iter().take_while(|byte| **byte == 0x90).count();
    if ones >= CALL_BYTES {
        let mut form = Form::new(Shape::Call5, code);
        form.has_boundaries = true;
        return Ok(form);
    }
    match run_length(code) {
        run if run < CALL_BYTES => Err(UnfitCode::FewNops(run)),
        _ => Err(UnfitCode::BrokenNops(found())),
    }
}

/// Number of bytes in NOPs at the start of `code`.
pub(super) fn run_length(code: &[u8]) -> usize {
    let mut run = 0;
    while let Some(nop) = nops::first(&code[run..]) {
        run += nop.length;
    }
    run
}

/// Offset in `code` of the site that a table entry at offset `entry` means, in a function that
/// begins at offset `start`: after `endbr64`. NOPs in front of the function are never executed;
/// other code there means that the entry belongs to something else.
pub(crate) fn lands_on_entry(code: &[u8], entry: usize, start: usize) -> Option<usize> {
    let mut at = entry;
    while at < start {
        at += nops::first(code.get(at..)?)?.length;
    }
    let is_marked = code.get(start..)?.starts_with(&ENDBR64);
    let site = start + if is_marked { ENDBR64.len() } else { 0 };
    (at == start.max(entry) && site >= entry).then_some(site)
}

impl Form {
    /// The form of a site that begins with `code`.
    pub(super) fn new(shape: Shape, code: &[u8]) -> Self {
        let mut disabled = [0; SLED_BYTES];
        let bytes = code.iter().take(shape.bytes());
        disabled
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
        Self {
            shape,
            has_boundaries: false,
            tail: 0,
            disabled,
            return_place: None,
        }
    }

    fn disabled(&self) -> &[u8] {
        &self.disabled[..self.shape.bytes()]
    }

    fn disabled_head(&self) -> Bytes {
        Bytes::new(&self.disabled[..self.shape.head_bytes()])
    }

    fn disabled_body(&self) -> Bytes {
        Bytes::new(&self.disabled()[self.shape.head_bytes()..])
    }

    fn set_disabled(&mut self, head: u8, body: &[u8]) {
        self.disabled[0] = head;
        let to = self.disabled[1..].iter_mut();
        to.zip(body).for_each(|(to, from)| *to = *from);
    }

    /// The same form, for a site inside a function.
    pub(crate) fn inside(mut self, place: ReturnPlace) -> Self {
        self.return_place = Some(place);
        self
    }

    /// The place of the return address, for a site inside a function.
    pub(crate) fn return_place(&self) -> Option<ReturnPlace> {
        self.return_place
    }

    /// Whether a thread may be between two bytes of the site, so that it can hold the distances of
    /// [`super::safe_distances`] only.
    pub(crate) fn has_boundaries(&self) -> bool {
        self.has_boundaries
    }

    /// Bytes from the site's start to the end of the call, or the jump, from which its distance counts. A
    /// jump in padding may lie before the site.
    pub(crate) fn call_end(&self) -> u64 {
        match self.shape {
            Shape::Call5 | Shape::SledExit | Shape::Jump | Shape::Several => 5,
            Shape::Call6 => 6,
            Shape::SledEntry => 7,
            Shape::Hop(at) => (i64::from(at) + CALL_BYTES as i64).cast_unsigned(),
        }
    }

    /// Bytes from the site's start to the first instruction after it, in a site that was never enabled.
    pub(crate) fn length(&self) -> usize {
        self.shape.bytes() + usize::from(self.tail)
    }

    /// Whether every change of the head is one byte.
    pub(crate) fn has_one_byte_head(&self) -> bool {
        self.shape.head_bytes() == 1
    }

    /// The site's bytes in `state`, where the call's distance is `distance`.
    pub(crate) fn bytes(&self, state: SiteState, distance: i32) -> Bytes {
        match state {
            SiteState::Disabled if self.is_put_once() && distance != 0 => long_jump(distance),
            SiteState::Disabled => Bytes::new(self.disabled()),
            SiteState::Enabled if self.is_moved() => self.moved_head(distance),
            SiteState::Enabled => {
                Bytes::new(&[&*self.enabled_head(), &*self.enabled_body(distance)].concat())
            }
        }
    }

    /// The form of the site from its first enabling with `distance` on.
    pub(crate) fn settled(mut self, distance: i32) -> Self {
        if self.is_moved() {
            return self;
        }
        self.tail = 0;
        if self.has_boundaries {
            self.set_disabled(disabled_head(distance), &distance.to_le_bytes());
        } else if self.shape == Shape::SledEntry || self.shape == Shape::SledExit {
            self.set_disabled(self.disabled[0], &self.enabled_body(distance));
        } else if self.shape == Shape::Call5 && self.disabled[0] != CALL {
            let nop = nops::of(CALL_BYTES);
            self.set_disabled(nop[0], &nop[1..]);
        }
        self
    }

    /// The form of the same site where no thread can be between two of its bytes.
    pub(crate) fn without_boundaries(mut self) -> Self {
        self.has_boundaries = false;
        self
    }

    /// Writes that enable the site. Its form is [`Form::settled`] afterwards.
    pub(crate) fn steps_to_enable(&self, distance: i32) -> [Option<Edit>; STEPS] {
        if self.is_moved() {
            let hop = match self.shape {
                Shape::Hop(offset) => Some(Edit {
                    offset,
                    bytes: long_jump(distance),
                }),
                _ => None,
            };
            return [None, None, hop, edit(true, 0, self.moved_head(distance))];
        }
        let body = self.enabled_body(distance);
        let is_changed = body != self.disabled_body();
        let is_masked = is_changed && self.masked_head() != self.disabled_head();
        let tail = Bytes::new(nops::of(self.tail.into()));
        [
            edit(self.tail > 0, self.call_end(), tail),
            edit(is_masked, 0, self.masked_head()),
            edit(is_changed, self.shape.head_bytes() as u64, body),
            edit(true, 0, self.enabled_head()),
        ]
    }

    /// Writes that disable the site. Its form must be settled.
    pub(crate) fn steps_to_disable(&self, distance: i32) -> [Option<Edit>; STEPS] {
        if self.is_moved() {
            return [None, None, None, edit(true, 0, Bytes::new(self.disabled()))];
        }
        let body = self.disabled_body();
        let is_changed = self.enabled_body(distance) != body;
        [
            None,
            edit(is_changed, 0, self.masked_head()),
            edit(is_changed, self.shape.head_bytes() as u64, body),
            edit(true, 0, self.disabled_head()),
        ]
    }

    fn masked_head(&self) -> Bytes {
        match self.shape {
            Shape::Call5 => Bytes::new(&[TEST]),
            Shape::Call6 => Bytes::new(&[0xf7, 0xc0]),
            _ => self.disabled_head(),
        }
    }

    /// Whether an instruction was moved to make room.
    pub(crate) fn is_moved(&self) -> bool {
        matches!(self.shape, Shape::Jump | Shape::Hop(_) | Shape::Several)
    }

    /// Whether the jump is put there once, while no thread is between the instructions that it takes the place of.
    pub(crate) fn is_put_once(&self) -> bool {
        self.shape == Shape::Several
    }

    /// Where the jump in padding stands, from the site.
    pub(crate) fn hop(&self) -> Option<i16> {
        match self.shape {
            Shape::Hop(offset) => Some(offset),
            _ => None,
        }
    }

    /// The enabled site where an instruction was moved.
    fn moved_head(&self, distance: i32) -> Bytes {
        match self.shape {
            // The distance is at most 127, as `read_moved` checked.
            Shape::Hop(offset) => Bytes::new(&[JUMP, (offset - SHORT_JUMP_BYTES as i16) as u8]),
            _ => long_jump(distance),
        }
    }

    fn enabled_head(&self) -> Bytes {
        Bytes::new(match self.shape {
            Shape::Call5 => &[CALL],
            Shape::Call6 => &[0x67, CALL],
            Shape::SledEntry => &[0xa8],
            Shape::SledExit | Shape::Jump | Shape::Hop(_) | Shape::Several => &[LONG_JUMP],
        })
    }

    fn enabled_body(&self, distance: i32) -> Bytes {
        let operand = distance.to_le_bytes();
        match self.shape {
            Shape::SledEntry => Bytes::new(&[&[OVER, CALL][..], &operand, nops::of(4)].concat()),
            _ => Bytes::new(&operand),
        }
    }

    /// Distance of the call in the site at `at` to address `to`, if that is within reach.
    pub(crate) fn distance(&self, at: u64, to: u64) -> Option<i32> {
        distance(at.wrapping_add(self.call_end()), to)
    }
}

fn long_jump(distance: i32) -> Bytes {
    Bytes::new(&[&[LONG_JUMP][..], &distance.to_le_bytes()].concat())
}

fn edit(is_needed: bool, offset: u64, bytes: Bytes) -> Option<Edit> {
    let offset = i16::try_from(offset).ok()?;
    is_needed.then_some(Edit { offset, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sites as compilers write them; in the tests the body of a function follows.
    const SITES: [(&[u8], Origin); 9] = [
        (&[0x90; 5], Origin::Patchable),
        (&[0x0f, 0x1f, 0x44, 0x00, 0x08], Origin::Patchable),
        (&[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x08], Origin::Patchable),
        (
            &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00],
            Origin::Patchable,
        ),
        (
            &[0x2e, 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00],
            Origin::Patchable,
        ),
        (&[0xe8, 0x11, 0x22, 0x33, 0x44], Origin::Mcount),
        (&[0xff, 0x15, 0x11, 0x22, 0x33, 0x44], Origin::Mcount),
        (
            &[0xeb, 0x09, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0],
            Origin::SledEntry,
        ),
        (
            &[0xc3, 0x2e, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0],
            Origin::SledExit,
        ),
    ];
    const DISTANCE: i32 = 0x1122_3344;
    /// `mov rax, fs:0x28`, which follows many entries.
    const BODY: [u8; 9] = [0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0];

    /// Where the first instruction after the site begins; `None`: the code leaves the function.
    fn execute(code: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            at += match code[at..] {
                [0xa9, ..] | [0xe8, ..] => 5,
                [0xf7, 0xc0, ..] | [0xff, 0x15, ..] | [0x67, 0xe8, ..] => 6,
                [0xa8, ..] => 2,
                [0xeb, over, ..] => 2 + usize::from(over),
                [0xc3, ..] | [0xe9, ..] => return None,
                [0x64, ..] => return Some(at),
                _ => {
                    nops::first(&code[at..])
                        .expect("an instruction of a site")
                        .length
                }
            };
        }
    }

    #[test]
    fn every_step_leaves_a_site_that_can_be_executed() {
        for (bytes, origin) in SITES {
            let mut code = [bytes, &BODY].concat();
            let mut form = read(&code, 0x1000, origin).unwrap();
            let out = execute(&code);
            for state in [
                SiteState::Enabled,
                SiteState::Disabled,
                SiteState::Enabled,
                SiteState::Disabled,
            ] {
                let steps = match state {
                    SiteState::Enabled => form.steps_to_enable(DISTANCE),
                    SiteState::Disabled => form.steps_to_disable(DISTANCE),
                };
                for edit in steps.iter().flatten() {
                    // Bodies are written byte by byte.
                    for (at, byte) in (edit.offset as usize..).zip(edit.bytes.iter()) {
                        code[at] = *byte;
                        assert!(edit.offset == 0 || execute(&code) == out, "{code:02x?}");
                    }
                    assert_eq!(execute(&code), out, "{edit:02x?} in {code:02x?}");
                }
                form = form.settled(DISTANCE);
                let expected = form.bytes(state, DISTANCE);
                assert_eq!(code[..expected.len()], *expected, "{state:?}");
            }
            assert_eq!(code[bytes.len()..], BODY);
        }
    }

    #[test]
    fn a_moved_instruction_is_replaced_by_one_store() {
        let code = [0xb8, 1, 0, 0, 0, 0xc3];
        let heads = |steps: &[Option<Edit>]| {
            let steps = steps.iter().flatten();
            steps
                .map(|edit| (edit.offset, edit.bytes.to_vec()))
                .collect::<Vec<_>>()
        };
        let form = read_moved(&code, 0x1000, None).unwrap();
        let jump = vec![0xe9, 0x44, 0x33, 0x22, 0x11];
        assert_eq!(heads(&form.steps_to_enable(DISTANCE)), [(0, jump.clone())]);
        assert_eq!(form.distance(0x1000, 0x1005 + 0x1122_3344), Some(DISTANCE));
        let form = form.settled(DISTANCE);
        assert_eq!(
            heads(&form.steps_to_disable(DISTANCE)),
            [(0, code[..5].to_vec())]
        );
        assert_eq!(*form.bytes(SiteState::Enabled, DISTANCE), *jump);

        let form = read_moved(&code, 0x1006, Some(0x1000)).unwrap();
        let short = vec![0xeb, (-8_i8) as u8];
        let steps = form.steps_to_enable(DISTANCE);
        assert_eq!(heads(&steps), [(-6, jump), (0, short.clone())]);
        assert_eq!(form.distance(0x1006, 0x1005 + 0x1122_3344), Some(DISTANCE));
        let form = form.settled(DISTANCE);
        assert_eq!(
            heads(&form.steps_to_disable(DISTANCE)),
            [(0, code[..2].to_vec())]
        );
        assert_eq!(*form.bytes(SiteState::Enabled, DISTANCE), *short);

        let refused = |at, hop| read_moved(&code, at, hop).unwrap_err();
        assert_eq!(refused(0x1004, None), UnfitCode::Straddles);
        assert_eq!(refused(0x1007, Some(0x1010)), UnfitCode::Straddles);
        for far in [0x1000 + 130, 0x1002 - 129] {
            assert!(matches!(
                refused(0x1000, Some(far)),
                UnfitCode::Unmovable(_)
            ));
        }
        assert!(read_moved(&code, 0x1000, Some(0x1002 + 127)).is_ok());
        assert!(read_moved(&code, 0x1000, Some(0x1002 - 128)).is_ok());
    }

    #[test]
    fn a_jump_over_several_instructions_stays() {
        // push rbp; mov rbp, rsp; sub rsp, 24
        let code = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x18];
        let form = read_several(&code, 8).unwrap();
        assert!(form.is_put_once() && form.is_moved());
        assert_eq!(form.length(), 8);
        assert_eq!(*form.bytes(SiteState::Disabled, 0), code[..5]);
        let jump = [0xe9, 0x44, 0x33, 0x22, 0x11];
        let form = form.settled(DISTANCE);
        for state in [SiteState::Disabled, SiteState::Enabled] {
            assert_eq!(*form.bytes(state, DISTANCE), jump);
        }
        assert!(read_several(&code[..4], 4).is_err(), "no room for a jump");
        assert_eq!(read_several(&code, 3).unwrap().length(), 5, "padding");
    }

    #[test]
    fn inside_a_function_only_one_nop_is_a_site() {
        let code = [0x0f, 0x1f, 0x44, 0x00, 0x00, 0x55];
        let form = read(&code, 0x1000, Origin::Inside).unwrap();
        assert!(!form.has_boundaries());
        let opened = form.settled(DISTANCE).bytes(SiteState::Disabled, 0);
        assert_eq!(*opened, code[..5]);
        for other in [[0x90; 6], [0x0f, 0x1f, 0x44, 0x00, 0x08, 0x55]] {
            let found = read(&other, 0x1000, Origin::Inside);
            assert!(matches!(found, Err(UnfitCode::NotNops(_))), "{found:?}");
        }
    }

    #[test]
    fn the_call_ends_where_its_distance_counts_from() {
        for (bytes, origin) in SITES {
            let form = read(&[bytes, &BODY].concat(), 0x1000, origin).unwrap();
            let open = form.bytes(SiteState::Enabled, DISTANCE);
            let end = usize::try_from(form.call_end()).unwrap();
            assert_eq!(open[end - 4..end], DISTANCE.to_le_bytes());
            let to = (0x1000 + form.call_end()).wrapping_add_signed(DISTANCE.into());
            assert_eq!(form.distance(0x1000, to), Some(DISTANCE));
        }
    }

    #[test]
    fn other_code_is_refused() {
        let refusal = |code: &[u8], at, origin| read(code, at, origin).unwrap_err();
        assert_eq!(
            refusal(&[0x90, 0x90, 0xc3], 0, Origin::Patchable),
            UnfitCode::FewNops(2)
        );
        let call = [0xff, 0x15, 1, 2, 3, 4];
        assert_eq!(refusal(&call, 7, Origin::Mcount), UnfitCode::Straddles);
        assert!(read(&call, 6, Origin::Mcount).is_ok());
        let two = [0x66, 0x90, 0x0f, 0x1f, 0x00];
        assert_eq!(
            refusal(&two, 0, Origin::Patchable),
            UnfitCode::BrokenNops(two.to_vec())
        );
        let code = [0x90, 0x90, 0xf3, 0x0f, 0x1e, 0xfa, 0x90];
        assert_eq!(lands_on_entry(&code, 0, 2), Some(6));
        assert_eq!(lands_on_entry(&code, 0, 3), None, "not NOPs up to there");
        assert_eq!(lands_on_entry(&code, 6, 2), Some(6));
        assert_eq!(lands_on_entry(&code, 1, 0), None);
    }
}
