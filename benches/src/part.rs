//! Processes that measure when they are told to, so that windows of different programs take turns.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A process that measures.
pub struct Part {
    name: &'static str,
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Part {
    /// Starts it with a session in overwrite mode, with more `options` (`,NAME=VALUE`).
    #[must_use]
    pub fn start(name: &'static str, options: &str, command: &mut Command) -> Self {
        command.env("RINGMARK", format!("keep=never,mode=overwrite{options}"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let to = child.stdin.take().expect("piped");
        let from = BufReader::new(child.stdout.take().expect("piped"));
        Self {
            name,
            child,
            to,
            from,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Has it run a window, and returns what that took, in ns a call.
    pub fn ask(&mut self, body: &str) -> f64 {
        writeln!(self.to, "{body}").expect("a live process");
        let mut line = String::new();
        self.from.read_line(&mut line).expect("a live process");
        line.trim().parse().expect("a number")
    }

    /// Lets it end.
    pub fn end(self) {
        let Self { mut child, to, .. } = self;
        drop(to);
        let _ = child.wait();
    }
}

/// Builds the C program `c_interface`, and the shared library as an installation has it.
#[must_use]
pub fn build_c() -> PathBuf {
    let exe = std::env::current_exe().expect("own name");
    let release = exe
        .parent()
        .and_then(Path::parent)
        .expect("deps")
        .to_owned();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(&root);
    cargo.args([
        "build",
        "--release",
        "-q",
        "-p",
        "ringmark-c",
        "--lib",
        "--target-dir",
    ]);
    let target = release.parent().expect("a target directory");
    must(cargo.arg(target));
    let prefix = release.join("c-bench");
    let mut install = Command::new(root.join("c-api/install.sh"));
    install.stdout(Stdio::null());
    must(install.arg("--built").arg(&release).arg(&prefix));
    let program = prefix.join("c_interface");
    let libraries = prefix.join("lib");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-Wall", "-Werror"]);
    cc.arg(root.join("benches/benches/c_interface.c"));
    cc.arg("-I")
        .arg(prefix.join("include"))
        .arg("-L")
        .arg(&libraries);
    cc.arg(format!("-Wl,-rpath,{}", libraries.display()));
    must(cc.args(["-lringmark", "-lpthread", "-o"]).arg(&program));
    program
}

fn must(command: &mut Command) {
    let status = command.status().expect("it starts");
    assert!(status.success(), "{command:?}: {status}");
}
