//! A shared object is loaded into running processes that were not prepared: none hangs, each
//! computes what it would have computed, each refusal has its name, and the tool may die anywhere.

#[path = "attach/refused.rs"]
mod refused;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use ringmark_attach::{LoadError, Loaded, Options, Way, load};
use ringmark_tests::process::{POLLS, READS_INPUT, Running};
use ringmark_tests::{TempDir, is_long, require_tools, run, workspace_root};

const END: Duration = Duration::from_secs(100);
/// For a machine on which much else runs.
const LIMIT: Duration = Duration::from_secs(40);
const ARGUMENT: &std::ffi::CStr = c"abc";

/// The built targets and the library.
struct Built {
    dir: TempDir,
}

impl Built {
    fn new() -> Self {
        let dir = TempDir::new("attach").expect("a directory");
        let built = Self { dir };
        built.compile("loop", "attach_loop.c", &["-O2"]);
        built.compile("plugin.so", "attach_plugin.c", &["-O2", "-shared", "-fPIC"]);
        let shared = ["-O2", "-shared", "-fPIC"];
        built.compile("library.so", "attach_library.c", &shared);
        built
    }

    fn compile(&self, name: &str, source: &str, flags: &[&str]) {
        let source = workspace_root()
            .join("tests/programs/functions")
            .join(source);
        let mut gcc = Command::new("gcc");
        gcc.args(flags).arg("-o").arg(self.path(name)).arg(source);
        gcc.args(["-lpthread", "-ldl"]);
        let _ = run(&mut gcc, END).expect("gcc").expect_code(0);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn library(&self) -> PathBuf {
        self.path("library.so")
    }

    /// Starts a target with one thread of each kind, which is at its work then.
    fn target(&self, kinds: &str) -> Target {
        let mut command = Command::new(self.path("loop"));
        command.arg("600").arg(self.path("plugin.so"));
        command.args(kinds.split(' '));
        Target::start(command)
    }
}

/// A target that runs until its input ends.
struct Target {
    running: Running,
}

impl Target {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped());
        let running = Running::start(&mut command).expect("a target");
        // Its first thread reads its input, or waits for it: everything before that is done.
        running.wait_until_in(&[READS_INPUT, POLLS]);
        Self { running }
    }

    fn pid(&self) -> i32 {
        self.running.id().cast_signed()
    }

    fn has(&self, library: &Path) -> bool {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid()));
        maps.is_ok_and(|maps| maps.contains(library.to_str().expect("a path")))
    }

    /// Lets it end, and returns what it says of its results.
    fn finish(mut self) -> String {
        drop(self.running.child().stdin.take());
        let text = self.running.finish(END).expect_code(0).stdout_text();
        assert!(text.contains("ok "), "{text}");
        text
    }
}

fn options() -> Options<'static> {
    Options {
        limit: LIMIT,
        call: Some((c"attach_library_start", ARGUMENT)),
        ..Options::default()
    }
}

fn load_into(target: &Target, library: &Path) -> Loaded {
    let loaded = load(target.pid(), library, &options()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(loaded.result, Some(3), "{loaded:?}");
    assert!(target.has(library));
    loaded
}

/// All threads of the target are nearly always inside the C library or the loader.
#[test]
fn targets_that_loop_in_the_c_library() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let built = Built::new();
    let all = [
        "malloc malloc malloc",
        "printf printf",
        "dlopen dlopen",
        "malloc printf dlopen malloc printf dlopen",
    ];
    let cycles = if is_long() { 200 } else { 20 };
    let (mut stopped, mut held) = (Vec::new(), Vec::new());
    for round in 0..cycles / 5 {
        let target = built.target(all[round % all.len()]);
        for _ in 0..5 {
            let loaded = load_into(&target, &built.library());
            stopped.push(loaded.stopped.as_micros());
            held.push(loaded.held.as_micros());
        }
        target.finish();
    }
    stopped.sort_unstable();
    held.sort_unstable();
    let (middle, last) = (stopped.len() / 2, stopped.len() - 1);
    println!(
        "{cycles} cycles: stopped {} us in the middle, {} at most; held {} and {}",
        stopped[middle], stopped[last], held[middle], held[last]
    );
}

/// Each kind of place comes back as it was: registers, flags, errno, time limits of waits.
#[test]
fn every_way_in_leaves_the_thread_as_it_was() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let built = Built::new();
    let kinds = [
        ("sum", Some(Way::Running)),
        ("float", Some(Way::Running)),
        ("sort", None),
        ("sleep", Some(Way::Waiting)),
        ("poll", Some(Way::Waiting)),
        ("cond", Some(Way::Waiting)),
        ("epoll", Some(Way::Waiting)),
    ];
    for (kind, way) in kinds {
        let target = built.target(kind);
        let rounds = if is_long() { 8 } else { 3 };
        let ways: Vec<_> = (0..rounds)
            .map(|_| load_into(&target, &built.library()).way)
            .collect();
        println!("{kind}: {ways:?}: {}", target.finish().trim());
        // A wait that ends just then is a return.
        assert!(
            way.is_none_or(|way| ways.contains(&way)),
            "{kind}: {ways:?}"
        );
    }
}

#[test]
fn a_server_under_load_fails_no_request() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let built = Built::new();
    let sleds = ["-O2", "-fpatchable-function-entry=5"];
    built.compile("server", "attach_server.c", &sleds);
    let rounds = if is_long() { 10 } else { 2 };
    for _ in 0..rounds {
        let mut command = Command::new(built.path("server"));
        command.args(["600", "6"]);
        let target = Target::start(command);
        for _ in 0..3 {
            let loaded = load_into(&target, &built.library());
            println!("{loaded:?}");
        }
        let text = target.finish();
        assert!(text.contains(" failed=0 "), "{text}");
        println!("{}", text.trim());
    }
}

/// Kills the tool at each of its calls that touch the target. (Not with a thread in `epoll_wait`: a
/// stop ends that with EINTR, and a tool that is killed in the stop cannot send it there again.)
#[test]
fn the_tool_killed_at_each_of_its_calls() {
    if !require_tools(&["gcc", "strace"]) {
        return;
    }
    let built = Built::new();
    let all = ["sum", "malloc", "poll", "printf", "dlopen"];
    let kinds = if is_long() { &all[..] } else { &all[1..3] };
    let mut kills = 0;
    for kind in kinds {
        for calls in ["ptrace", "pwrite64"] {
            kills += kill_at_each(&built, kind, calls);
        }
    }
    println!("{kills} kills");
    assert!(kills >= 10 * kinds.len(), "{kills}");
}

fn kill_at_each(built: &Built, kind: &str, calls: &str) -> usize {
    for number in 1..60 {
        let target = built.target(kind);
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e"]);
        strace.arg(format!("trace={calls}"));
        strace.args(["-e", &format!("inject={calls}:signal=KILL:when={number}")]);
        strace.arg(ringmark_tests::program!("load"));
        strace.arg(target.pid().to_string());
        strace.arg(built.library());
        strace.args(["30", "attach_library_start", "abc"]);
        let code = run(&mut strace, END).expect("strace").code();
        if number % 2 == 0 {
            // The next tool finds nothing in its way.
            load_into(&target, &built.library());
        } else {
            thread::sleep(Duration::from_millis(20));
        }
        target.finish();
        if code != 137 {
            assert_eq!(code, 0, "{kind}: neither killed nor done");
            return number - 1;
        }
    }
    panic!("{kind}: {calls} again and again");
}

/// What no thread can be used for is said, thread by thread, and nothing was changed.
#[test]
fn a_time_limit_that_is_over() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let built = Built::new();
    // Waits inside `fgets`, which holds the lock of its stream: not to be trusted.
    let source = built.path("deep.c");
    let text = "#include <stdio.h>\nint main(void) { char line[9]; \
                while (fgets(line, 9, stdin)) {} puts(\"ok \"); return 0; }\n";
    std::fs::write(&source, text).expect("a file");
    built.compile("deep", source.to_str().expect("a path"), &["-O1"]);
    let target = Target::start(Command::new(built.path("deep")));
    let short = Options {
        limit: Duration::from_millis(300),
        ..options()
    };
    let error = load(target.pid(), &built.library(), &short).expect_err("no place");
    println!("{error}");
    assert!(matches!(error, LoadError::NoSafePlace { .. }), "{error}");
    assert!(!target.has(&built.library()));
    target.finish();
}
