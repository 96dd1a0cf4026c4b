//! The separate file with the symbols of a stripped program. It is found as debuggers find it, by
//! build id or by the name in `.gnu_debuglink`.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol, ReadCache};

use super::symbol::{self, Elf, Symbol};

/// Where distributions install debug files.
const DEBUG: &str = "/usr/lib/debug";

/// Functions in the debug file of a stripped program; none without such a file, or with that of
/// another build.
pub(super) fn functions(path: &Path, elf: &Elf<'_>) -> Vec<Symbol> {
    let build_id = elf.build_id().ok().flatten();
    let is_stripped = elf.symbols().all(|symbol| !symbol.is_definition());
    let candidates = if is_stripped {
        places(path, elf, build_id)
    } else {
        Vec::new()
    };
    let read = |path: &PathBuf| {
        let file = File::open(path).ok()?;
        let cache = ReadCache::new(file.try_clone().ok()?);
        let debug = Elf::parse(&cache).ok()?;
        let is_its_own = debug.build_id().ok().flatten() == build_id;
        is_its_own.then(|| symbol::functions(&debug, &file))
    };
    candidates.iter().find_map(read).unwrap_or_default()
}

/// The path of the debug file of a stripped program or shared object, if it has one of its build.
#[must_use]
pub fn debug_file(path: &Path) -> Option<PathBuf> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let elf = Elf::parse(&cache).ok()?;
    match elf.symbols().any(|symbol| symbol.is_definition()) {
        true => None,
        false => separate_file(path),
    }
}

/// The path of the file with what was stripped from a program or shared object, whatever that was.
#[must_use]
pub fn separate_file(path: &Path) -> Option<PathBuf> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let elf = Elf::parse(&cache).ok()?;
    let build_id = elf.build_id().ok().flatten();
    places(path, &elf, build_id).into_iter().find(|place| {
        let Ok(file) = File::open(place) else {
            return false;
        };
        let cache = ReadCache::new(file);
        Elf::parse(&cache).is_ok_and(|debug| debug.build_id().ok().flatten() == build_id)
    })
}

/// Paths at which the debug file may be.
fn places(path: &Path, elf: &Elf<'_>, build_id: Option<&[u8]>) -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Some([first, rest @ ..]) = build_id {
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        places.push(PathBuf::from(format!(
            "{DEBUG}/.build-id/{first:02x}/{rest}.debug"
        )));
    }
    // A name leads to a file of this build only where a build id says so.
    let link = elf
        .gnu_debuglink()
        .ok()
        .flatten()
        .filter(|_| build_id.is_some());
    if let Some((name, _)) = link
        && let Ok(path) = fs::canonicalize(path)
        && let Some(directory) = path.parent()
    {
        let name = Path::new(std::ffi::OsStr::from_bytes(name));
        let name = name.file_name().unwrap_or_default();
        let below = directory.strip_prefix("/").unwrap_or(directory);
        let directories = [
            directory.to_owned(),
            directory.join(".debug"),
            Path::new(DEBUG).join(below),
        ];
        places.extend(directories.map(|directory| directory.join(name)));
    }
    places
}
