//! Programs in C and C++ whose functions count their own calls: built, run, and run again with all
//! their functions traced; then both books are compared.

mod books;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ringmark_decoder::Dump;
use ringmark_tests::compiler::{can_build, try_build};
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::library;
use ringmark_tests::{Finished, is_long, recording, run, workspace_root};

pub(crate) use books::Books;

pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// Nothing is lost, and the session stays.
pub(crate) const DISCARD: &str = "mode=discard,keep=always,ring=8M,session=64M";
/// The same for many threads or processes.
pub(crate) const SMALL: &str = "mode=discard,keep=always,page=4K,ring=64K,session=128M";

/// Sites at entries only, of any compiler: exits are seen by replaced return addresses.
pub(crate) const ENTRIES: &str = "-fpatchable-function-entry=5";
/// clang's sleds at entries and exits. Its own library for them is linked, and does nothing.
pub(crate) const XRAY: &str = "-fxray-instrument -fxray-instruction-threshold=1";
/// gcc's sites at entries and exits.
pub(crate) const RETURNS: &str =
    "-DNO_NESTED -pg -mfentry -mrecord-mcount -minstrument-return=nop5 -mrecord-return";

/// Ways to build, all or a share.
#[must_use]
pub(crate) fn builds() -> Vec<&'static str> {
    let share = ["-O0", "-O2 -fno-pie -no-pie", "-O2 -flto"];
    let rest = ["-O0 -fno-pie -no-pie", "-O2", "-O2 -flto -fno-pie -no-pie"];
    let all = share.into_iter().chain(rest);
    all.take(if is_long() { 6 } else { 3 }).collect()
}

/// Compilers that are here, and what they are told beside what the source file needs.
fn ways(source: &str) -> Vec<(String, String)> {
    let (gcc, front) = match source.ends_with(".cc") {
        true => ("g++", "--driver-mode=g++ "),
        false => ("gcc", ""),
    };
    let of = |compiler: &str, sites: &str, builds: &[&str]| -> Vec<(String, String)> {
        let flags = builds.iter().map(|build| format!("{build} {sites}"));
        flags.map(|flags| (compiler.to_owned(), flags)).collect()
    };
    let mut ways = of(gcc, ENTRIES, &builds());
    // Option -flto takes what -pg leaves at the places of calls for calls. Without -mnop-mcount that
    // is a call of six bytes in a PIE, which is refused where its first two lie in two words.
    let returns = [
        "-O2 -fno-pie -no-pie -mnop-mcount",
        "-O0 -falign-functions=16",
        "-O2 -falign-functions=16",
    ];
    ways.extend(of(gcc, RETURNS, &returns[..if is_long() { 3 } else { 1 }]));
    if let Some(clang) = clang() {
        let share = if is_long() { builds() } else { vec!["-O2"] };
        let front = format!("{front}-DNO_NESTED");
        let sites = [XRAY, ENTRIES]
            .into_iter()
            .take(if is_long() { 2 } else { 1 });
        for sites in sites {
            let of_clang = of(&clang, &format!("{front} {sites}"), &share);
            let can = of_clang
                .into_iter()
                .filter(|(_, flags)| can_build(&clang, flags));
            ways.extend(can);
        }
    }
    ways
}

/// Clang by whichever name it builds programs here.
#[must_use]
pub(crate) fn clang() -> Option<String> {
    let versions = (14..=22).rev().map(|version| format!("clang-{version}"));
    let mut names = std::iter::once("clang".to_owned()).chain(versions);
    names.find(|name| try_build(name, "").is_ok())
}

/// A program that was built.
#[derive(Debug)]
pub(crate) struct Program {
    fixture: Fixture,
    path: PathBuf,
    /// How it was built.
    pub(crate) build: String,
}

/// What came of a traced run.
#[derive(Debug)]
pub(crate) struct Traced {
    /// The traced run.
    pub(crate) finished: Finished,
    /// What was recorded.
    pub(crate) books: Books,
}

impl Program {
    /// Builds `tests/programs/functions/SOURCE`.
    ///
    /// # Panics
    /// When the compiler does not.
    #[must_use]
    pub(crate) fn new(compiler: &str, source: &str, flags: &str) -> Self {
        let fixture = Fixture::new("calls");
        let name = source.split('.').next().unwrap_or("program");
        let (path, object) = (fixture.path(name), fixture.path("program.o"));
        let source = Path::new(source);
        let has_sites = ["-fpatchable", "-fxray", "-pg"]
            .iter()
            .any(|f| flags.contains(f));
        let flags = format!("{flags} {}", if has_sites { "" } else { ENTRIES });
        let compile = |inputs: &[&Path], output: &Path, without: &str| {
            let mut command = Command::new(compiler);
            command.current_dir(workspace_root().join("tests/programs/functions"));
            command.args(["-g", "-Wall", "-Wextra", "-Werror", "-pthread"]);
            command.args(flags.split_whitespace().filter(|flag| *flag != without));
            command
                .args(inputs)
                .arg("-o")
                .arg(output)
                .args(["-ldl", "-lm"]);
            let _ = run(&mut command, LIMIT).expect("a compiler").expect_code(0);
        };
        if flags.contains("-pg") {
            // Linked with it, gprof would count with a timer's signals.
            compile(&[Path::new("-c"), source], &object, "");
            compile(&[&object], &path, "-pg");
        } else {
            compile(&[source], &path, "");
        }
        let build = format!("{compiler} {} {flags}", source.display());
        Self {
            fixture,
            path,
            build,
        }
    }

    /// The same program, with sessions of its own.
    #[must_use]
    pub(crate) fn again(&self) -> Self {
        let mut other = Self::at(self.path.clone());
        other.build.clone_from(&self.build);
        other
    }

    /// A program that was built elsewhere.
    #[allow(dead_code, reason = "not for programs in C")]
    #[must_use]
    pub(crate) fn at(path: PathBuf) -> Self {
        let fixture = Fixture::new("calls");
        let build = path.display().to_string();
        Self {
            fixture,
            path,
            build,
        }
    }

    /// Where its sessions are.
    #[allow(dead_code, reason = "asked where the tool is")]
    #[must_use]
    pub(crate) fn fixture(&self) -> &Fixture {
        &self.fixture
    }

    /// Its file.
    #[allow(dead_code, reason = "asked where the tool is")]
    #[must_use]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its file name, by which filters name it.
    #[must_use]
    pub(crate) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// A command that runs it as `wishes` (the value of `RINGMARK_TRACE`) say.
    #[must_use]
    pub(crate) fn command(&self, ringmark: &str, wishes: &str) -> Command {
        let mut command = self.fixture.command(&self.path);
        command.env("RINGMARK", ringmark);
        command.env("RINGMARK_TRACE", wishes);
        command.env("LD_PRELOAD", library());
        command
    }

    /// What gdb says of the callers where the traced program enters `function`: in the running
    /// program, and in a core dump of it.
    ///
    /// # Panics
    /// When gdb does not end.
    #[must_use]
    pub(crate) fn backtraces(&self, function: &str, wishes: &str) -> [String; 2] {
        let core = self.fixture.path("core");
        let set = |name: &str, value: &str| format!("set environment {name}={value}");
        let before = [
            set("RINGMARK", DISCARD),
            set("RINGMARK_TRACE", wishes),
            set("LD_PRELOAD", &library().display().to_string()),
            "set startup-with-shell off".to_owned(),
            "set breakpoint pending on".to_owned(),
            "handle SIGUSR1 SIGUSR2 nostop noprint pass".to_owned(),
            format!("break {function}"),
            "run".to_owned(),
            "bt".to_owned(),
            format!("generate-core-file {}", core.display()),
        ];
        let before: Vec<_> = before.iter().map(String::as_str).collect();
        [self.gdb(&before, &[]), self.gdb(&["bt"], &[&core])]
    }

    fn gdb(&self, commands: &[&str], also: &[&Path]) -> String {
        let mut gdb = self.fixture.command("gdb");
        for command in commands {
            gdb.args(["-ex", command]);
        }
        gdb.args(["-q", "-nx", "-batch"]).arg(&self.path).args(also);
        run(&mut gdb, LIMIT).expect("gdb").stdout_text()
    }

    /// Everything that was recorded.
    ///
    /// # Panics
    /// When it cannot be read.
    #[must_use]
    pub(crate) fn recorded(&self) -> Dump {
        recording::read(&self.fixture.ring_files())
    }

    /// Runs it under tracers that write no records.
    ///
    /// # Panics
    /// When it does not start.
    #[allow(dead_code, reason = "asked where there is a profile")]
    #[must_use]
    pub(crate) fn run_as(&self, ringmark: &str, wishes: &str, argument: &str) -> Finished {
        let mut command = self.command(ringmark, wishes);
        run(command.arg(argument), LIMIT)
            .expect("a program")
            .expect_code(0)
    }

    /// Runs it with all its functions traced.
    ///
    /// # Panics
    /// When it does not end well.
    #[must_use]
    pub(crate) fn trace(&self, ringmark: &str, wishes: &str, arguments: &str) -> Traced {
        let arguments: Vec<_> = arguments.split_whitespace().collect();
        let mut plain = Command::new(&self.path);
        let plain = run(plain.args(&arguments), LIMIT).expect("a program");
        let mut command = self.command(ringmark, wishes);
        let finished = run(command.args(&arguments), LIMIT).expect("a program");
        let told = || format!("{}: {}", self.build, finished.stderr_text());
        assert_eq!(finished.code(), plain.code(), "{}", told());
        assert_eq!(finished.stdout_text(), plain.stdout_text(), "{}", told());
        let books = Books::of(&self.recorded());
        Traced { finished, books }
    }
}

/// Traces all functions of a program in every build, and compares the books.
///
/// # Panics
/// When they differ.
pub(crate) fn check(
    source: &str,
    flags: &str,
    ringmark: &str,
    arguments: &str,
    also: impl Fn(&Traced),
) {
    check_all(source, flags, ringmark, arguments, |traced, own, build| {
        traced.books.expect_closed(build);
        traced.books.expect_calls(own, build);
        also(traced);
    });
}

/// Traces all functions of a program in every build.
///
/// # Panics
/// When it does not do what it does otherwise.
pub(crate) fn check_all(
    source: &str,
    flags: &str,
    ringmark: &str,
    arguments: &str,
    check: impl Fn(&Traced, &BTreeMap<String, u64>, &str),
) {
    for (compiler, way) in ways(source) {
        let program = Program::new(&compiler, source, &format!("{way} {flags}"));
        let wishes = format!("tracer=graph;filter=*@{}", program.name());
        let traced = program.trace(ringmark, &wishes, arguments);
        println!("{}: {:?}", program.build, traced.books);
        let own = own_counts(&traced.finished);
        check(&traced, &own, &program.build);
    }
}

/// What the functions counted themselves: lines `calls NAME NUMBER`, of all processes together.
///
/// # Panics
/// When there are none.
#[must_use]
pub(crate) fn own_counts(finished: &Finished) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in finished.stderr_text().lines() {
        let words: Vec<_> = line.split(' ').collect();
        if let ["calls", name, number] = words[..] {
            let number: u64 = number.parse().expect("a number of calls");
            *counts.entry(name.to_owned()).or_default() += number;
        }
    }
    assert!(!counts.is_empty(), "{}", finished.stderr_text());
    counts
}
