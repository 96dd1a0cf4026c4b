//! The functions of a file, each judged.

use std::ops::Range;

use object::{Object, ObjectSection, ObjectSymbol};

use crate::file_error::FileError;
use crate::first_bytes::{Known, Movable, judge};
use crate::frames::Frames;
use crate::image::{Elf, Image};
use crate::instructions;
use crate::leads::Leads;
use crate::padding::Padding;
use crate::refusal::{LeadKind, Refusal};
use crate::return_address;
use crate::starts::Starts;

/// A function of a file, or a place that looks like one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Address in the file.
    pub at: u64,
    /// Bytes.
    pub size: u64,
    /// The names of its symbols, the plainest first; none: only the unwind table knows it.
    pub names: Vec<Vec<u8>>,
    /// Whether its return address must stay: its calls can be traced, their ends cannot.
    pub keeps_return_address: bool,
    /// Whether it has no name, and code only jumps to it: it may be a part of another function.
    pub may_be_part: bool,
    /// Its first instructions, or why it cannot be traced.
    pub judged: Result<Movable, Refusal>,
}

/// The functions of a program or shared object, by address. `debug`: the separate file with its symbols.
///
/// # Errors
/// It is none for this processor, or its functions must not be touched.
pub fn functions(file: &[u8], debug: Option<&[u8]>) -> Result<Vec<Function>, FileError> {
    let elf = parse(file)?;
    if is_go(&elf) {
        return Err(FileError::Go);
    }
    let debug = debug.and_then(|debug| parse(debug).ok());
    let image = Image::of(&elf);
    let frames = Frames::of(&elf, &image);
    let starts = Starts::of(&elf, debug.as_ref(), &image, &frames);
    let passed = instructions::pass(&image, &frames, &starts);
    let leads = Leads::of(&elf, &image, &frames, &starts, &passed);
    let mut padding = Padding::of(&image, &frames, &starts, &passed, &leads);
    let reading = return_address::read(&image, &frames, &passed);
    let keeps_all = has_own_stacks(&elf);
    let known_places = restartable(&elf, &image, &leads);
    let known = Known {
        image: &image,
        frames: &frames,
        leads: &leads,
        starts: &starts,
        known_places: &known_places,
    };
    let judged = starts.functions.iter().map(|(at, start)| Function {
        at: *at,
        size: start.end - at,
        names: start.names.clone(),
        keeps_return_address: keeps_all || reading.contains(at),
        may_be_part: start.names.is_empty() && is_only_jumped_to(&leads, *at),
        judged: judge(&known, *at, start, &mut padding),
    });
    Ok(judged.collect())
}

/// The build id of a program or shared object; empty where it has none.
#[must_use]
pub fn build_id(file: &[u8]) -> &[u8] {
    let elf = parse(file).ok();
    let build_id = elf.and_then(|elf| elf.build_id().ok().flatten());
    build_id.unwrap_or_default()
}

fn parse(file: &[u8]) -> Result<Elf<'_>, FileError> {
    let elf = Elf::parse(file).map_err(|error| FileError::NotElf(error.to_string()))?;
    match elf.architecture() {
        object::Architecture::X86_64 => Ok(elf),
        other => Err(FileError::NotElf(format!("found {other:?}"))),
    }
}

fn is_only_jumped_to(leads: &Leads, at: u64) -> bool {
    let leads = leads.into(at..at.saturating_add(1));
    !leads.is_empty() && leads.iter().all(|lead| lead.kind == LeadKind::Jump)
}

fn is_go(elf: &Elf<'_>) -> bool {
    elf.sections().any(|section| {
        let name = section.name_bytes().unwrap_or_default();
        name == b".gopclntab" || name == b".note.go.buildid"
    })
}

/// Whether it is a program of a language, or a runtime, that unwinds or moves stacks by itself: OCaml, GHC,
/// a JVM, V8.
fn has_own_stacks(elf: &Elf<'_>) -> bool {
    const TELLING: [&[u8]; 4] = [
        b"caml_startup",
        b"stg_BLACKHOLE_info",
        b"JNI_CreateJavaVM",
        b"_ZN2v87Isolate3NewERKNS0_12CreateParamsE",
    ];
    let mut symbols = elf.symbols().chain(elf.dynamic_symbols());
    symbols.any(|symbol| {
        let is_telling = |name| TELLING.contains(&name);
        symbol.is_definition() && symbol.name_bytes().is_ok_and(is_telling)
    })
}

/// Restartable sequences: the kernel compares a thread's place with theirs. Each has a description of four
/// words, whose second leads to its beginning and whose third is its length.
fn restartable(elf: &Elf<'_>, image: &Image<'_>, leads: &Leads) -> Vec<Range<u64>> {
    let section = elf.section_by_name("__rseq_cs");
    let bytes = section.as_ref().and_then(|section| section.data().ok());
    let count = bytes.unwrap_or_default().len() / DESCRIPTION_BYTES;
    let at = section.map_or(0, |section| section.address());
    let sequence = |n: usize| {
        let description = at.checked_add((n * DESCRIPTION_BYTES) as u64)?;
        let pointer = description.checked_add(8)?;
        let start = leads.pointer_at(pointer).or_else(|| image.word(pointer))?;
        let length = image.word(description.checked_add(16)?)?;
        Some(start..start.saturating_add(length))
    };
    (0..count).filter_map(sequence).collect()
}

/// Bytes of the description of a restartable sequence.
const DESCRIPTION_BYTES: usize = 32;
