//! Programs as containers run them: under a filter of system calls, with other mounts, in another
//! root directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{LIMIT, compile, library, ringmark, tool};
use ringmark_tests::{TempDir, is_long, require_tools, run, wait_until};

use super::load::Load;
use super::server::{SLEDS, Server};

const THREADS: usize = 4;

/// Where a program stands that other mounts leave visible.
struct Stage {
    fixture: Fixture,
    dir: TempDir,
    program: PathBuf,
}

impl Stage {
    fn new(label: &str) -> Self {
        let fixture = Fixture::new(label);
        let dir = TempDir::new_in(&std::env::temp_dir(), label).expect("a directory");
        let program = dir.join("workers");
        let built = compile(&fixture, "attach_workers.c", "workers", SLEDS);
        fs::copy(built, &program).expect("a program");
        // Built before there is load.
        let _ = tool(&fixture);
        Self {
            fixture,
            dir,
            program,
        }
    }

    /// A command for a server that was not told where sessions are.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = self.fixture.command(program);
        command.env_remove("RINGMARK_DIR");
        command
    }

    /// A shell with mounts of its own.
    fn in_own_mounts(&self, script: &str) -> Command {
        let mut command = self.command("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-euc"]);
        command.arg(script).arg("sh");
        command
    }

    /// A root directory with the program and what it needs.
    fn new_root(&self) -> PathBuf {
        let root = self.dir.join("root");
        fs::create_dir_all(root.join("proc")).expect("a directory");
        let needed = run(Command::new("ldd").arg(library()), LIMIT).expect("ldd");
        let needed = needed.expect_code(0).stdout_text();
        let paths = needed
            .split_whitespace()
            .filter(|word| word.starts_with('/'));
        for path in paths.chain([self.program.to_str().expect("a path")]) {
            let within = match path == self.program.to_str().expect("a path") {
                true => root.join("workers"),
                false => root.join(&path[1..]),
            };
            fs::create_dir_all(within.parent().expect("a parent")).expect("a directory");
            fs::copy(path, within).expect("a file");
        }
        root
    }

    fn ask(&self, pid: u32, words: &str) -> String {
        let said = ringmark(&self.fixture, &format!("{words} -p {pid}"), &[]).expect_code(0);
        said.stdout_text() + &said.stderr_text()
    }
}

/// Hides our files and `/dev/shm`, and runs its arguments.
fn hiding_script() -> String {
    let hidden = library().parent().expect("a directory").display();
    format!("mount -t tmpfs none '{hidden}'; mount -t tmpfs none /dev/shm; exec \"$@\"")
}

/// Attaches, starts, stops and detaches, each round in a fresh server that answers requests.
fn rounds(stage: &Stage, is_nameless: bool, start: impl Fn() -> Server) {
    let rounds = if is_long() { 50 } else { 5 };
    let (mut longest, mut requests) = (Duration::ZERO, 0);
    for round in 0..rounds {
        let server = start();
        let pid = server.pid();
        let load = Load::start(&server.socket, THREADS - 1, Duration::from_micros(500));
        load.goes_on(50);
        let begun = Instant::now();
        let said = stage.ask(
            pid,
            "trace start -F serve_* -F mix_* -N serve_connection --detach",
        );
        longest = longest.max(begun.elapsed());
        assert!(said.contains("function tracer loaded by thread"), "{said}");
        assert!(said.contains(" 3 enabled; 0 refused"), "{said}");
        load.goes_on(50);
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("a living process");
        assert_eq!(maps.contains("/memfd:ringmark.ring"), is_nameless, "{maps}");
        if round == 0 {
            other_commands(stage, pid, &load);
        }
        let said = stage.ask(pid, "trace stop");
        assert!(said.ends_with(" 0 enabled; 0 refused\n"), "{said}");
        load.goes_on(50);
        requests += load.finish().len();
        server.finish();
    }
    println!(
        "{rounds} rounds, {requests} requests, 0 failed; longest attach and start {longest:?}"
    );
}

/// What else is done with an attached program works here, too.
fn other_commands(stage: &Stage, pid: u32, load: &Load) {
    let text = stage.ask(pid, "trace status");
    assert!(text.contains("3 of "), "{text}");
    let text = stage.ask(pid, "cat -n 200");
    assert!(text.contains("serve_request"), "{text}");
    let dump = stage.fixture.path("contained.rmk");
    let mut recorder = tool(&stage.fixture);
    recorder
        .args(["record", "-p", &pid.to_string(), "-o"])
        .arg(&dump);
    let recorder = ringmark_tests::Running::start(&mut recorder).expect("a recorder");
    wait_until(SOON, "a recorder's dump", || dump.exists().then_some(()));
    load.goes_on(100);
    recorder
        .signal(rustix::process::Signal::INT)
        .expect("a recorder");
    let recorded = recorder.finish(SOON);
    assert!(matches!(recorded.code(), 0 | 1), "{recorded:?}");
    let text = ringmark(&stage.fixture, "report", &[&dump]).stdout_text();
    assert!(text.contains("serve_request"), "{text}");
}

/// Whether this tool may read filters.
fn may_read_filters() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("it is there");
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
    let held = field("CapEff:").and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    let is_free = field("Seccomp:").is_some_and(|mode| mode.trim() == "0");
    // CAP_SYS_ADMIN is bit 21.
    let may = is_free && held.is_some_and(|held| held >> 21 & 1 == 1);
    if !may {
        ringmark_tests::tools::log_skip("programs under filters: needs root without a filter");
    }
    may
}

pub(crate) fn filtered(fixture: &Fixture) -> Option<PathBuf> {
    may_read_filters().then(|| compile(fixture, "filtered.c", "filtered", "-O1"))
}

#[test]
fn under_the_filter_of_a_usual_container() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let stage = Stage::new("attach-filtered");
    let Some(filtered) = filtered(&stage.fixture) else {
        return;
    };
    rounds(&stage, false, || {
        let mut command = stage.fixture.command(&filtered);
        command.arg("container").arg(&stage.program);
        Server::listen(command, &stage.dir.join("socket"), THREADS)
    });
}

#[test]
fn in_another_mount_namespace_without_our_files() {
    if !require_tools(&["gcc", "unshare", "mount"]) {
        return;
    }
    let stage = Stage::new("attach-mounts");
    let script = hiding_script();
    rounds(&stage, true, || {
        let mut command = stage.in_own_mounts(&script);
        command.arg(&stage.program);
        Server::listen(command, &stage.dir.join("socket"), THREADS)
    });
}

#[test]
fn in_a_chroot() {
    if !require_tools(&["gcc", "unshare", "mount", "chroot", "ldd"]) {
        return;
    }
    let stage = Stage::new("attach-chroot");
    let root = stage.new_root();
    let script = format!(
        "mount -t proc none '{0}/proc'; exec chroot '{0}' /workers /socket {THREADS}",
        root.display()
    );
    rounds(&stage, true, || {
        let command = stage.in_own_mounts(&script);
        Server::listen_at(command, &root.join("socket"))
    });
    // Without a /proc there is nothing to load a copy by.
    let mut command = stage.command("chroot");
    command.arg(&root).args(["/workers", "/socket", "2"]);
    let server = Server::listen_at(command, &root.join("socket"));
    let words = format!("trace start -F serve_* -p {}", server.pid());
    let said = ringmark(&stage.fixture, &words, &[])
        .expect_code(4)
        .stderr_text();
    println!("{}", said.trim());
    assert!(
        said.contains("nor /proc") || said.contains("neither"),
        "{said}"
    );
    assert!(said.contains("mount -t proc"), "{said}");
    server.finish();
}

/// A container's filter and other mounts at once.
#[test]
fn under_a_filter_in_another_mount_namespace() {
    if !require_tools(&["gcc", "unshare", "mount"]) {
        return;
    }
    let stage = Stage::new("attach-container");
    let Some(built) = filtered(&stage.fixture) else {
        return;
    };
    let filtered = stage.dir.join("filtered");
    fs::copy(built, &filtered).expect("a program");
    let script = hiding_script();
    rounds(&stage, true, || {
        let mut command = stage.in_own_mounts(&script);
        command.arg(&filtered).arg("container").arg(&stage.program);
        Server::listen(command, &stage.dir.join("socket"), THREADS)
    });
}

/// The tool dies while it copies the library: the thread that waits for the rest goes on, and the next
/// tool finds nothing in its way.
#[test]
fn the_tool_killed_while_it_copies() {
    if !require_tools(&["gcc", "unshare", "mount", "strace"]) {
        return;
    }
    let stage = Stage::new("attach-copies");
    let script = hiding_script();
    let writes = if is_long() { 1..25 } else { 2..5 };
    let mut kills = 0;
    for number in writes {
        let mut command = stage.in_own_mounts(&script);
        command.arg(&stage.program);
        let server = Server::listen(command, &stage.dir.join("socket"), THREADS);
        let load = Load::start(&server.socket, THREADS - 1, Duration::from_micros(500));
        load.goes_on(20);
        let tool = tool(&stage.fixture);
        let mut strace = stage.fixture.command("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=write", "-e"]);
        strace.arg(format!("inject=write:signal=KILL:when={number}"));
        strace.arg(tool.get_program());
        strace.envs(tool.get_envs().filter_map(|(k, v)| Some((k, v?))));
        strace.args("trace start --all-functions --for 10ms -p".split(' '));
        let killed = run(strace.arg(server.pid().to_string()), LIMIT).expect("strace");
        assert!(matches!(killed.code(), 0 | 137), "{killed:?}");
        kills += usize::from(killed.code() == 137);
        load.goes_on(50);
        let _ = stage.ask(server.pid(), "trace start --all-functions --for 10ms");
        wait_until(SOON, "no descriptor of a copy", || {
            let open = fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("descriptors");
            let mut paths = open
                .flatten()
                .filter_map(|one| fs::read_link(one.path()).ok());
            let is_copy = |path: PathBuf| path.to_string_lossy().contains("libringmark");
            (!paths.any(is_copy)).then_some(())
        });
        load.goes_on(50);
        let _ = load.finish();
        server.finish();
    }
    println!("{kills} kills");
    assert!(kills >= 3, "{kills} kills");
}
