//! Promise: a recorder or streamer of all sessions gets what short programs leave, however late it
//! looks; what had to be removed before is counted. And however small the file system is, what the
//! dead leave never keeps a program from being traced.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use ringmark_tests::collecting::Collecting;
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::decode;
use ringmark_tests::{Finished, Running, is_long, require_tools, ringmark, run, wait_until};
use rustix::process::{Signal, geteuid};

const EMIT: &str = ringmark_tests::program!("emit");
/// Events of a short program.
const EVENTS: u64 = 3;

/// A collector, and a streamer of all sessions of a fixture that is at work.
struct Streaming {
    fixture: Fixture,
    collector: Collecting,
    streamer: Running,
}

impl Streaming {
    fn start(label: &str) -> Self {
        let fixture = Fixture::new(label);
        let socket = fixture.path("collector.sock");
        let collector = Collecting::start(&socket, &fixture.path("store"));
        let mut command = fixture.command(ringmark().get_program());
        command.args(["stream", "--all", "--to"]);
        command.arg(format!("unix://{}", socket.display()));
        let streamer = Running::start(&mut command).unwrap();
        let started = Self {
            fixture,
            collector,
            streamer,
        };
        started.programs("mode=discard", 1);
        started.wait_until_taken();
        started
    }

    /// Runs that many short programs, one after the other.
    fn programs(&self, ringmark: &str, count: u64) {
        self.programs_in(1, ringmark, count);
    }

    /// Runs that many of them in each of `lines` lines at once.
    fn programs_in(&self, lines: u64, ringmark: &str, count: u64) {
        let script =
            format!("i=0; while [ $i -lt {count} ]; do {EMIT} 0 {EVENTS}; i=$((i+1)); done");
        let start = |_| {
            let mut command = self.fixture.program("sh", ringmark);
            Running::start(command.args(["-euc", &script])).unwrap()
        };
        let running: Vec<_> = (0..lines).map(start).collect();
        for line in running {
            let _ = line.finish(30 * SOON).expect_code(0);
        }
    }

    fn wait_until_taken(&self) {
        let taken = || self.fixture.ring_files().is_empty().then_some(());
        wait_until(10 * SOON, "all sessions are taken and removed", taken);
    }

    /// Ends the streamer: what is in the store, and what it says is lost.
    fn end(self) -> (u64, u64) {
        self.streamer.signal(Signal::INT).unwrap();
        let done = self.streamer.finish(SOON);
        let text = done.stderr_text();
        let lost = lost_in(&text);
        assert_eq!(done.code(), i32::from(lost > 0), "{text}");
        let account = Delivery::of(&self.collector.stored());
        account.expect_no_errors();
        (account.delivered(), lost)
    }
}

/// The number before the word "lost" in the last line that has one.
fn lost_in(text: &str) -> u64 {
    let lines = text.lines().rev();
    let mut counts = lines.filter_map(|line| {
        let before = line.split(" lost").next().filter(|b| *b != line)?;
        let word = before
            .trim_end_matches(" events")
            .trim_end_matches(" event");
        let digits = word.rsplit(' ').next()?.replace(',', "");
        digits.parse().ok()
    });
    counts.next().unwrap_or(0)
}

/// The streamer looks away while they run: also in the mode in which a program that ends removes
/// what no recorder waits for.
#[test]
fn what_short_programs_leave_while_a_streamer_is_stopped_is_delivered_or_counted() {
    for ringmark in ["mode=discard", "1"] {
        let programs = 100;
        let streaming = Streaming::start("stopped");
        streaming.streamer.signal(Signal::STOP).unwrap();
        streaming.programs(ringmark, programs);
        streaming.streamer.signal(Signal::CONT).unwrap();
        streaming.wait_until_taken();
        let (delivered, lost) = streaming.end();
        println!("{ringmark}: {delivered} delivered, {lost} lost");
        assert_eq!(delivered + lost, EVENTS * (programs + 1), "{ringmark}");
    }
}

/// With busy processes beside it.
#[test]
fn what_thousands_of_short_programs_say_is_streamed() {
    let lines = 4;
    let (programs, busy) = if is_long() { (10_000, 8) } else { (400, 4) };
    let streaming = Streaming::start("thousands");
    let spin = || Running::start(Command::new("sh").args(["-c", "while :; do :; done"]));
    let busy: Vec<_> = (0..busy).map(|_| spin().unwrap()).collect();
    streaming.programs_in(lines, "mode=discard", programs / lines);
    drop(busy);
    streaming.wait_until_taken();
    let (delivered, lost) = streaming.end();
    println!("{delivered} delivered, {lost} lost");
    assert_eq!(delivered + lost, EVENTS * (programs + 1));
    assert!(lost * 300 <= EVENTS * programs, "{lost}");
}

/// Runs a shell script in a mount namespace of its own, in which `$DIR` is the session directory, on
/// a file system of `size`. `None`: that cannot be done here.
fn on_small(fixture: &Fixture, size: &str, script: &str) -> Option<Finished> {
    if !require_tools(&["unshare", "mount"]) {
        return None;
    }
    assert!(geteuid().is_root(), "needs root: to mount a small tmpfs");
    std::fs::create_dir_all(fixture.sessions()).unwrap();
    let mode = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(fixture.sessions(), mode).unwrap();
    let mount = format!("mount -t tmpfs -o size={size},mode=0700 ringmark-test \"$DIR\"");
    let mut command = fixture.command("unshare");
    command.args(["--mount", "sh", "-euc", &format!("{mount}\n{script}")]);
    command.env("DIR", fixture.sessions());
    Some(run(&mut command, 10 * SOON).unwrap())
}

#[test]
fn a_crash_loop_on_a_small_file_system_is_traced_at_every_start() {
    for (size, threads) in [("32m", 16), ("8m", 4)] {
        let fixture = Fixture::new("small");
        let script = format!(
            "i=0
             while [ $i -lt 90 ]; do
                 RINGMARK=1 {EMIT} {threads} 1000000000 & pid=$!
                 until [ -e \"$DIR/$pid.off\" ] || ls \"$DIR/$pid\"-*.ring > /dev/null 2>&1; do
                     sleep 0.002
                 done
                 sleep 0.01
                 if [ -e \"$DIR/$pid.off\" ]; then echo \"start $i: $(cat \"$DIR/$pid.off\")\"; fi
                 kill -9 $pid
                 wait $pid || true
                 i=$((i+1))
             done"
        );
        let Some(done) = on_small(&fixture, size, &script) else {
            return;
        };
        let refused = done.expect_code(0).stdout_text();
        let count = refused.lines().count();
        assert_eq!(count, 0, "{size}: {count} of 90 starts refused:\n{refused}");
    }
}

/// A recorder that is stopped on a file system that cannot hold what it comes for.
#[test]
fn what_a_small_file_system_cannot_hold_is_counted() {
    let fixture = Fixture::new("counted");
    let (dump, programs) = (fixture.path("a.rmk"), 100);
    let script = format!(
        "export RINGMARK=mode=discard
         taken() {{ while ls \"$DIR\"/*.ring > /dev/null 2>&1; do sleep 0.01; done; }}
         {tool} record --all -o {dump} & recorder=$!
         {EMIT} 0 {EVENTS}
         taken
         kill -STOP $recorder
         i=0
         while [ $i -lt {programs} ]; do {EMIT} 0 {EVENTS}; i=$((i+1)); done
         kill -CONT $recorder
         taken
         kill -TERM $recorder
         code=0; wait $recorder || code=$?
         echo $code
         {tool} list --json",
        tool = ringmark().get_program().display(),
        dump = dump.display(),
    );
    let Some(done) = on_small(&fixture, "16m", &script) else {
        return;
    };
    let done = done.expect_code(0);
    let (said, listed) = (done.stderr_text(), done.stdout_text());
    let account = Delivery::of(&decode(&[dump]));
    account.expect_no_errors();
    let (delivered, lost) = (account.delivered(), lost_in(&said));
    println!("{delivered} delivered, {lost} lost\n{said}{listed}");
    assert_eq!(delivered + lost, EVENTS * (programs + 1), "{said}");
    assert!(lost > 0 && listed.starts_with("1\n"), "{said}{listed}");
    let removed = listed.lines().find(|line| line.contains("\"removed\""));
    assert!(removed.unwrap().contains(&format!("\"events\":{lost},")));
}
