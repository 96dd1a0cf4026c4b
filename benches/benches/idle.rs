//! G1: what a recorder, a streamer, a collector and `cat --follow` cost beside a program in which
//! nothing happens; how soon they are awake; what a burst after a silence loses.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ringmark::event;
use ringmark_benches::{child_argument, finish, percentiles, print_bar};

/// Events of a burst. Into a ring of 1 MiB go 65,400 of them.
const BURST: u64 = 100_000;
/// Until all have opened what they watch.
const SETTLE: Duration = Duration::from_millis(1500);

fn main() {
    match child_argument().as_deref() {
        Some("quiet") => return quiet(0),
        Some("silent") => return quiet(100),
        Some("burst") => return burst(),
        _ => {}
    }
    let is_long = std::env::var_os("RINGMARK_LONG").is_some();
    let silence = Duration::from_secs(if is_long { 60 } else { 6 });
    let tool = tool();
    let mut met = true;
    for (how, what) in [
        ("quiet", "a quiet program"),
        ("silent", "100 silent threads"),
    ] {
        met &= Stage::new(&tool).idle(how, what, silence);
    }
    met &= Stage::new(&tool).first_event();
    met &= Stage::new(&tool).loss_of_burst(if is_long { silence } else { SETTLE });
    finish(!met)
}

/// Threads that said something once, and one event each 0.4 s.
fn quiet(threads: usize) {
    ringmark::start_from_env();
    for number in 0..threads {
        thread::spawn(move || {
            (0..100_u64).for_each(|i| event!("idle.once", number = number as u64, i = i));
            loop {
                thread::park();
            }
        });
    }
    for i in 0_u64.. {
        event!("idle.tick", i = i);
        thread::sleep(Duration::from_millis(400));
    }
}

/// Emits as many events as each line of standard input says.
fn burst() {
    ringmark::start_from_env();
    event!("idle.begin");
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let events: u64 = line.parse().expect("a number");
        (0..events).for_each(|i| event!("idle.burst", i = i));
    }
}

/// The command as users have it.
fn tool() -> PathBuf {
    if let Some(tool) = std::env::var_os("RINGMARK_TOOL") {
        return tool.into();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args([
        "build",
        "-q",
        "--release",
        "--workspace",
        "--bin",
        "ringmark",
    ]);
    let built = cargo.current_dir(&root).status().expect("cargo");
    assert!(built.success(), "the command does not build");
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target
        .unwrap_or_else(|| root.join("target"))
        .join("release/ringmark")
}

/// A child that is killed when it is not needed any more.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Processor time of all its threads in ns, as the kernel's scheduler counts it.
    fn cpu_ns(&self) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0.id())).expect("a process");
        let spent = tasks.flatten().filter_map(|task| {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        spent.sum()
    }

    fn say(&mut self, line: &str) {
        let input = self.0.stdin.as_mut().expect("its standard input");
        writeln!(input, "{line}").expect("it reads");
    }
}

/// A session directory of its own, and a place for what is written.
struct Stage<'a> {
    tool: &'a Path,
    dir: PathBuf,
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl<'a> Stage<'a> {
    fn new(tool: &'a Path) -> Self {
        let name = format!("ringmark-idle-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a directory");
        Self { tool, dir }
    }

    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.dir);
        command.env("RINGMARK_DIR", self.dir.join("sessions"));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// This program again, traced.
    fn program(&self, how: &str, ringmark: &str) -> Running {
        let exe = std::env::current_exe().expect("the path of this program");
        let mut command = self.command(&exe, &[how]);
        let program = Running(
            command
                .env("RINGMARK", ringmark)
                .spawn()
                .expect("a program"),
        );
        while fs::read_dir(self.dir.join("sessions")).map_or(0, Iterator::count) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(100));
        program
    }

    fn start(&self, arguments: &[&str]) -> Running {
        Running(
            self.command(self.tool, arguments)
                .spawn()
                .expect("the command"),
        )
    }

    /// What each watcher takes of a core beside this program, while all of them watch.
    fn idle(&self, how: &str, what: &str, silence: Duration) -> bool {
        let program = self.program(how, "1");
        let pid = program.0.id().to_string();
        let to = format!("unix://{}", self.dir.join("socket").display());
        let watchers = [
            (
                "collector",
                &["collect", "--listen", &to, "--store", "store"][..],
            ),
            ("recorder", &["record", "-p", &pid, "-o", "one.rmk"]),
            ("recorder of all", &["record", "--all", "-o", "all.rmk"]),
            ("streamer", &["stream", "-p", &pid, "--to", &to]),
            ("streamer of all", &["stream", "--all", "--to", &to]),
            ("cat --follow", &["cat", "--follow", "-p", &pid]),
        ];
        let watchers = watchers.map(|(name, arguments)| (name, self.start(arguments)));
        thread::sleep(SETTLE);
        let (before, begun) = (watchers.each_ref().map(|(_, w)| w.cpu_ns()), Instant::now());
        thread::sleep(silence);
        let elapsed = begun.elapsed().as_nanos() as f64;
        let mut met = true;
        for ((name, watcher), before) in watchers.iter().zip(before) {
            let percent = (watcher.cpu_ns() - before) as f64 * 100.0 / elapsed;
            let what = format!("{name} next to {what}, % of a core");
            print_bar("G1", &what, percent, 1.0, percent <= 1.0);
            met &= percent <= 1.0;
        }
        met
    }

    /// How long after it was asked for an event is shown, the slowest of some.
    fn first_event(&self) -> bool {
        let mut program = self.program("burst", "1");
        let pid = program.0.id().to_string();
        let mut command = self.command(self.tool, &["cat", "--follow", "-p", &pid]);
        let mut follower = Running(command.stdout(Stdio::piped()).spawn().expect("the command"));
        let shown = follower.0.stdout.take().expect("its output");
        let mut lines = BufReader::new(shown).lines();
        let _ = lines.next();
        let ms = (0..10).map(|_| {
            thread::sleep(Duration::from_millis(500));
            let asked = Instant::now();
            program.say("1");
            let _ = lines.next();
            asked.elapsed().as_secs_f64() * 1000.0
        });
        let slowest = ms.fold(0.0, f64::max);
        print_bar(
            "G1",
            "event after a silence until it is shown, ms",
            slowest,
            50.0,
            slowest <= 50.0,
        );
        slowest <= 50.0
    }

    /// What a burst into a ring of 1 MiB loses after a silence: at most what the ring does not hold.
    fn loss_of_burst(&self, silence: Duration) -> bool {
        let lost = (0..5).map(|_| {
            let mut program = self.program("burst", "mode=discard,ring=1M");
            let pid = program.0.id().to_string();
            let mut recorder = self.start(&[
                "record",
                "-p",
                &pid,
                "-o",
                "burst.rmk",
                "--status-file",
                "said",
            ]);
            thread::sleep(silence);
            program.say(&BURST.to_string());
            drop(program.0.stdin.take());
            let _ = program.0.wait();
            let _ = recorder.0.wait();
            lost_as_said(&self.dir.join("said"))
        });
        let lost = percentiles(lost.collect())[1];
        let most = BURST as f64 - 65_000.0;
        print_bar(
            "G1",
            "lost of 100,000 after a silence, 1 MiB",
            lost,
            most,
            lost <= most,
        );
        lost <= most
    }
}

fn lost_as_said(status: &Path) -> f64 {
    let text = fs::read_to_string(status).expect("the recorder's status");
    let (_, after) = text.split_once("\"lost\":").expect("what was lost");
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}
