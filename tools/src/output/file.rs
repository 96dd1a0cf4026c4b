//! Where dumps go and come from: `-`, the default file, the file that was there before.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use ringmark_reader::Destination;

use super::Failure;

/// The dump that every command means when none is named.
pub(crate) const DEFAULT_FILE: &str = "ringmark.rmk";

/// Whether a path means standard input or output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A place for a new dump. A file that is there becomes `.old`, unless it is empty: that one would
/// only replace an older dump.
///
/// # Errors
/// It is a directory, a terminal, or cannot be renamed.
pub(crate) fn destination(path: &Path) -> anyhow::Result<Destination> {
    if is_standard(path) {
        if io::stdout().is_terminal() {
            let text = "standard output is a terminal, expected a file or a pipe for the dump";
            return Err(Failure::usage(text).into());
        }
        return Ok(Destination::Stdout);
    }
    let shown = path.display();
    match fs::symlink_metadata(path) {
        Ok(about) if about.is_dir() => {
            return Err(Failure::usage(format!(
                "{shown}: is a directory, expected a file to write the dump to"
            ))
            .into());
        }
        Ok(about) if about.is_file() && about.len() > 0 => keep_old(path)?,
        _ => {}
    }
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    if let Some(parent) = parent.filter(|p| !p.is_dir()) {
        return Err(Failure::usage(format!(
            "{shown}: no directory {} to write the dump to",
            parent.display()
        ))
        .into());
    }
    Ok(Destination::File(path.to_owned()))
}

fn keep_old(path: &Path) -> anyhow::Result<()> {
    let mut old = path.as_os_str().to_owned();
    old.push(".old");
    let old = PathBuf::from(old);
    fs::rename(path, &old).map_err(|error| {
        Failure::usage(format!(
            "{}: cannot be renamed to {}: {error}",
            path.display(),
            old.display()
        ))
        .into()
    })
}
