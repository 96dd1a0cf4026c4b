//! Functions whose code jumps to a function that asks who called it. The loader's functions look at
//! their return address: `dlopen` searches the RUNPATH of the module that it lies in. A function
//! that ends in a jump to one of them hands its own return address on, which must be the true one.
//!
//! Each function is decoded from its beginning. A jump by a pointer counts where the module hands the
//! address of such a function about; a false positive costs the ends of a function's calls.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;

use object::elf::{R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT};
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionKind};

use super::asking_names::{ASKING, PIECE_BYTES, names_one, read};
use crate::arch::{Step, Steps};

/// Functions that return the address of any other one by its name, which the module then holds as a
/// text.
const LOOKING_UP: [&[u8]; 2] = [b"dlsym", b"dlvsym"];

/// What a module's relocations say about the functions that ask.
#[derive(Debug, Default)]
struct Asked {
    /// Addresses of words that hold the address of such a function.
    slots: BTreeSet<u64>,
    /// Addresses of words that hold the address of any imported function.
    imports: BTreeSet<u64>,
    /// Whether the module takes the address of such a function, or looks one up: any jump by a
    /// pointer may lead there.
    is_taken: bool,
    /// Whether the module can look up functions by their names.
    looks_up: bool,
}

impl Asked {
    /// `None`: this module uses no such function.
    fn of<'a>(elf: &impl Object<'a>) -> Option<Self> {
        let mut symbols = Vec::new();
        let mut asked = Self::default();
        for symbol in elf.dynamic_symbols().filter(ObjectSymbol::is_undefined) {
            let name = symbol.name_bytes().unwrap_or_default();
            if ASKING.contains(&name) {
                // In a program at a fixed place the linker's stub may stand for the function.
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
    /// Address in the file of the first byte.
    at: u64,
    bytes: &'c [u8],
}

/// Where a function begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FunctionStart {
    /// Address in the file.
    pub(super) at: u64,
    /// Whether it may be a part of another function, so that jumps may lead into its middle.
    pub(super) is_part: bool,
}

/// The beginnings of all functions in a file, sorted.
struct Starts<'s>(&'s [FunctionStart]);

impl Starts<'_> {
    /// The beginning of the function that an address lies in.
    fn around(&self, at: u64) -> Option<FunctionStart> {
        let after = self.0.partition_point(|start| start.at <= at);
        self.0.get(after.checked_sub(1)?).copied()
    }

    /// The first beginning after an address.
    fn after(&self, at: u64) -> Option<u64> {
        let after = self.0.partition_point(|start| start.at <= at);
        self.0.get(after).map(|start| start.at)
    }

    /// The beginning of the function that a jump to this address enters.
    fn entered(&self, at: u64) -> Option<u64> {
        let start = self.around(at)?;
        (start.at == at || start.is_part).then_some(start.at)
    }
}

/// Addresses in the file of the functions that lead to one that asks. `starts` gives the beginnings of
/// all functions, sorted.
pub(super) fn of_file<'a>(
    elf: &impl Object<'a>,
    file: &File,
    starts: impl FnOnce() -> Vec<FunctionStart>,
) -> BTreeSet<u64> {
    let Some(mut asked) = Asked::of(elf) else {
        return BTreeSet::new();
    };
    asked.is_taken |= asked.looks_up && names_one(elf, file);
    let code = elf.sections().filter(|s| s.kind() == SectionKind::Text);
    let (stubs, code): (Vec<_>, Vec<_>) = code.partition(|section| {
        // The linker's stubs, which jump to imported functions.
        let name = section.name_bytes();
        name.is_ok_and(|name| name.starts_with(b".plt"))
    });
    let starts = starts();
    let mut search = JumpSearch::new(&asked, Starts(&starts));
    for (sections, is_stubs) in [(stubs, true), (code, false)] {
        for section in sections {
            let Some((offset, length)) = section.file_range() else {
                continue;
            };
            let mut from = 0;
            while from < length {
                let bytes = read(file, offset + from, PIECE_BYTES.min(length - from));
                let piece = Code {
                    at: section.address() + from,
                    bytes: &bytes,
                };
                let decoded = if is_stubs {
                    search.take_stubs(&piece)
                } else {
                    search.over(&piece)
                };
                ringmark::__private::helper::working();
                if decoded == 0 || from + bytes.len() as u64 == length {
                    break;
                }
                from += decoded;
            }
        }
    }
    search.all()
}

/// The search for jumps in a module's code.
struct JumpSearch<'l> {
    asked: &'l Asked,
    /// Stubs that jump to a function that asks, each from the end of the stub before it.
    stubs: Vec<Range<u64>>,
    starts: Starts<'l>,
    found: BTreeSet<u64>,
    /// By the beginning of a function: the functions that jump to it.
    jumps: BTreeMap<u64, Vec<u64>>,
    /// Functions with a jump by a pointer.
    by_pointer: BTreeSet<u64>,
    is_taken: bool,
}

impl<'l> JumpSearch<'l> {
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

    /// Notes the stubs in a piece of code. Returns the number of bytes that were decoded.
    fn take_stubs(&mut self, piece: &Code<'_>) -> u64 {
        let mut from = piece.at;
        let mut steps = Steps::of(piece.bytes, piece.at);
        for (at, end, step) in steps.by_ref() {
            let Step::JumpByWord { word } = step else {
                continue;
            };
            if self.asked.slots.contains(&word) {
                self.stubs.push(from..at + 1);
            }
            from = end;
        }
        steps.at() - piece.at
    }

    /// Notes the jumps in a piece of code. Returns the number of bytes that were decoded: all but an instruction
    /// that the end of the piece cuts.
    fn over(&mut self, piece: &Code<'_>) -> u64 {
        let end = piece.at + piece.bytes.len() as u64;
        let mut at = piece.at;
        while at < end {
            // Whatever stands before it, a function's first byte begins an instruction.
            let next = self.starts.after(at).filter(|next| *next < end);
            let of_one = (at - piece.at) as usize..(next.unwrap_or(end) - piece.at) as usize;
            let mut steps = Steps::of(&piece.bytes[of_one], at);
            for (at, _, step) in steps.by_ref() {
                self.take(at, step);
            }
            at = match next {
                Some(next) => next,
                None => return steps.at() - piece.at,
            };
        }
        end - piece.at
    }

    fn take(&mut self, at: u64, step: Step) {
        match step {
            Step::Jump { to } => self.jump(at, to),
            Step::JumpByWord { word } if self.asked.slots.contains(&word) => {
                self.found.extend(self.own(at));
            }
            Step::JumpByWord { word } if self.asked.imports.contains(&word) => {}
            Step::JumpByWord { .. } | Step::JumpByPointer => self.by_pointer.extend(self.own(at)),
            Step::Use { word } => self.is_taken |= self.asked.slots.contains(&word),
        }
    }

    /// Where the function begins that this address lies in.
    fn own(&self, at: u64) -> Option<u64> {
        self.starts.around(at).map(|start| start.at)
    }

    /// A jump at `at` to another address.
    fn jump(&mut self, at: u64, to: u64) {
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

    /// All functions that lead to one that asks, through any number of jumps.
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
        let start = |(at, is_part, _): &(u64, bool, &[u8])| FunctionStart {
            at: *at,
            is_part: *is_part,
        };
        let starts: Vec<_> = functions.iter().map(start).collect();
        let asked = asked(is_taken);
        let mut search = JumpSearch::new(&asked, Starts(&starts));
        let _ = search.take_stubs(&Code {
            at: 0x1000,
            bytes: &stubs,
        });
        for (at, _, bytes) in functions {
            let _ = search.over(&Code { at: *at, bytes });
        }
        search.all().into_iter().collect()
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
        // mov $-0xa0, %rax; mov %fs:(%rax), %rcx; the same with -0x1fb00; and a jump through a word
        // after a call.
        let variable: &[u8] = &[
            0x48, 0xc7, 0xc0, 0x60, 0xff, 0xff, 0xff, 0x64, 0x48, 0x8b, 0x08,
        ];
        let one_of_many: &[u8] = &[
            0x48, 0xc7, 0xc0, 0x00, 0x05, 0xfe, 0xff, 0x64, 0x48, 0x8b, 0x08,
        ];
        let after_call: &[u8] = &[0xe8, 0x60, 0xff, 0xff, 0xff, 0xff, 0x64, 0x24, 0x08];
        let variables = [
            (0x2000, false, variable),
            (0x2010, false, one_of_many),
            (0x2020, false, after_call),
        ];
        assert_eq!(found(&variables, true), [0x2020]);
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

    #[test]
    fn a_jump_back_before_a_nop_is_no_jump_by_a_pointer() {
        // jmp, call or jne to the first byte; nopw.
        let jump: &[u8] = &[0xe9, 0xfb, 0xff, 0xff, 0xff, 0x66, 0x0f, 0x1f];
        let call: &[u8] = &[0xe8, 0xfb, 0xff, 0xff, 0xff, 0x66, 0x2e, 0x0f, 0x1f];
        let unless: &[u8] = &[0x0f, 0x85, 0xfa, 0xff, 0xff, 0xff, 0x66, 0x0f, 0x1f];
        // jmp *0x2e(%rsi).
        let by_pointer: &[u8] = &[0x90, 0xff, 0x66, 0x2e, 0x0f, 0x1f];
        let found = |bytes| !found(&[(0x2000, false, bytes)], true).is_empty();
        assert_eq!([jump, call, unless].map(found), [false; 3]);
        assert!(found(by_pointer));
    }
}
