//! C and C++ programs of tests: compiled against the header in the checkout and the built library.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ringmark_tests::binary::built;
use ringmark_tests::compiler::can_build;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::{run, workspace_root};

pub(crate) const LIMIT: Duration = Duration::from_secs(120);
/// What every build must bear.
const STRICT: &str = "-Wall -Wextra -Wpedantic -Werror -g";

/// A compiler of C and one of C++.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compiler {
    pub(crate) c: &'static str,
    pub(crate) cxx: &'static str,
}

impl Compiler {
    /// Its name for a language.
    pub(crate) fn of(self, is_cxx: bool) -> &'static str {
        if is_cxx { self.cxx } else { self.c }
    }
}

pub(crate) const GCC: Compiler = Compiler {
    c: "gcc",
    cxx: "g++",
};

/// The compilers that build programs here; gcc does.
pub(crate) fn compilers() -> Vec<Compiler> {
    let clang = Compiler {
        c: "clang",
        cxx: "clang++",
    };
    let builds = |clang: &Compiler| can_build(clang.c, "") && can_build(clang.cxx, "-x c++");
    let clang = Some(clang).filter(builds);
    [GCC].into_iter().chain(clang).collect()
}

/// The built library, and under the names that an installation gives it.
pub(crate) fn library_dir(fixture: &Fixture) -> PathBuf {
    let library = built("libringmark_c.so");
    let dir = fixture.path("lib");
    if std::fs::create_dir(&dir).is_ok() {
        for name in ["libringmark.so", "libringmark.so.0"] {
            std::os::unix::fs::symlink(&library, dir.join(name)).expect("a link");
        }
        let archive = library.with_extension("a");
        std::os::unix::fs::symlink(archive, dir.join("libringmark.a")).expect("a link");
    }
    dir
}

/// Compiles files of `tests/programs/c`; those that end in `.cc`, or all with `-x c++` in `flags`,
/// as C++17. They find the library of the fixture, wherever they lie.
pub(crate) fn compile(
    fixture: &Fixture,
    compiler: Compiler,
    sources: &str,
    flags: &str,
    output: &str,
) -> PathBuf {
    let libraries = library_dir(fixture);
    let is_cxx = sources.contains(".cc") || flags.contains("-x c++");
    let name = compiler.of(is_cxx);
    let standard = if is_cxx { "-std=c++17" } else { "-std=c11" };
    let root = workspace_root();
    let path = fixture.path(output);
    let mut command = Command::new(name);
    command.current_dir(root.join("tests/programs/c"));
    command.args(STRICT.split_whitespace()).arg(standard);
    command.arg("-I").arg(root.join("c-api/include"));
    command.args(flags.split_whitespace());
    command
        .args(sources.split_whitespace())
        .arg("-o")
        .arg(&path);
    command.arg("-L").arg(&libraries);
    command.arg(format!("-Wl,-rpath,{}", libraries.display()));
    command.args(["-lringmark", "-lpthread", "-ldl", "-lm"]);
    let _ = run(&mut command, LIMIT).expect(name).expect_code(0);
    path
}
