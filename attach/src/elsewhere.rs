//! Processors for which no code is known that a target could run: each load is refused.

use std::path::Path;

use crate::error::LoadError;
use crate::jump::{Jump, PutJumps};
use crate::loaded::Loaded;
use crate::options::Options;

/// Refuses to load `library` into the process `pid`.
///
/// # Errors
/// Always: nothing is loaded on this processor.
pub fn load(pid: i32, _library: &Path, _options: &Options<'_>) -> Result<Loaded, LoadError> {
    Err(refused(pid))
}

/// Says that no library could be loaded into the process `pid`.
///
/// # Errors
/// Always: nothing is loaded on this processor.
pub fn examine(pid: i32, _library: &Path, _options: &Options<'_>) -> Result<(), LoadError> {
    Err(refused(pid))
}

/// Refuses to put jumps into the process `pid`.
///
/// # Errors
/// Always: no jump of another processor is put there.
pub fn put_jumps(pid: i32, _jumps: &[Jump]) -> Result<PutJumps, LoadError> {
    Err(refused(pid))
}

fn refused(pid: i32) -> LoadError {
    LoadError::Unsuitable {
        pid,
        reason: "a library can be loaded into a running program on x86-64 only, and this is another processor; \
                 have the program load it when it starts",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_loaded() {
        let library = Path::new("/nowhere/lib.so");
        let error = load(1, library, &Options::default()).unwrap_err();
        assert!(error.to_string().contains("pid 1: "), "{error}");
        assert!(error.to_string().contains("x86-64 only"), "{error}");
        assert!(examine(1, library, &Options::default()).is_err());
    }
}
