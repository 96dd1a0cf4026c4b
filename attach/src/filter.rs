//! What a seccomp filter says of a system call: its program, a classic BPF program as the kernel
//! gives it out, run over the call's number and arguments.

/// x86-64, little endian, as filters see it.
const ARCHITECTURE: u32 = 0xc000_003e;
/// Words of memory that a program has.
const SCRATCH: usize = 16;

/// An instruction, as the kernel lays it out.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Instruction {
    pub(crate) code: u16,
    pub(crate) if_true: u8,
    pub(crate) if_false: u8,
    pub(crate) k: u32,
}

/// A system call that a filter is asked about. An argument that is `None` is not known: an address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) number: u32,
    pub(crate) arguments: [Option<u64>; 6],
}

/// What becomes of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The kernel makes it.
    Allowed,
    /// It fails with this error, or does nothing where that is 0.
    Fails(u32),
    /// The program or the thread is killed, or gets `SIGSYS`.
    Kills,
    /// Another process decides.
    AsksOther,
    /// The filter looks at an argument that is not known before, counted from 1.
    Looks(usize),
    /// The filter looks at the place of the call, or is no program that the kernel takes.
    Unknown,
}

/// What all filters of a thread together say: the kernel runs each, and the strictest wins.
pub(crate) fn verdict(filters: &[Vec<Instruction>], asked: &Asked) -> Verdict {
    let mut strictest = ALLOW;
    for filter in filters {
        match run(filter, asked) {
            Ok(value) => {
                let action = |value: u32| (value & ACTION).cast_signed();
                if action(value) < action(strictest) {
                    strictest = value;
                }
            }
            Err(other) => return other,
        }
    }
    match strictest & ACTION {
        ALLOW | LOG => Verdict::Allowed,
        ERRNO => Verdict::Fails(strictest & DATA),
        // Without a tracer that wants to know the call fails so.
        TRACE => Verdict::Fails(libc::ENOSYS.cast_unsigned()),
        NOTIFY => Verdict::AsksOther,
        // Also whatever else: the kernel kills for an action that it does not know.
        _ => Verdict::Kills,
    }
}

const ACTION: u32 = 0xffff_0000;
const DATA: u32 = 0xffff;
const ALLOW: u32 = 0x7fff_0000;
const LOG: u32 = 0x7ffc_0000;
const TRACE: u32 = 0x7ff0_0000;
const NOTIFY: u32 = 0x7fc0_0000;
const ERRNO: u32 = 0x0005_0000;

impl Asked {
    /// The word at `offset` of what a filter sees: number, architecture, address, arguments.
    fn word(&self, offset: u32) -> Result<u32, Verdict> {
        let index = match offset {
            0 => return Ok(self.number),
            4 => return Ok(ARCHITECTURE),
            16..64 if offset.is_multiple_of(4) => (offset - 16) as usize / 8,
            _ => return Err(Verdict::Unknown),
        };
        let argument = self.arguments[index].ok_or(Verdict::Looks(index + 1))?;
        let shift = if offset.is_multiple_of(8) { 0 } else { 32 };
        Ok((argument >> shift) as u32)
    }
}

/// What the program returns. Jumps lead forward only, so it ends.
fn run(program: &[Instruction], asked: &Asked) -> Result<u32, Verdict> {
    let mut machine = Machine {
        asked,
        a: 0,
        x: 0,
        memory: [0; SCRATCH],
    };
    let mut at = 0_usize;
    loop {
        let instruction = program.get(at).ok_or(Verdict::Unknown)?;
        match machine.step(instruction)? {
            Next::Return(value) => return Ok(value),
            Next::Skip(count) => at = at.saturating_add(1).saturating_add(count as usize),
        }
    }
}

enum Next {
    Return(u32),
    /// Goes on after this number of further instructions.
    Skip(u32),
}

struct Machine<'a> {
    asked: &'a Asked,
    a: u32,
    x: u32,
    memory: [u32; SCRATCH],
}

impl Machine<'_> {
    fn step(&mut self, instruction: &Instruction) -> Result<Next, Verdict> {
        /// Bytes of what a filter sees.
        const LENGTH: u32 = 64;
        let k = instruction.k;
        let place = |k: u32| Some(k as usize).filter(|at| *at < SCRATCH);
        let place = place(k).ok_or(Verdict::Unknown);
        match instruction.code {
            0x20 => self.a = self.asked.word(k)?,
            0x80 => self.a = LENGTH,
            0x81 => self.x = LENGTH,
            0x00 => self.a = k,
            0x01 => self.x = k,
            0x60 => self.a = self.memory[place?],
            0x61 => self.x = self.memory[place?],
            0x02 => self.memory[place?] = self.a,
            0x03 => self.memory[place?] = self.x,
            0x07 => self.x = self.a,
            0x87 => self.a = self.x,
            0x06 => return Ok(Next::Return(k)),
            0x16 => return Ok(Next::Return(self.a)),
            0x05 => return Ok(Next::Skip(k)),
            code if code & 7 == 4 => self.a = self.computed(code, k)?,
            code if code & 7 == 5 => {
                let skipped = match self.holds(code, k)? {
                    true => instruction.if_true,
                    false => instruction.if_false,
                };
                return Ok(Next::Skip(skipped.into()));
            }
            _ => return Err(Verdict::Unknown),
        }
        Ok(Next::Skip(0))
    }

    /// The other number of a computation or a comparison.
    fn other(&self, code: u16, k: u32) -> u32 {
        if code & 8 == 0 { k } else { self.x }
    }

    fn computed(&self, code: u16, k: u32) -> Result<u32, Verdict> {
        let (a, other) = (self.a, self.other(code, k));
        Ok(match code & !8 {
            0x04 => a.wrapping_add(other),
            0x14 => a.wrapping_sub(other),
            0x24 => a.wrapping_mul(other),
            // The kernel ends a program that divides by zero with 0, which kills.
            0x34 => a.checked_div(other).ok_or(Verdict::Kills)?,
            0x44 => a | other,
            0x54 => a & other,
            0x64 => a.wrapping_shl(other),
            0x74 => a.wrapping_shr(other),
            0x84 => a.wrapping_neg(),
            0xa4 => a ^ other,
            _ => return Err(Verdict::Unknown),
        })
    }

    fn holds(&self, code: u16, k: u32) -> Result<bool, Verdict> {
        let (a, other) = (self.a, self.other(code, k));
        Ok(match code & !8 {
            0x15 => a == other,
            0x25 => a > other,
            0x35 => a >= other,
            0x45 => a & other != 0,
            _ => return Err(Verdict::Unknown),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(number: u32, first: Option<u64>) -> Asked {
        let mut arguments = [Some(0); 6];
        arguments[0] = first;
        Asked { number, arguments }
    }

    fn line(code: u16, if_true: u8, if_false: u8, k: u32) -> Instruction {
        Instruction {
            code,
            if_true,
            if_false,
            k,
        }
    }

    /// Call 56 is allowed without these bits in its first argument; all others get `other`.
    fn masked(bits: u32, other: u32) -> Vec<Instruction> {
        vec![
            line(0x20, 0, 0, 4),
            line(0x15, 0, 5, ARCHITECTURE),
            line(0x20, 0, 0, 0),
            line(0x15, 0, 3, 56),
            line(0x20, 0, 0, 16),
            line(0x45, 1, 0, bits),
            line(0x06, 0, 0, ALLOW),
            line(0x06, 0, 0, other),
        ]
    }

    #[test]
    fn bits_of_an_argument_decide() {
        let filters = [masked(0x7e02_0000, ERRNO | 1)];
        let of = |number, first| verdict(&filters, &asked(number, first));
        assert_eq!(of(56, Some(0x3d_0f00)), Verdict::Allowed);
        assert_eq!(of(56, Some(0x1000_0000)), Verdict::Fails(1));
        assert_eq!(of(56, None), Verdict::Looks(1));
        assert_eq!(of(57, None), Verdict::Fails(1));
        // Its upper half is another word.
        assert_eq!(of(56, Some(0x1000_0000_0000_0000)), Verdict::Allowed);
    }

    #[test]
    fn the_strictest_filter_wins() {
        let returning = |value| vec![line(0x06, 0, 0, value)];
        let of = |values: &[u32]| {
            let filters: Vec<_> = values.iter().map(|value| returning(*value)).collect();
            verdict(&filters, &asked(0, None))
        };
        assert_eq!(of(&[]), Verdict::Allowed);
        assert_eq!(of(&[ALLOW, LOG]), Verdict::Allowed);
        assert_eq!(of(&[ERRNO | 38, ALLOW]), Verdict::Fails(38));
        assert_eq!(of(&[ALLOW, NOTIFY]), Verdict::AsksOther);
        assert_eq!(of(&[TRACE]), Verdict::Fails(38));
        // Kill the process, kill the thread, trap.
        for kill in [0x8000_0000, 0, 0x0003_0000] {
            assert_eq!(of(&[ALLOW, kill, ERRNO | 1]), Verdict::Kills, "{kill:#x}");
        }
        // What no kernel knows kills, too.
        assert_eq!(of(&[ALLOW, 0x1234_0000]), Verdict::Kills);
    }

    #[test]
    fn every_instruction_computes() {
        let result = |lines: &[Instruction]| run(lines, &asked(7, Some(u64::MAX)));
        let ret = line(0x16, 0, 0, 0);
        let two = |code, k| result(&[line(0x00, 0, 0, 12), line(code, 0, 0, k), ret]);
        let cases = [
            (0x04, 3, 15),
            (0x14, 3, 9),
            (0x24, 3, 36),
            (0x34, 5, 2),
            (0x44, 3, 15),
            (0x54, 4, 4),
            (0x64, 2, 48),
            (0x74, 2, 3),
            (0x84, 0, 12_u32.wrapping_neg()),
            (0xa4, 5, 9),
        ];
        for (code, k, expected) in cases {
            assert_eq!(two(code, k), Ok(expected), "{code:#x}");
            // The same with the other register.
            let lines = [
                line(0x01, 0, 0, k),
                line(0x00, 0, 0, 12),
                line(code | 8, 0, 0, 0),
                ret,
            ];
            assert_eq!(result(&lines), Ok(expected), "{code:#x} with X");
        }
        assert_eq!(two(0x34, 0), Err(Verdict::Kills));
        let kept = [
            line(0x00, 0, 0, 9),
            line(0x02, 0, 0, 15),
            line(0x80, 0, 0, 0),
            line(0x07, 0, 0, 0),
            line(0x61, 0, 0, 15),
            line(0x87, 0, 0, 0),
            ret,
        ];
        assert_eq!(result(&kept), Ok(9));
    }

    #[test]
    fn nonsense_ends() {
        let result = |lines: &[Instruction]| run(lines, &asked(7, None));
        for lines in [
            &[][..],
            &[line(0x05, 0, 0, u32::MAX)],
            &[line(0x15, 255, 255, 0)],
            &[line(0x60, 0, 0, 16)],
            &[line(0x20, 0, 0, 64)],
            &[line(0x20, 0, 0, 17)],
            // The address of the call.
            &[line(0x20, 0, 0, 8)],
            &[line(0xffff, 0, 0, 0)],
        ] {
            assert_eq!(result(lines), Err(Verdict::Unknown), "{lines:?}");
        }
    }
}
