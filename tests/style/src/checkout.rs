//! Where the checkout is.

use std::path::{Path, PathBuf};
use std::{env, fs};

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
