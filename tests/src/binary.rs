//! The programs that tests run: the `ringmark` binary of the code under test, the traced programs,
//! the shared objects. `./test build` builds them all, optimised, before the first test.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where they lie: `<target>/release`.
pub const BUILT: &str = env!("RINGMARK_BUILT");

/// The path of a traced program, as a constant.
#[macro_export]
macro_rules! program {
    ($name:literal) => {
        concat!(env!("RINGMARK_BUILT"), "/", $name)
    };
}

/// A command that runs the built `ringmark` binary, with every `RINGMARK*` variable of the
/// caller removed so that a test sees only what it sets itself.
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
#[must_use]
pub fn path() -> &'static Path {
    Path::new(program!("ringmark"))
}

/// The path of a built file below [`BUILT`]: a program, `libringmark_c.so`, `examples/emitter`.
///
/// # Panics
/// When it was not built: no test of it can mean anything then.
#[must_use]
pub fn built(file: &str) -> PathBuf {
    let path = Path::new(BUILT).join(file);
    assert!(
        path.exists(),
        "{} is not there: run ./test build",
        path.display()
    );
    path
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
