//! Small files that readers see as a whole: replaced, never written in place.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Replaces the file at `path`. The new one is made next to it with the extension `new`, which no reader
/// looks at. The directory may be another user's, so no link is followed.
///
/// # Errors
/// The new file cannot be made, written or renamed.
pub fn replace(path: &Path, new: &str, content: impl AsRef<[u8]>) -> io::Result<()> {
    let new = path.with_extension(new);
    let _ = fs::remove_file(&new);
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o644);
    options.open(&new)?.write_all(content.as_ref())?;
    fs::rename(&new, path)
}
