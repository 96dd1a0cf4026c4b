//! Where the loader tells debuggers what it does: the structure `r_debug`, and the empty function
//! that it calls after each change of it. The program's own table of dynamic entries leads there.

use super::loader::{self, Held, Loaded, Segment};
use super::module::{Function, Module, ModuleId, Site, SiteId, SiteKind};
use crate::arch::{self, CODE_BYTES_MAX, UnfitCode};

const PT_DYNAMIC: u64 = 2;
const DT_DEBUG: u64 = 21;
/// Bytes of `r_debug`: version, list of modules, function, state, the loader's base.
const BYTES: usize = 40;
const FUNCTION_AT: usize = 16;
const STATE_AT: u64 = 24;

/// What `r_debug` leads to.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    /// The loader, with the return of its function as the one patch site.
    pub(crate) loader: Module,
    /// Address of the word that says what the loader does.
    pub(crate) state_at: u64,
}

/// Why it is not known when the loader has mapped a module.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum NoRendezvous {
    /// A static program, or a loader that fills in nothing.
    #[error("the program has no loader that reports to debuggers")]
    NotTold,
    /// The loader of another C library, whose list cannot be read while it reports.
    #[error("this C library's loader is locked while it reports to debuggers")]
    Locked,
    /// The function is not as the C library has it.
    #[error("the loader's function for debuggers: {0}")]
    Code(#[from] UnfitCode),
}

/// Finds it.
pub(crate) fn find() -> Result<Rendezvous, NoRendezvous> {
    if !cfg!(target_env = "gnu") {
        return Err(NoRendezvous::Locked);
    }
    let (modules, counts) = loader::list();
    let look = |held: &Held<'_>| (held.counts == counts).then(|| look(held, &modules));
    let found = loader::hold(look).flatten();
    found.unwrap_or(Err(NoRendezvous::NotTold))
}

fn look(held: &Held<'_>, modules: &[Loaded]) -> Result<Rendezvous, NoRendezvous> {
    let at = modules.first().and_then(|program| entry(held, program));
    let at = at.filter(|at| *at != 0).ok_or(NoRendezvous::NotTold)?;
    let structure = modules
        .iter()
        .find_map(|module| held.read(&module.segments, at, BYTES));
    let function = structure.and_then(|bytes| word(&bytes, FUNCTION_AT));
    let function = function.ok_or(NoRendezvous::NotTold)?;
    let is_code = |segment: &Segment| segment.is_executable && segment.holds(function, 1);
    let loader = modules.iter().find(|m| m.segments.iter().any(is_code));
    let loader = loader.ok_or(NoRendezvous::NotTold)?;
    let code = held.read(&loader.segments, function, CODE_BYTES_MAX);
    let (offset, form) = arch::read_empty_function(&code.unwrap_or_default(), function)?;
    let site = Site {
        id: SiteId(0),
        address: function + offset,
        kind: SiteKind::Exit,
        function: 0,
        form,
    };
    Ok(Rendezvous {
        loader: module(loader, function, site),
        state_at: at + STATE_AT,
    })
}

/// The value of the program's entry for debuggers.
fn entry(held: &Held<'_>, program: &Loaded) -> Option<u64> {
    let mut headers = program.headers.iter();
    let [_, _, address, bytes] = headers.find(|header| header[0] >> 32 == PT_DYNAMIC)?;
    let at = program.base.wrapping_add(*address);
    let entries = held.read(&program.segments, at, usize::try_from(*bytes).ok()?)?;
    let mut entries = entries.chunks_exact(16);
    entries.find_map(|entry| (word(entry, 0)? == DT_DEBUG).then(|| word(entry, 8))?)
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at + 8)?.try_into().ok()?;
    Some(u64::from_le_bytes(word))
}

/// The loader as a module with one site, which no list holds: its numbers say nothing.
fn module(loader: &Loaded, function: u64, site: Site) -> Module {
    let function = Function {
        address: function,
        size: 0,
        symbol: b"_dl_debug_state"[..].into(),
        has_exits: true,
        hands_on: false,
    };
    Module {
        id: ModuleId(u32::MAX),
        path: loader.name.clone(),
        base: loader.base,
        build_id: Vec::new(),
        functions: vec![function],
        sites: vec![site],
        refused: Vec::new(),
        moved: Vec::new(),
        is_program: false,
        is_beside_sites: false,
        segments: loader.segments.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loader of this program, which the C library's maker built.
    #[test]
    fn the_loaders_function_is_found() {
        let found = find().expect("it tells");
        let site = &found.loader.sites[0];
        let name = found.loader.path.to_string_lossy().into_owned();
        assert!(name.contains("ld"), "{name}");
        assert!(found.loader.range().contains(&site.address));
        assert!(site.address - found.loader.functions[0].address <= 4);
        assert_eq!(found.state_at % 4, 0);
    }
}
