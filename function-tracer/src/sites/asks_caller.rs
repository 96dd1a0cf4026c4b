//! Functions whose code jumps to a function that asks who called it. The loader's functions look at
//! their return address: `dlopen` searches the RUNPATH of the module that it lies in. A function
//! that ends in a jump to one of them hands its own return address over, which must be the true one.
//!
//! No instruction is decoded: a jump is taken for one where its bytes stand and lead to the beginning
//! of another function. What is found too much costs the end of a function's calls; four bytes that
//! lead exactly there by chance are rare.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use object::elf::{R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT};
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionKind};

/// Functions of C libraries that look at their return address.
const ASKING: [&[u8]; 5] = [
    b"dlopen",
    b"dlmopen",
    b"dlsym",
    b"dlvsym",
    b"dl_iterate_phdr",
];

/// Those that hand over the address of any other one, whose name the module then has as a text.
const LOOKING_UP: [&[u8]; 2] = [b"dlsym", b"dlvsym"];

/// Jumps of one byte and two.
const NEAR: u8 = 0xe9;
const SHORT: u8 = 0xeb;
/// In front of a conditional jump's second byte, 0x80 to 0x8f; a short one is one byte, 0x70 to 0x7f.
const TWO_BYTES: u8 = 0x0f;
/// The first byte of jumps through a word; the second says which.
const INDIRECT: u8 = 0xff;
/// A word at a distance from the next instruction.
const JUMP_BY_WORD: u8 = 0x25;
const PUSH_WORD: u8 = 0x35;
const LOAD: u8 = 0x8b;
/// In front of a jump by a table, where tables are told from pointers.
const NOTRACK: u8 = 0x3e;

/// Bytes of a piece of code that is read at once. Pieces overlap by the longest jump.
const PIECE_BYTES: u64 = 1 << 20;
const OVERLAP: u64 = 8;
/// The longest name in [`ASKING`] with its end.
const NAME_BYTES_MAX: u64 = 16;

/// What a module's relocations say of the functions that ask.
#[derive(Debug, Default)]
struct Asked {
    /// Words that hold the address of one.
    slots: BTreeSet<u64>,
    /// Words that hold the address of any imported function.
    imports: BTreeSet<u64>,
    /// The module has an address of one, or looks one up: any jump by a pointer may lead there.
    is_taken: bool,
    /// It can look up functions by their names.
    looks_up: bool,
}

impl Asked {
    /// `None`: this module uses none of them.
    fn of<'a>(elf: &impl Object<'a>) -> Option<Self> {
        let mut symbols = Vec::new();
        let mut asked = Self::default();
        for symbol in elf.dynamic_symbols().filter(ObjectSymbol::is_undefined) {
            let name = symbol.name_bytes().unwrap_or_default();
            if ASKING.contains(&name) {
                // In a program that is loaded at a fixed place the stub's address may stand for it.
                asked.is_taken |= symbol.address() != 0;
                asked.looks_up |= LOOKING_UP.contains(&name);
                symbols.push(symbol.index());
            }
        }
        if symbols.is_empty() {
            return None;
        }
        for (at, relocation) in elf.dynamic_relocations().into_iter().flatten() {
            let RelocationFlags::Elf { r_type } = relocation.flags() else {
                continue;
            };
            let is_asking = match relocation.target() {
                RelocationTarget::Symbol(symbol) => symbols.contains(&symbol),
                _ => false,
            };
            match r_type {
                R_X86_64_JUMP_SLOT | R_X86_64_GLOB_DAT => {
                    asked.imports.insert(at);
                    if is_asking {
                        asked.slots.insert(at);
                    }
                }
                R_X86_64_64 => asked.is_taken |= is_asking,
                _ => {}
            }
        }
        Some(asked)
    }
}

/// A piece of the module's code.
struct Code<'c> {
    /// Address in the file of its first byte.
    at: u64,
    bytes: &'c [u8],
}

/// Beginnings of functions in the file, sorted, and whether each may be a part of another function:
/// then jumps lead into its middle, too.
struct Starts<'s>(&'s [(u64, bool)]);

impl Starts<'_> {
    /// The function that an address lies in: where it begins.
    fn around(&self, at: u64) -> Option<(u64, bool)> {
        let behind = self.0.partition_point(|(start, _)| *start <= at);
        self.0.get(behind.checked_sub(1)?).copied()
    }

    /// The function that a jump to this address belongs to.
    fn entered(&self, at: u64) -> Option<u64> {
        let (start, is_part) = self.around(at)?;
        (start == at || is_part).then_some(start)
    }
}

/// Addresses in the file of the functions that lead to one that asks. `starts` as in [`Starts`].
pub(super) fn of_file<'a>(
    elf: &impl Object<'a>,
    file: &File,
    starts: &[(u64, bool)],
) -> BTreeSet<u64> {
    let Some(mut asked) = Asked::of(elf) else {
        return BTreeSet::new();
    };
    asked.is_taken |= asked.looks_up && names_one(elf, file);
    let code = elf.sections().filter(|s| s.kind() == SectionKind::Text);
    let (stubs, code): (Vec<_>, Vec<_>) = code.partition(|section| {
        // Made by the linker: they jump to imported functions.
        let name = section.name_bytes();
        name.is_ok_and(|name| name.starts_with(b".plt"))
    });
    let mut look = Look::new(&asked, Starts(starts));
    for (sections, is_stubs) in [(stubs, true), (code, false)] {
        for section in sections {
            let Some((offset, length)) = section.file_range() else {
                continue;
            };
            for from in (0..length).step_by((PIECE_BYTES - OVERLAP) as usize) {
                let bytes = read(file, offset + from, PIECE_BYTES.min(length - from));
                let piece = Code {
                    at: section.address() + from,
                    bytes: &bytes,
                };
                if is_stubs {
                    look.take_stubs(&piece);
                } else {
                    look.over(&piece);
                }
                ringmark::__private::working();
            }
        }
    }
    look.all()
}

/// Whether the module's data hold the name of a function that asks, as `dlsym` is given it.
fn names_one<'a>(elf: &impl Object<'a>, file: &File) -> bool {
    let is_data = |kind| {
        matches!(
            kind,
            SectionKind::Data | SectionKind::ReadOnlyData | SectionKind::ReadOnlyString
        )
    };
    elf.sections()
        .filter(|section| is_data(section.kind()))
        .filter_map(|section| section.file_range())
        .any(|(offset, length)| {
            let step = (PIECE_BYTES - NAME_BYTES_MAX) as usize;
            (0..length).step_by(step).any(|from| {
                ringmark::__private::working();
                holds_name(&read(file, offset + from, PIECE_BYTES.min(length - from)))
            })
        })
}

/// A linker may keep one text for two of which one ends like the other, so nothing is asked of the
/// byte before.
fn holds_name(bytes: &[u8]) -> bool {
    bytes
        .split(|byte| *byte == 0)
        .rev()
        .skip(1) // Without an end.
        .any(|text| ASKING.iter().any(|name| text.ends_with(name)))
}

/// Nothing where it cannot be read: its file's table of sites was, just before.
fn read(file: &File, offset: u64, length: u64) -> Vec<u8> {
    let mut bytes = vec![0; length as usize];
    match file.read_exact_at(&mut bytes, offset) {
        Ok(()) => bytes,
        Err(_) => Vec::new(),
    }
}

fn distance(bytes: &[u8]) -> Option<i64> {
    let bytes = bytes.first_chunk::<4>()?;
    Some(i32::from_le_bytes(*bytes).into())
}

struct Look<'l> {
    asked: &'l Asked,
    /// Addresses of the stubs that jump to a function that asks: from the end of the stub before.
    stubs: Vec<Range<u64>>,
    starts: Starts<'l>,
    found: BTreeSet<u64>,
    /// By the beginning of a function: those that jump to it.
    jumps: BTreeMap<u64, Vec<u64>>,
    /// Functions with a jump by a pointer.
    by_pointer: BTreeSet<u64>,
    is_taken: bool,
}

impl<'l> Look<'l> {
    fn new(asked: &'l Asked, starts: Starts<'l>) -> Self {
        Self {
            asked,
            stubs: Vec::new(),
            starts,
            found: BTreeSet::new(),
            jumps: BTreeMap::new(),
            by_pointer: BTreeSet::new(),
            is_taken: asked.is_taken,
        }
    }

    fn take_stubs(&mut self, piece: &Code<'_>) {
        let mut from = piece.at;
        for (place, window) in piece.bytes.windows(6).enumerate() {
            let at = piece.at + place as u64;
            if window[..2] != [INDIRECT, JUMP_BY_WORD] {
                continue;
            }
            let word = distance(&window[2..]).map(|far| (at + 6).wrapping_add_signed(far));
            if word.is_some_and(|word| self.asked.slots.contains(&word)) {
                self.stubs.push(from..at + 1);
            }
            from = at + 6;
        }
    }

    fn over(&mut self, piece: &Code<'_>) {
        let bytes = piece.bytes;
        for (place, byte) in bytes.iter().enumerate() {
            let at = piece.at + place as u64;
            let rest = &bytes[place + 1..];
            match (*byte, rest) {
                (NEAR, _) => self.jump(at, at + 5, distance(rest)),
                (TWO_BYTES, [0x80..=0x8f, rest @ ..]) => self.jump(at, at + 6, distance(rest)),
                (SHORT | 0x70..=0x7f, [far, ..]) => {
                    self.jump(at, at + 2, Some(far.cast_signed().into()));
                }
                (INDIRECT, [PUSH_WORD, rest @ ..]) => self.uses(at + 6, rest),
                (LOAD, [register, rest @ ..]) if register & 0xc7 == 5 => self.uses(at + 6, rest),
                (INDIRECT, [JUMP_BY_WORD, rest @ ..]) => self.jump_by_word(at, rest),
                (INDIRECT, [how, ..]) if how & 0x38 == 0x20 => {
                    let before = place.checked_sub(1).and_then(|place| bytes.get(place));
                    if before != Some(&NOTRACK) {
                        self.by_pointer.extend(self.own(at));
                    }
                }
                _ => {}
            }
        }
    }

    /// Where the function begins that this address lies in.
    fn own(&self, at: u64) -> Option<u64> {
        self.starts.around(at).map(|(start, _)| start)
    }

    fn jump(&mut self, at: u64, from: u64, far: Option<i64>) {
        let Some(to) = far.map(|far| from.wrapping_add_signed(far)) else {
            return;
        };
        if self.stubs.iter().any(|stub| stub.contains(&to)) {
            self.found.extend(self.own(at));
            return;
        }
        let Some(target) = self.starts.entered(to) else {
            return;
        };
        if let Some(own) = self.own(at).filter(|own| *own != target) {
            self.jumps.entry(target).or_default().push(own);
        }
    }

    fn jump_by_word(&mut self, at: u64, rest: &[u8]) {
        let word = distance(rest).map(|far| (at + 6).wrapping_add_signed(far));
        match word {
            Some(word) if self.asked.slots.contains(&word) => self.found.extend(self.own(at)),
            Some(word) if self.asked.imports.contains(&word) => {}
            _ => self.by_pointer.extend(self.own(at)),
        }
    }

    /// An instruction that reads the word at a distance from its end, and does not call.
    fn uses(&mut self, end: u64, rest: &[u8]) {
        let word = distance(rest).map(|far| end.wrapping_add_signed(far));
        self.is_taken |= word.is_some_and(|word| self.asked.slots.contains(&word));
    }

    /// And who jumps to them.
    fn all(mut self) -> BTreeSet<u64> {
        if self.is_taken {
            self.found.append(&mut self.by_pointer);
        }
        let mut open: Vec<_> = self.found.iter().copied().collect();
        while let Some(function) = open.pop() {
            for from in self.jumps.remove(&function).unwrap_or_default() {
                if self.found.insert(from) {
                    open.push(from);
                }
            }
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `dlopen` is at a word at 0x4000 and `free` at 0x4008, with stubs at 0x1000 and 0x1010.
    fn asked(is_taken: bool) -> Asked {
        Asked {
            slots: BTreeSet::from([0x4000]),
            imports: BTreeSet::from([0x4000, 0x4008]),
            is_taken,
            looks_up: false,
        }
    }

    fn found(functions: &[(u64, bool, &[u8])], is_taken: bool) -> Vec<u64> {
        // endbr64; jmp *0x4000; NOP. The same for the other.
        let mut stubs = vec![0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xf6, 0x2f, 0, 0];
        stubs.resize(16, 0x90);
        stubs.extend([0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xee, 0x2f, 0, 0]);
        let starts: Vec<_> = functions.iter().map(|(at, part, _)| (*at, *part)).collect();
        let asked = asked(is_taken);
        let mut look = Look::new(&asked, Starts(&starts));
        look.take_stubs(&Code {
            at: 0x1000,
            bytes: &stubs,
        });
        for (at, _, bytes) in functions {
            look.over(&Code { at: *at, bytes });
        }
        look.all().into_iter().collect()
    }

    #[test]
    fn a_jump_to_the_stub_is_found_and_a_call_is_none() {
        let jump: &[u8] = &[0x90, 0xe9, 0xfa, 0xef, 0xff, 0xff];
        assert_eq!(found(&[(0x2000, false, jump)], false), [0x2000]);
        let conditional: &[u8] = &[0x0f, 0x84, 0xfa, 0xef, 0xff, 0xff];
        assert_eq!(found(&[(0x2000, false, conditional)], false), [0x2000]);
        let by_word: &[u8] = &[0xff, 0x25, 0xfa, 0x1f, 0, 0];
        assert_eq!(found(&[(0x2000, false, by_word)], false), [0x2000]);
        let call: &[u8] = &[0xe8, 0xfb, 0xef, 0xff, 0xff, 0xc3];
        assert_eq!(found(&[(0x2000, false, call)], false), [0; 0]);
        let other: &[u8] = &[0x90, 0xe9, 0x0a, 0xf0, 0xff, 0xff];
        assert_eq!(found(&[(0x2000, false, other)], false), [0; 0]);
    }

    #[test]
    fn a_name_is_found_as_a_whole_text_or_its_end() {
        for held in [&b"dlopen\0"[..], b"a\0dlsym\0b", b"\0my_dlopen\0"] {
            assert!(holds_name(held), "{held:?}");
        }
        for other in [&b"dlopen"[..], b"dlopen_it\0", b"\0\0", b""] {
            assert!(!holds_name(other), "{other:?}");
        }
    }

    #[test]
    fn who_jumps_to_one_that_jumps_is_found() {
        let jump: &[u8] = &[0x90, 0xe9, 0xfa, 0xef, 0xff, 0xff];
        // To 0x2000; to 0x2001, into the middle; to itself.
        let outer: &[u8] = &[0xeb, 0xee];
        let middle: &[u8] = &[0xeb, 0xdf];
        let itself: &[u8] = &[0xeb, 0xfe];
        let functions = |is_part| {
            [
                (0x2000, is_part, jump),
                (0x2010, false, outer),
                (0x2020, false, middle),
                (0x2030, false, itself),
            ]
        };
        assert_eq!(found(&functions(false), false), [0x2000, 0x2010]);
        assert_eq!(found(&functions(true), false), [0x2000, 0x2010, 0x2020]);
    }

    #[test]
    fn where_the_address_is_handed_about_each_jump_by_a_pointer_counts() {
        let register: &[u8] = &[0xff, 0xe0];
        let table: &[u8] = &[0x3e, 0xff, 0xe0];
        let field: &[u8] = &[0xff, 0x60, 0x08];
        let free: &[u8] = &[0xff, 0x25, 0xd2, 0x1f, 0, 0];
        let functions = [
            (0x2000, false, register),
            (0x2010, false, table),
            (0x2020, false, field),
            (0x2030, false, free),
        ];
        assert_eq!(found(&functions, false), [0; 0]);
        assert_eq!(found(&functions, true), [0x2000, 0x2020]);
        let load: &[u8] = &[0x48, 0x8b, 0x05, 0xb9, 0x1f, 0, 0];
        let functions = [(0x2000, false, register), (0x2040, false, load)];
        assert_eq!(found(&functions, false), [0x2000], "it is read somewhere");
    }
}
