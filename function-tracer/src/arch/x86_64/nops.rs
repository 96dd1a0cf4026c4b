//! Instructions that do nothing.

/// `test eax, imm32`: five bytes that do nothing, whatever the last four are.
pub(super) const TEST: u8 = 0xa9;

/// A NOP instruction and its length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nop {
    pub(super) length: usize,
    /// Index of the first byte of the operand, which may change byte by byte while the instruction
    /// is executed: a NOP accesses no address. The length of a NOP without an operand.
    pub(super) free_from: usize,
}

/// The NOP at the start of `code`, in the forms that assemblers write.
pub(super) fn first(code: &[u8]) -> Option<Nop> {
    let is_prefix = |byte: &&u8| matches!(**byte, 0x66 | 0x2e);
    let prefixes = code.iter().take_while(is_prefix).count();
    let (length, free_from) = match code[prefixes..] {
        [0x90, ..] => (prefixes + 1, prefixes + 1),
        [0x0f, 0x1f, modrm, ref operand @ ..] if modrm & 0x38 == 0 => {
            let operand = operand_length(modrm, operand.first().copied())?;
            let length = prefixes + 3 + operand;
            // Without a displacement the SIB byte decides the length.
            let is_free = modrm >> 6 != 0;
            (length, if is_free { prefixes + 3 } else { length })
        }
        _ => return None,
    };
    let is_whole = length <= code.len().min(15);
    is_whole.then_some(Nop { length, free_from })
}

/// Bytes after the ModRM byte.
fn operand_length(modrm: u8, sib: Option<u8>) -> Option<usize> {
    let (mode, register) = (modrm >> 6, modrm & 7);
    let sib_length = usize::from(mode != 3 && register == 4);
    let base = if sib_length == 1 { sib? & 7 } else { register };
    let displacement = match mode {
        0 if base == 5 => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    Some(sib_length + displacement)
}

/// A NOP of `length` bytes, 1 to 6.
pub(super) fn of(length: usize) -> &'static [u8] {
    const NOPS: [&[u8]; 7] = [
        &[],
        &[0x90],
        &[0x66, 0x90],
        &[0x0f, 0x1f, 0x00],
        &[0x0f, 0x1f, 0x40, 0x00],
        &[0x0f, 0x1f, 0x44, 0x00, 0x00],
        &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
    ];
    NOPS[length.min(6)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_processor() {
        let known: [&[u8]; 13] = [
            &[0x90],
            &[0x66, 0x90],
            &[0x0f, 0x1f, 0x00],
            &[0x0f, 0x1f, 0x40, 0x08],
            &[0x0f, 0x1f, 0x44, 0x00, 0x08],
            &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x08],
            &[0x0f, 0x1f, 0x80, 0x00, 0x02, 0x00, 0x00],
            &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00],
            &[0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00],
            &[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00],
            &[0x66, 0x66, 0x66, 0x66, 0x90],
            &[0x0f, 0x1f, 0x05, 1, 2, 3, 4],
            &[0x0f, 0x1f, 0x04, 0x25, 1, 2, 3, 4],
        ];
        for nop in known {
            let long = [nop, &[0xc3; 16]].concat();
            assert_eq!(
                first(&long).map(|nop| nop.length),
                Some(nop.len()),
                "{nop:x?}"
            );
            assert_eq!(first(&nop[..nop.len() - 1]), None, "cut {nop:x?}");
        }
        for length in 1..=6 {
            assert_eq!(first(of(length)).map(|nop| nop.length), Some(length));
        }
    }

    #[test]
    fn other_instructions_are_none() {
        for code in [
            &[0xf3, 0x90][..],
            &[0xc3],
            &[0x0f, 0x1e, 0xfa],
            &[0x0f, 0x1f, 0x48, 0],
        ] {
            assert_eq!(first(code), None, "{code:x?}");
        }
    }
}
