//! Which directory the demo indexes: the one that was asked for, or the first that has a file.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringmark_decoder::escape::Printable;

use ringmark_console::Failure;

/// Directories of most systems that have files, for a demo in an empty directory.
const OTHERS: [&str; 4] = ["/usr/share/doc", "/usr/lib", "/etc", "/usr"];
/// Most entries that are looked at in search of a file.
const LOOK_MAX: usize = 10_000;

/// Files that are read of one of these: it may have any number.
const OTHER_FILES: u64 = 1_000;

/// A directory, and why it is not the current one.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) path: PathBuf,
    pub(super) reason: Option<String>,
    /// Most files to read.
    pub(super) files_max: Option<u64>,
}

impl Chosen {
    fn here(path: PathBuf) -> Self {
        Self {
            path,
            reason: None,
            files_max: None,
        }
    }

    fn instead(path: PathBuf) -> Self {
        Self {
            reason: Some(format!(
                "The current directory has no files, so the job reads {OTHER_FILES} of {}.",
                path.display()
            )),
            path,
            files_max: Some(OTHER_FILES),
        }
    }
}

/// The directory that was asked for; without one the current directory, or another one if that has no
/// file.
///
/// # Errors
/// It is none, or cannot be read.
pub(super) fn chosen(asked: Option<PathBuf>) -> Result<Chosen, Failure> {
    let here = PathBuf::from(".");
    let is_asked = asked.is_some();
    let path = asked.unwrap_or(here);
    check(&path)?;
    if is_asked || has_file(&path) {
        return Ok(Chosen::here(path));
    }
    let other = OTHERS.iter().map(PathBuf::from).find(|dir| has_file(dir));
    Ok(other.map_or_else(|| Chosen::here(path), Chosen::instead))
}

/// A path, made safe for a terminal.
pub(super) fn shown(path: &Path) -> String {
    Printable(path.as_os_str().as_bytes()).to_string()
}

fn check(dir: &Path) -> Result<(), Failure> {
    let shown = shown(dir);
    match fs::metadata(dir) {
        Ok(about) if about.is_dir() => Ok(()),
        Ok(_) => Err(Failure::unreadable(format!(
            "{shown}: is no directory, expected one to index"
        ))),
        Err(error) => Err(Failure::unreadable(format!(
            "{shown}: cannot be indexed: {error}"
        ))),
    }
}

/// Whether there is a regular file below a directory, among the first entries.
fn has_file(dir: &Path) -> bool {
    let mut dirs = vec![dir.to_owned()];
    let mut looked = 0;
    while let Some(dir) = dirs.pop() {
        let Ok(entries) = fs::read_dir(&dir) else {
            continue;
        };
        for entry in entries.flatten() {
            looked += 1;
            match entry.file_type() {
                Ok(kind) if kind.is_file() => return true,
                Ok(kind) if kind.is_dir() => dirs.push(entry.path()),
                _ => {}
            }
            if looked >= LOOK_MAX {
                return false;
            }
        }
    }
    false
}
