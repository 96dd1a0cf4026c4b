//! Where code stands in the source: the line tables that compilers write (`-g`), in a program's file or in the separate
//! file with what was stripped from it.

use std::borrow::Cow;

use gimli::{AttributeValue, Dwarf, EndianSlice, LineRow, LittleEndian, SectionId, Unit};
use object::{Object, ObjectSection};

use crate::image::Elf;

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// Its path, as the compiler was given it: of the directory in which it ran, if that is not absolute.
    pub path: String,
    /// Its number, from 1.
    pub line: u32,
}

type Bytes<'f> = EndianSlice<'f, LittleEndian>;

/// The lines of code at these addresses of a file, in their order; `None`: no table has it. `debug`: the separate file
/// of the same build.
#[must_use]
pub fn source_lines(
    file: &[u8],
    debug: Option<&[u8]>,
    addresses: &[u64],
) -> Vec<Option<SourceLine>> {
    let mut found = vec![None; addresses.len()];
    let with_lines = [Some(file), debug].into_iter().flatten().find_map(|file| {
        let elf = Elf::parse(file).ok()?;
        elf.section_by_name(".debug_line").is_some().then_some(elf)
    });
    if let Some(elf) = with_lines {
        let mut wanted: Vec<_> = addresses.iter().copied().zip(0..).collect();
        wanted.sort_unstable();
        // A damaged table ends the search; what was found stays.
        let _ = find(&elf, &wanted, &mut found);
    }
    found
}

fn find(
    elf: &Elf<'_>,
    wanted: &[(u64, usize)],
    found: &mut [Option<SourceLine>],
) -> gimli::Result<()> {
    let section = |id: SectionId| -> gimli::Result<Cow<'_, [u8]>> {
        let section = elf.section_by_name(id.name());
        let bytes = section.and_then(|section| section.uncompressed_data().ok());
        Ok(bytes.unwrap_or_default())
    };
    let sections = gimli::DwarfSections::load(section)?;
    let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        let unit = dwarf.unit(header)?;
        find_in(&dwarf, &unit, wanted, found)?;
    }
    Ok(())
}

/// The rows of one unit: each is of the code from its address up to that of the next one.
fn find_in(
    dwarf: &Dwarf<Bytes<'_>>,
    unit: &Unit<Bytes<'_>>,
    wanted: &[(u64, usize)],
    found: &mut [Option<SourceLine>],
) -> gimli::Result<()> {
    let Some(program) = unit.line_program.clone() else {
        return Ok(());
    };
    let mut rows = program.rows();
    let mut before: Option<LineRow> = None;
    while let Some((_, row)) = rows.next_row()? {
        let row = *row;
        if let Some(before) = before.filter(|before| before.address() != 0) {
            let from = wanted.partition_point(|(at, _)| *at < before.address());
            let inside = wanted[from..].iter();
            for (_, place) in inside.take_while(|(at, _)| *at < row.address()) {
                found[*place] = line_of(dwarf, unit, &before);
            }
        }
        before = (!row.end_sequence()).then_some(row);
    }
    Ok(())
}

fn line_of(dwarf: &Dwarf<Bytes<'_>>, unit: &Unit<Bytes<'_>>, row: &LineRow) -> Option<SourceLine> {
    let header = unit.line_program.as_ref()?.header();
    let file = row.file(header)?;
    let text = |value: AttributeValue<Bytes<'_>>| -> Option<String> {
        let text = dwarf.attr_string(unit, value).ok()?;
        Some(String::from_utf8_lossy(text.slice()).into_owned())
    };
    let mut path = unit.comp_dir.map_or(String::new(), |directory| {
        String::from_utf8_lossy(directory.slice()).into_owned()
    });
    // Number 0 is the directory in which the compiler ran.
    if file.directory_index() != 0
        && let Some(directory) = file.directory(header).and_then(text)
    {
        push(&mut path, &directory);
    }
    push(&mut path, &text(file.path_name())?);
    let line = row.line()?.get();
    let line = u32::try_from(line).ok()?;
    Some(SourceLine { path, line })
}

/// Goes on from a path to another one, which counts alone if it is absolute.
fn push(path: &mut String, next: &str) {
    if next.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(next);
}
