//! The names of functions that ask who called them, and whether a module's data hold one.

use std::fs::File;
use std::os::unix::fs::FileExt;

use object::{Object, ObjectSection, SectionKind};

/// Functions of C libraries that look at their return address.
pub(super) const ASKING: [&[u8]; 5] = [
    b"dlopen",
    b"dlmopen",
    b"dlsym",
    b"dlvsym",
    b"dl_iterate_phdr",
];

/// Bytes of a file that are read at once.
pub(super) const PIECE_BYTES: u64 = 1 << 20;
/// Bytes of the longest name in [`ASKING`] with its end.
const NAME_BYTES_MAX: u64 = 16;

/// Whether the module's data hold the name of a function that asks, as an argument of `dlsym`.
pub(super) fn names_one<'a>(elf: &impl Object<'a>, file: &File) -> bool {
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
                ringmark::__private::helper::working();
                holds_name(&read(file, offset + from, PIECE_BYTES.min(length - from)))
            })
        })
}

/// Whether `bytes` hold such a name. A linker keeps one text for two where one is the other's end,
/// so the byte before the name does not matter.
fn holds_name(bytes: &[u8]) -> bool {
    bytes
        .split(|byte| *byte == 0)
        .rev()
        .skip(1) // The last text has no end.
        .any(|text| ASKING.iter().any(|name| text.ends_with(name)))
}

/// Reads a piece of a file; empty where it cannot be read.
pub(super) fn read(file: &File, offset: u64, length: u64) -> Vec<u8> {
    let mut bytes = vec![0; length as usize];
    match file.read_exact_at(&mut bytes, offset) {
        Ok(()) => bytes,
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_as_a_whole_text_or_its_end() {
        for held in [&b"dlopen\0"[..], b"a\0dlsym\0b", b"\0my_dlopen\0"] {
            assert!(holds_name(held), "{held:?}");
        }
        for other in [&b"dlopen"[..], b"dlopen_it\0", b"\0\0", b""] {
            assert!(!holds_name(other), "{other:?}");
        }
    }
}
