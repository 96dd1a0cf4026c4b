//! The bytes of a site, and the steps between them.
//!
//! | what | at rest | shut | open |
//! | --- | --- | --- | --- |
//! | five bytes of NOP, `call __fentry__` | `0f 1f 44 00 00`, `e8 …` | `a9 …` test eax, … | `e8 …` call pad |
//! | six bytes, `call *__fentry__(%rip)` | `ff 15 …` | `f7 c0 …` test eax, … | `67 e8 …` call pad |
//! | XRay entry and tail sled | `eb 09 …` jump over it | the same | `a8 09` test al, 9; `e8 …`; NOP |
//! | XRay exit sled | `c3 …` ret | the same | `e9 …` jmp pad |
//!
//! Shut and open differ in the head only, and so do rest and shut. Both have the same length, so
//! no processor sees a boundary where none is; and TEST is right with any operand, so the other
//! bytes may change under it in any order. TEST changes flags, which hold nothing where functions
//! begin or end. A head is one byte, which cannot be torn, wherever it lies; where it is two they
//! must lie in one aligned word of 8.

use super::distance::rest_head;
use super::nops::{self, TEST};
use super::{ReturnPlace, trampoline_code};
use crate::arch::{Bytes, Edit, Origin, STEPS, State, UnfitCode};

const CALL: u8 = 0xe8;
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const CALL_BYTES: usize = 5;
const JUMP: u8 = 0xeb;
const OVER: u8 = 9;
const RETURN: u8 = 0xc3;
const SLED_BYTES: usize = 11;

/// How a site looks and changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    shape: Shape,
    rest_head: Bytes,
    rest_body: Bytes,
    /// Bytes after the call, part of a longer NOP, that must become a NOP of their own first.
    tail: Bytes,
    /// Threads may rest between its bytes.
    has_boundaries: bool,
    /// For a site inside a function.
    return_place: Option<ReturnPlace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Call5,
    Call6,
    SledEntry,
    SledExit,
}

/// What the code of a site says, which begins at address `at`.
pub(crate) fn read(code: &[u8], at: u64, origin: Origin) -> Result<Form, UnfitCode> {
    match origin {
        Origin::SledEntry => read_sled(code, Shape::SledEntry, &[JUMP, OVER]),
        Origin::SledExit => read_sled(code, Shape::SledExit, &[RETURN]),
        Origin::Mcount if code.first() == Some(&CALL) && code.len() >= CALL_BYTES => {
            Ok(Form::new(Shape::Call5, &code[..1], &code[1..CALL_BYTES]))
        }
        Origin::Mcount if code.starts_with(&[0xff, 0x15]) && code.len() >= 6 => {
            let is_torn = at % 8 == 7;
            let form = Form::new(Shape::Call6, &code[..2], &code[2..6]);
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
    let end = if shape == Shape::SledEntry {
        SLED_BYTES
    } else {
        CALL_BYTES
    };
    Ok(Form::new(shape, &bytes[..1], &bytes[1..end]))
}

fn read_nops(code: &[u8]) -> Result<Form, UnfitCode> {
    let found = || code.get(..8).unwrap_or(code).to_vec();
    let nop = nops::first(code).ok_or_else(|| UnfitCode::NotNops(found()))?;
    if nop.length >= CALL_BYTES {
        let tail = nop.length - CALL_BYTES;
        if tail > 0 && (tail > CALL_BYTES || nop.free_from > CALL_BYTES) {
            return Err(UnfitCode::LongNop(nop.length));
        }
        let mut form = Form::new(Shape::Call5, &code[..1], &code[1..CALL_BYTES]);
        form.tail = Bytes::new(nops::of(tail));
        return Ok(form);
    }
    let ones = code.iter().take_while(|byte| **byte == 0x90).count();
    if ones >= CALL_BYTES {
        let mut form = Form::new(Shape::Call5, &code[..1], &code[1..CALL_BYTES]);
        form.has_boundaries = true;
        return Ok(form);
    }
    match run_length(code) {
        run if run < CALL_BYTES => Err(UnfitCode::FewNops(run)),
        _ => Err(UnfitCode::BrokenNops(found())),
    }
}

/// Whether `code` returns from its function: `ret`, with or without a prefix.
pub(crate) fn is_return(code: &[u8]) -> bool {
    let code = code.strip_prefix(&[0xf3]).unwrap_or(code);
    matches!(code.first(), Some(0xc2 | 0xc3))
}

/// Bytes of NOPs at the start of `code`.
fn run_length(code: &[u8]) -> usize {
    let mut run = 0;
    while let Some(nop) = nops::first(&code[run..]) {
        run += nop.length;
    }
    run
}

/// Where the site of a function is that begins at offset `start` of `code`, for a table entry at
/// offset `entry`: after `endbr64`. NOPs in front of the function are never executed; anything
/// else there means that the entry belongs to something else.
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
    fn new(shape: Shape, head: &[u8], body: &[u8]) -> Self {
        Self {
            shape,
            rest_head: Bytes::new(head),
            rest_body: Bytes::new(body),
            tail: Bytes::default(),
            has_boundaries: false,
            return_place: None,
        }
    }

    /// The same for a site inside a function.
    pub(crate) fn inside(mut self, place: ReturnPlace) -> Self {
        self.return_place = Some(place);
        self
    }

    /// The place of the return address, for a site inside a function.
    pub(crate) fn return_place(&self) -> Option<ReturnPlace> {
        self.return_place
    }

    /// Whether threads may rest between the bytes, so that only the distances of
    /// [`super::safe_distances`] may stand there.
    pub(crate) fn has_boundaries(&self) -> bool {
        self.has_boundaries
    }

    /// Bytes from the first one to the end of the call's operand: distances count from there.
    pub(crate) fn call_end(&self) -> u64 {
        match self.shape {
            Shape::Call5 | Shape::SledExit => 5,
            Shape::Call6 => 6,
            Shape::SledEntry => 7,
        }
    }

    /// Whether all changes of its head are of one byte.
    pub(crate) fn has_one_byte_head(&self) -> bool {
        self.shape != Shape::Call6
    }

    /// The bytes in `state`, `distance` being that of the call.
    pub(crate) fn bytes(&self, state: State, distance: i32) -> Bytes {
        let (head, body) = match state {
            State::Rest => (self.rest_head, self.rest_body),
            State::Open => (self.open_head(), self.open_body(distance)),
        };
        Bytes::new(&[&*head, &*body].concat())
    }

    /// What the form is once its site was opened with `distance`, and how it rests from then on.
    pub(crate) fn settled(mut self, distance: i32) -> Self {
        self.tail = Bytes::default();
        if self.has_boundaries {
            self.rest_head = Bytes::new(&[rest_head(distance)]);
            self.rest_body = Bytes::new(&distance.to_le_bytes());
        } else if self.shape == Shape::SledEntry || self.shape == Shape::SledExit {
            self.rest_body = self.open_body(distance);
        } else if self.shape == Shape::Call5 && self.rest_head[0] != CALL {
            self.rest_head = Bytes::new(&nops::of(CALL_BYTES)[..1]);
            self.rest_body = Bytes::new(&nops::of(CALL_BYTES)[1..]);
        }
        self
    }

    /// The same site, when no thread can rest between its bytes.
    pub(crate) fn without_boundaries(mut self) -> Self {
        self.has_boundaries = false;
        self
    }

    /// Writes from rest to open. `settled` afterwards.
    pub(crate) fn open(&self, distance: i32) -> [Option<Edit>; STEPS] {
        let body = self.open_body(distance);
        let is_changed = body != self.rest_body;
        let shut = is_changed && self.shut_head() != self.rest_head;
        [
            edit(!self.tail.is_empty(), self.call_end(), self.tail),
            edit(shut, 0, self.shut_head()),
            edit(is_changed, self.rest_head.len() as u64, body),
            edit(true, 0, self.open_head()),
        ]
    }

    /// Writes from open to rest, of a form that was settled.
    pub(crate) fn close(&self, distance: i32) -> [Option<Edit>; STEPS] {
        let is_changed = self.open_body(distance) != self.rest_body;
        [
            None,
            edit(is_changed, 0, self.shut_head()),
            edit(is_changed, self.rest_head.len() as u64, self.rest_body),
            edit(true, 0, self.rest_head),
        ]
    }

    fn shut_head(&self) -> Bytes {
        match self.shape {
            Shape::Call5 => Bytes::new(&[TEST]),
            Shape::Call6 => Bytes::new(&[0xf7, 0xc0]),
            Shape::SledEntry | Shape::SledExit => self.rest_head,
        }
    }

    fn open_head(&self) -> Bytes {
        Bytes::new(match self.shape {
            Shape::Call5 => &[CALL],
            Shape::Call6 => &[0x67, CALL],
            Shape::SledEntry => &[0xa8],
            Shape::SledExit => &[0xe9],
        })
    }

    fn open_body(&self, distance: i32) -> Bytes {
        let operand = distance.to_le_bytes();
        match self.shape {
            Shape::SledEntry => Bytes::new(&[&[OVER, CALL][..], &operand, nops::of(4)].concat()),
            _ => Bytes::new(&operand),
        }
    }

    /// The distance of a call in the site at `at` to `to`.
    pub(crate) fn distance(&self, at: u64, to: u64) -> Option<i32> {
        trampoline_code::distance(at + self.call_end(), to)
    }
}

fn edit(is_needed: bool, offset: u64, bytes: Bytes) -> Option<Edit> {
    let offset = u8::try_from(offset).ok()?;
    is_needed.then_some(Edit { offset, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sites as compilers write them; in the tests the rest of a function follows.
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
    /// `mov rax, fs:0x28`: what follows many entries.
    const BEHIND: [u8; 9] = [0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0];

    /// Where the next instruction begins that is not of the site, or none where the code leaves.
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
            let mut code = [bytes, &BEHIND].concat();
            let mut form = read(&code, 0x1000, origin).unwrap();
            let out = execute(&code);
            for state in [State::Open, State::Rest, State::Open, State::Rest] {
                let steps = match state {
                    State::Open => form.open(DISTANCE),
                    State::Rest => form.close(DISTANCE),
                };
                for edit in steps.iter().flatten() {
                    // Bodies are written byte by byte.
                    for (at, byte) in (usize::from(edit.offset)..).zip(edit.bytes.iter()) {
                        code[at] = *byte;
                        assert!(edit.offset == 0 || execute(&code) == out, "{code:02x?}");
                    }
                    assert_eq!(execute(&code), out, "{edit:02x?} in {code:02x?}");
                }
                form = form.settled(DISTANCE);
                let expected = form.bytes(state, DISTANCE);
                assert_eq!(code[..expected.len()], *expected, "{state:?}");
            }
            assert_eq!(code[bytes.len()..], BEHIND);
        }
    }

    #[test]
    fn inside_a_function_only_one_nop_is_a_site() {
        let code = [0x0f, 0x1f, 0x44, 0x00, 0x00, 0x55];
        let form = read(&code, 0x1000, Origin::Inside).unwrap();
        assert!(!form.has_boundaries());
        let opened = form.settled(DISTANCE).bytes(State::Rest, 0);
        assert_eq!(*opened, code[..5]);
        for other in [[0x90; 6], [0x0f, 0x1f, 0x44, 0x00, 0x08, 0x55]] {
            let found = read(&other, 0x1000, Origin::Inside);
            assert!(matches!(found, Err(UnfitCode::NotNops(_))), "{found:?}");
        }
    }

    #[test]
    fn the_call_ends_where_its_distance_counts_from() {
        for (bytes, origin) in SITES {
            let form = read(&[bytes, &BEHIND].concat(), 0x1000, origin).unwrap();
            let open = form.bytes(State::Open, DISTANCE);
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
