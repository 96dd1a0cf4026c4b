//! Says what `--version` prints: the version, and the commit where one is known. A build of every day knows none, so
//! that a commit alone builds nothing anew: what makes a release sets `RINGMARK_COMMIT`, and a crate of the registry
//! has the commit that `cargo package` noted.
#![forbid(unsafe_code)]

use std::path::Path;
use std::{env, fs};

/// Digits of a commit that are shown.
const SHOWN: usize = 12;

fn main() {
    let noted = Path::new(&env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default())
        .join(".cargo_vcs_info.json");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RINGMARK_COMMIT");
    if noted.exists() {
        println!("cargo::rerun-if-changed={}", noted.display());
    }
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let said = match given().or_else(|| packed(&fs::read_to_string(noted).ok()?)) {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    println!("cargo::rustc-env=RINGMARK_VERSION={said}");
}

fn given() -> Option<String> {
    let commit = env::var("RINGMARK_COMMIT").ok()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '+';
    (!commit.is_empty() && commit.chars().all(is_plain)).then_some(commit)
}

/// The commit in `{"git":{"sha1":"…"}}`.
fn packed(noted: &str) -> Option<String> {
    let after = noted.split_once("\"sha1\"")?.1.split('"').nth(1)?;
    let commit = after.get(..SHOWN)?;
    let is_hex = commit.chars().all(|c| c.is_ascii_hexdigit());
    is_hex.then(|| commit.to_owned())
}
