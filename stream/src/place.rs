//! Whether directories and files can be made where options name them, without making them.

use std::path::Path;

use ringmark_console::Failure;
use rustix::fs::{Access, access};

/// Checks that a directory is there and may be written, or can be made where it is to be.
///
/// # Errors
/// It cannot be used.
pub(crate) fn check_directory(path: &Path) -> Result<(), Failure> {
    match path.metadata() {
        Ok(about) if !about.is_dir() => {
            let text = format!("{}: found no directory, expected one", path.display());
            Err(Failure::usage(text))
        }
        Ok(_) => check_writable(path),
        Err(_) => check_above(path),
    }
}

/// Checks that something can be made in the directory that a path names.
///
/// # Errors
/// The directory is not there, or may not be written.
pub(crate) fn check_above(path: &Path) -> Result<(), Failure> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    check_writable(above.unwrap_or(Path::new(".")))
}

fn check_writable(directory: &Path) -> Result<(), Failure> {
    let checked = access(directory, Access::WRITE_OK | Access::EXEC_OK);
    checked.map_err(|error| {
        let (directory, error) = (directory.display(), std::io::Error::from(error));
        Failure::usage(format!("{directory}: {error}"))
    })
}
