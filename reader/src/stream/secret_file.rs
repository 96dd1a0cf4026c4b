//! Files that hold a secret: a key, a token.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A file with a key, a certificate or a token cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct CredentialsError {
    path: PathBuf,
    what: String,
}

pub(super) fn wrong(path: &Path, what: impl ToString) -> CredentialsError {
    CredentialsError {
        path: path.to_owned(),
        what: what.to_string(),
    }
}

/// The content of a file that only its owner may read or write.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, CredentialsError> {
    let mut content = Vec::new();
    let mut file = File::open(path).map_err(|e| wrong(path, e))?;
    let about = file.metadata().map_err(|e| wrong(path, e))?;
    let mode = about.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        let text = format!("mode {mode:04o}: others may read it, expected 0600 (chmod 600)");
        return Err(wrong(path, text));
    }
    file.read_to_end(&mut content).map_err(|e| wrong(path, e))?;
    Ok(content)
}

/// A token: the first line of a file that only its owner may read or write.
///
/// # Errors
/// Others may, it cannot be read, or holds no token.
pub fn read_token(path: &Path) -> Result<String, CredentialsError> {
    let content = read(path)?;
    let text = String::from_utf8(content).map_err(|_| wrong(path, "is not text"))?;
    match text.lines().next().map(str::trim) {
        Some(token) if !token.is_empty() => Ok(token.to_owned()),
        _ => Err(wrong(path, "is empty, expected a token in its first line")),
    }
}
