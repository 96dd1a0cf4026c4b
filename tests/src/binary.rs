//! Finds the `ringmark` binary that belongs to the code under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, process};

use crate::dirs::workspace_root;

/// A command that runs the built `ringmark` binary, with every `RINGMARK*` variable of the
/// caller removed so that a test sees only what it sets itself.
///
/// The binary is `$RINGMARK_BIN` where that is set; otherwise Cargo brings the one of this test's
/// own profile and target directory up to date, once per test process.
///
/// # Panics
/// When the binary cannot be built: no test of it can mean anything then.
#[must_use]
pub fn ringmark() -> Command {
    let mut command = Command::new(path());
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("RINGMARK") {
            command.env_remove(name);
        }
    }
    command
}

/// The path of that binary.
///
/// # Panics
/// As [`ringmark()`].
#[must_use]
pub fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| match env::var_os("RINGMARK_BIN") {
        Some(path) => PathBuf::from(path),
        None => build(),
    })
}

fn build() -> PathBuf {
    let bins = [
        "--bin",
        "ringmark",
        "--bin",
        "ringmark-stream",
        "--bin",
        "ringmark-reference",
    ];
    build_with(&[&["--workspace"][..], &bins].concat(), "ringmark")
}

/// The program `name` of a package that other tests do not need: Cargo builds it, for this test's
/// own profile and target directory.
///
/// # Panics
/// When it cannot be built.
#[must_use]
pub fn built(package: &str, name: &str) -> PathBuf {
    build_with(&["--package", package, "--bin", name], name)
}

/// An example of a package, built in the same way.
///
/// # Panics
/// When it cannot be built.
#[must_use]
pub fn built_example(package: &str, name: &str) -> PathBuf {
    let file = format!("examples/{name}");
    build_with(&["--package", package, "--example", name], &file)
}

/// The same with features of that package.
///
/// # Panics
/// When it cannot be built.
#[must_use]
pub fn built_with(package: &str, name: &str, features: &str) -> PathBuf {
    let what = ["--package", package, "--bin", name, "--features", features];
    build_with(&what, name)
}

/// The shared object `file` of a package, built in the same way.
///
/// # Panics
/// When it cannot be built.
#[must_use]
pub fn built_library(package: &str, file: &str) -> PathBuf {
    build_with(&["--package", package, "--lib"], file)
}

/// A program of a package, whose own code Cargo builds with these flags for the compiler.
///
/// # Panics
/// When it cannot be built.
#[must_use]
pub fn built_as(package: &str, name: &str, flags: &[&str]) -> PathBuf {
    let what = ["--package", package, "--bin", name];
    cargo("rustc", &what, flags, name)
}

fn build_with(what: &[&str], name: &str) -> PathBuf {
    cargo("build", what, &[], name)
}

fn cargo(verb: &str, what: &[&str], flags: &[&str], name: &str) -> PathBuf {
    let profile_dir = profile_dir();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace_root());
    forget_this_package(&mut command);
    command.args([verb, "--quiet"]).args(what);
    if profile_dir.ends_with("release") {
        command.arg("--release");
    }
    if let Some(target) = profile_dir.parent() {
        command.arg("--target-dir").arg(target);
    }
    if !flags.is_empty() {
        command.arg("--").args(flags);
    }
    let output = command.output().expect("cargo starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cannot build {name}:\n{errors}");
    profile_dir.join(name)
}

/// Removes what Cargo tells this test of its own package from the environment of `command`. It is no
/// news for build scripts: some would be run anew, and all that stands on them be built anew.
pub fn forget_this_package(command: &mut Command) {
    let prefixes = ["CARGO_PKG_", "CARGO_MANIFEST_"];
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if prefixes.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
}

/// `<target>/debug` or `<target>/release`: the test itself lies in its `deps` directory.
fn profile_dir() -> PathBuf {
    let exe = env::current_exe().expect("a running program has a path");
    let deps = exe.parent().expect("a file has a directory");
    match deps.parent() {
        Some(profile) if deps.ends_with("deps") => profile.to_path_buf(),
        _ => panic!(
            "process {}: {} is not below a Cargo target directory; set RINGMARK_BIN",
            process::id(),
            exe.display()
        ),
    }
}
