//! Promise: a program that is started to be traced finds what it would find without Ringmark, and gets the
//! signals that are sent to the recorder.

use std::ffi::c_int;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::tool;
use ringmark_tests::recording::decode;
use ringmark_tests::{Running, require_tools, run};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGURG, SIGUSR1, SIGUSR2, SIGVTALRM,
    SIGWINCH,
};

const SENT: &str = ringmark_tests::program!("sent");

/// What a process finds: signals, umask, environment, descriptors, limits, nice value.
const FOUND: &str = "{ grep -E '^(Sig|Umask)' /proc/self/status | grep -v SigQ; tr '\\0' '\\n' </proc/$$/environ; \
                     ls /proc/$$/fd; cat /proc/$$/limits; cut -d' ' -f19 /proc/$$/stat; } >found";
/// Ways to start: what a shell does before it becomes the command.
const WAYS: [&str; 6] = [
    "exec",
    "trap '' PIPE CHLD USR1 HUP QUIT ALRM WINCH; exec",
    "exec env --block-signal=USR2,TERM,QUIT --ignore-signal=PIPE",
    "exec 0<&-; exec",
    "exec 0<&- 2>&-; exec",
    "ulimit -n 100; ulimit -c 0; umask 027; exec nice -n 3",
];

/// What a shell finds that is started by `words` in this way, line by line.
fn found(fixture: &Fixture, way: &str, words: &[&str]) -> Vec<String> {
    let mut command = tool(fixture);
    let variables: Vec<_> = command
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
        .collect();
    command = Command::new("bash");
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .args(["-c", &format!("{way} \"$@\""), "bash"])
        .args(words)
        .args(["sh", "-c", FOUND]);
    let _ = run(command.current_dir(fixture.sessions()), SOON).expect("bash");
    let file = fixture.sessions().join("found");
    let text = fs::read(&file).unwrap_or_else(|error| panic!("{way} {words:?}: {error}"));
    fs::remove_file(file).expect("what was found");
    let ours = ["RINGMARK=", "RINGMARK_TAGS=", "_="];
    let is_ours = |line: &&str| ours.iter().any(|name| line.starts_with(name));
    let text = String::from_utf8_lossy(&text);
    text.lines()
        .filter(|line| !is_ours(line))
        .map(str::to_owned)
        .collect()
}

#[test]
fn what_was_ignored_blocked_closed_limited_is_so_in_the_program() {
    if !require_tools(&["bash", "nice"]) {
        return;
    }
    let fixture = Fixture::new("given");
    fs::create_dir(fixture.sessions()).expect("a directory");
    let ringmark = ringmark_tests::binary::path().display().to_string();
    for way in WAYS {
        let bare = found(&fixture, way, &[]);
        assert!(
            bare.iter().any(|line| line.starts_with("SigIgn:")),
            "{way}: {bare:#?}"
        );
        for verb in ["run", "record"] {
            let words = [&ringmark, verb, "-o", "/dev/null", "--"];
            assert_eq!(found(&fixture, way, &words), bare, "{way} {verb}");
        }
    }
}

/// A program that has begun to take signals, and its recorder.
fn start(fixture: &Fixture) -> (Running, impl Iterator<Item = String>, u32) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = tool(fixture);
    command.args(["run", "-o"]).arg(fixture.path("sent.rmk"));
    // Its output comes while it runs.
    command.args(["--", "sh", "-c", "echo $$ >&3; exec \"$0\" >&3", SENT]);
    let mut shell = Command::new("bash");
    shell
        .args(["-c", "exec 3>&0 0</dev/null; exec \"$@\"", "bash"])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let recorder =
        Running::start(shell.stdin(Stdio::from(OwnedFd::from(writer)))).expect("a recorder");
    let mut lines = BufReader::new(File::from(OwnedFd::from(reader)))
        .lines()
        .map(|line| line.expect("a line"));
    let pid = lines
        .next()
        .and_then(|line| line.parse().ok())
        .expect("its pid");
    assert_eq!(lines.next().as_deref(), Some("ready"));
    (recorder, lines, pid)
}

const SIGNALS: [c_int; 12] = [
    SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGURG, SIGUSR1, SIGUSR2, SIGVTALRM,
    SIGWINCH,
];

/// Each is passed on as often as it is sent, and the recording goes on until the program ends.
#[test]
fn signals_to_the_recorder_reach_the_program() {
    if !require_tools(&["bash", "python3"]) {
        return;
    }
    let fixture = Fixture::new("sent");
    let (recorder, mut lines, _) = start(&fixture);
    let mut sent = 0;
    for signal in SIGNALS.into_iter().chain([SIGUSR1, SIGQUIT]) {
        let pid = Pid::from_raw(recorder.id().cast_signed()).expect("a pid");
        kill_process(pid, Signal::from_named_raw(signal).expect("a signal")).expect("it runs");
        assert_eq!(lines.next(), Some(format!("{signal} 0")));
        sent += 1;
    }
    // A real-time signal with its value.
    let queue = "import ctypes, sys; c = ctypes.CDLL(None); sys.exit(c.sigqueue(int(sys.argv[1]), 40, ctypes.c_void_p(4711)))";
    let mut python = Command::new("python3");
    let _ = run(python.args(["-c", queue, &recorder.id().to_string()]), SOON)
        .expect("python3")
        .expect_code(0);
    assert_eq!(lines.next().as_deref(), Some("40 4711"));
    recorder.signal(Signal::TERM).expect("it runs");
    let done = recorder.finish(SOON).expect_code(3);
    let events = decode(&[fixture.path("sent.rmk")]).events().count();
    assert_eq!(events, sent + 2, "{}", done.stderr_text());
}
