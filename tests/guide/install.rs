//! Promise: `./install PREFIX` installs all of Ringmark, and what it installed works from there: C programs
//! are built against it with pkg-config and with CMake, and the command traces them and functions.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ringmark_tests::binary::{self, BUILT};
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{self, LIMIT, SITES};
use ringmark_tests::{Finished, require_tools, run, workspace_root};

const CMAKE_LISTS: &str = "\
cmake_minimum_required(VERSION 3.13)
project(hello C)
find_package(ringmark 0.1.0 REQUIRED)
add_executable(hello hello.c)
target_link_libraries(hello PRIVATE ringmark::ringmark)
";

/// Lines of `ringmark cat` about what `c-api/examples/hello.c` records.
const HELLO_LINES: usize = 26;

/// Files below the prefix, and what each says where the prefix is `/opt/ringmark`.
const TEXTS: &[(&str, &str)] = &[
    ("lib/pkgconfig/ringmark.pc", "prefix=/opt/ringmark\n"),
    (
        "lib/cmake/ringmark/ringmark-config.cmake",
        "ringmark::ringmark",
    ),
    ("lib/cmake/ringmark/ringmark-config-version.cmake", "0.1.0"),
    (
        "lib/systemd/system/ringmark-collector.service",
        "ExecStart=/opt/ringmark/bin/ringmark ",
    ),
    (
        "lib/systemd/system/ringmark-streamer.service",
        "ExecStart=/opt/ringmark/bin/ringmark ",
    ),
    ("share/man/man1/ringmark.1", ".TH"),
    ("share/man/man1/ringmark-record.1", "\\-on\\-death"),
    (
        "share/bash-completion/completions/ringmark",
        "complete -F _ringmark",
    ),
    ("share/zsh/site-functions/_ringmark", "#compdef ringmark"),
    (
        "share/fish/vendor_completions.d/ringmark.fish",
        "-c ringmark",
    ),
    ("include/ringmark.h", "ringmark_layout.h"),
    (
        "include/ringmark_functions.h",
        "ringmark_functions_callback",
    ),
];

/// A fresh installation.
struct Installed {
    fixture: Fixture,
    prefix: PathBuf,
}

impl Installed {
    fn new(label: &str) -> Self {
        let fixture = Fixture::new(label);
        let prefix = fixture.path("prefix");
        let installed = Self { fixture, prefix };
        let _ = installed.install(&installed.prefix, "").expect_code(0);
        installed
    }

    /// Installs what was built for the tests.
    fn install(&self, prefix: &Path, destination: &str) -> Finished {
        let mut install = Command::new(workspace_root().join("install"));
        install.arg("--built").arg(BUILT).arg(prefix);
        install.env("DESTDIR", destination);
        run(&mut install, LIMIT).expect("bash")
    }

    /// Runs the installed command with these words.
    fn ringmark(&self, words: &str) -> String {
        let mut command = self.fixture.command(self.prefix.join("bin/ringmark"));
        command.current_dir(self.fixture.path("."));
        command.args(words.split_whitespace());
        let finished = run(&mut command, LIMIT).expect("the installed command");
        finished.expect_code(0).stdout_text()
    }

    /// Runs a program of the fixture with the installed command, and expects its events.
    fn expect_hello(&self, program: &str) {
        let _ = self.ringmark(&format!("run -o hello.rmk -- {program}"));
        let text = self.ringmark("cat hello.rmk");
        assert_eq!(text.lines().count(), HELLO_LINES, "{program}:\n{text}");
    }

    fn shell(&self, script: &str) {
        let mut bash = Command::new("bash");
        bash.current_dir(self.fixture.path("."))
            .args(["-ec", script]);
        bash.env("PREFIX", &self.prefix);
        bash.env("SOURCE", workspace_root().join("c-api/examples"));
        let _ = run(&mut bash, 2 * LIMIT).expect("bash").expect_code(0);
    }
}

#[test]
fn a_c_program_is_built_with_pkg_config() {
    if !require_tools(&["gcc", "pkg-config", "strip"]) {
        return;
    }
    let installed = Installed::new("install-pkg-config");
    installed.shell(
        "export PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig
         gcc $SOURCE/hello.c $(pkg-config --cflags --libs ringmark) -Wl,-rpath,$PREFIX/lib -o hello",
    );
    installed.expect_hello("./hello");
}

#[test]
fn a_c_program_is_built_with_cmake() {
    if !require_tools(&["gcc", "cmake", "make", "strip"]) {
        return;
    }
    let installed = Installed::new("install-cmake");
    fs::write(installed.fixture.path("CMakeLists.txt"), CMAKE_LISTS).unwrap();
    installed.shell(
        "cp $SOURCE/hello.c .
         cmake -G 'Unix Makefiles' -S . -B made -DCMAKE_PREFIX_PATH=$PREFIX
         cmake --build made",
    );
    // CMake says where the library is: no path is set here.
    installed.expect_hello("made/hello");
}

#[test]
fn the_installed_command_traces_functions() {
    if !require_tools(&["gcc", "strip"]) {
        return;
    }
    let installed = Installed::new("install-functions");
    let _ = functions::compile(&installed.fixture, "nested.c", "nested", SITES);
    let _ = installed.ringmark("run --kind graph -o nested.rmk -- ./nested");
    let text = installed.ringmark("graph nested.rmk");
    for name in ["outer", "middle", "leaf"] {
        assert!(text.contains(&format!("{name}()")), "{name}:\n{text}");
    }
}

/// Below DESTDIR everything says the prefix, and nothing the place where it was built.
#[test]
fn every_file_is_there_and_says_the_prefix() {
    if !require_tools(&["strip"]) {
        return;
    }
    let installed = Installed::new("install-files");
    let staged = installed.fixture.path("staged");
    let destination = staged.display().to_string();
    let _ = installed
        .install(Path::new("/opt/ringmark"), &destination)
        .expect_code(0);
    let root = staged.join("opt/ringmark");
    for (file, text) in TEXTS {
        let found = fs::read_to_string(root.join(file)).expect(file);
        assert!(found.contains(text), "{file}: expected {text}");
        assert!(
            !found.contains('@') || !found.contains("@PREFIX@"),
            "{file}"
        );
    }
    let mode = |file: &str| {
        fs::metadata(root.join(file))
            .expect(file)
            .permissions()
            .mode()
            & 0o777
    };
    for file in [
        "bin/ringmark",
        "lib/libringmark.so",
        "lib/ringmark/libringmark_functions.so",
    ] {
        assert_eq!(mode(file), 0o755, "{file}");
    }
    assert_eq!(mode("lib/libringmark.a"), 0o644);
    let has_symbols = |path: &Path| {
        let bytes = fs::read(path).expect("a file");
        bytes.windows(8).any(|name| name == b".symtab\0")
    };
    assert!(has_symbols(binary::path()), "else this test shows nothing");
    assert!(!has_symbols(&root.join("bin/ringmark")), "it is stripped");
}

#[test]
fn a_prefix_that_cannot_be_used_is_named() {
    let installed = Fixture::new("install-wrong");
    for (words, text) in [
        (&["relative"][..], "expected an absolute path"),
        (&["/a b"], "expected a path without spaces"),
        (
            &["--built", "/nowhere", "/opt"],
            "/nowhere/ringmark: not there",
        ),
        (&["--no-such", "/opt"], "unknown option --no-such"),
    ] {
        let mut install = Command::new(workspace_root().join("install"));
        install
            .args(words)
            .env("DESTDIR", installed.path("nothing"));
        let finished = run(&mut install, LIMIT).expect("bash");
        assert_eq!(finished.code(), 2, "{words:?}");
        assert!(
            finished.stderr_text().contains(text),
            "{}",
            finished.stderr_text()
        );
    }
    assert!(!installed.path("nothing").exists());
}
