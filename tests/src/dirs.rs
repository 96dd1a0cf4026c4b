//! Where tests read the repository and where they may write.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, process};

/// The root of the checkout: the directory whose `Cargo.toml` declares the workspace.
///
/// Cargo's variable of the running test goes first: a test that was built elsewhere, in a
/// target directory shared between checkouts, still looks at the checkout it runs for.
///
/// # Panics
/// When no directory above is a workspace.
#[must_use]
pub fn workspace_root() -> PathBuf {
    let built_in = env!("CARGO_MANIFEST_DIR");
    let here = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| built_in.into());
    let root = Path::new(&here).ancestors().find(|dir| is_workspace(dir));
    root.expect("tests lie in a workspace").to_path_buf()
}

fn is_workspace(dir: &Path) -> bool {
    let manifest = fs::read_to_string(dir.join("Cargo.toml"));
    manifest.is_ok_and(|text| text.lines().any(|line| line == "[workspace]"))
}

/// A fresh directory in memory (`/dev/shm` where it can be written, else the system's temporary
/// directory), mode as the umask says, removed with everything in it when dropped.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    /// Creates `ringmark-test-<pid>-<n>-<label>`.
    ///
    /// # Errors
    /// When neither `/dev/shm` nor the temporary directory can be written.
    pub fn new(label: &str) -> io::Result<Self> {
        Self::new_in(Path::new("/dev/shm"), label)
            .or_else(|_| Self::new_in(&env::temp_dir(), label))
    }

    /// Creates the directory below `parent`, for tests that need a disk or a mount of their own.
    ///
    /// # Errors
    /// When `parent` cannot be written.
    pub fn new_in(parent: &Path, label: &str) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("ringmark-test-{}-{number}-{label}", process::id()));
        fs::create_dir(&path)?;
        Ok(Self { path })
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Deref for TempDir {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // A test that failed has more to say than a directory that could not be removed.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_directories_differ_and_vanish() {
        let (a, b) = (TempDir::new("x").unwrap(), TempDir::new("x").unwrap());
        assert_ne!(a.path(), b.path());
        fs::write(a.join("file"), b"content").unwrap();
        let gone = a.path().to_path_buf();
        drop(a);
        assert!(!gone.exists());
        assert!(b.exists());
    }

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(workspace_root().join("Cargo.toml").exists());
    }
}
