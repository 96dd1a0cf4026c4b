//! Child processes in a process group of their own: bounded in time, killed with their children
//! when the test that started them ends, however it ends.

use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Once};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

use crate::wait::wait_until;

/// `read` from standard input, `poll`, and the two calls that sleep, for [`Running::wait_until_in`].
pub const READS_INPUT: &str = "0 0x0 ";
/// See [`READS_INPUT`].
pub const POLLS: &str = "7 ";
/// See [`READS_INPUT`].
pub const SLEEPS: [&str; 2] = ["35 ", "230 "];

/// What a finished child printed, and how it ended.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// Everything it wrote to standard output.
    pub stdout: Vec<u8>,
    /// Everything it wrote to standard error.
    pub stderr: Vec<u8>,
}

impl Finished {
    /// Exit code, or 128 + signal number as a shell reports it.
    #[must_use]
    pub fn code(&self) -> i32 {
        let signal = self.status.signal().unwrap_or(0);
        self.status.code().unwrap_or(128 + signal)
    }

    /// Standard output as text, damaged UTF-8 replaced.
    #[must_use]
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text, damaged UTF-8 replaced.
    #[must_use]
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Returns itself when the exit code is `code`.
    ///
    /// # Panics
    /// With both outputs when it is not, each shortened by [`excerpt`].
    #[must_use]
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        let found = self.code();
        if found != code {
            let (out, err) = (excerpt(&self.stdout), excerpt(&self.stderr));
            panic!("exit code {found}, expected {code}\nstdout:\n{out}\nstderr:\n{err}");
        }
        self
    }
}

/// Bytes that [`excerpt`] shows of each end.
const SHOWN: usize = 4096;

/// What a person is shown of an output when a test fails: all of it, or both its ends and the
/// number of bytes between them. A dump of events would bury what went wrong.
#[must_use]
pub fn excerpt(output: &[u8]) -> String {
    let text = String::from_utf8_lossy;
    if output.len() <= 2 * SHOWN {
        return text(output).into_owned();
    }
    let left_out = output.len() - 2 * SHOWN;
    let (head, tail) = (&output[..SHOWN], &output[output.len() - SHOWN..]);
    format!(
        "{}\n[{left_out} bytes left out]\n{}",
        text(head),
        text(tail)
    )
}

/// Runs `command` to its end with nothing on standard input.
///
/// # Errors
/// When it cannot be started.
///
/// # Panics
/// When it runs longer than `timeout`; its process group is killed first.
pub fn run(command: &mut Command, timeout: Duration) -> io::Result<Finished> {
    Ok(Running::start(command.stdin(Stdio::null()))?.finish(timeout))
}

/// A running child. Dropping it kills its whole process group and reaps it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    program: String,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Running {
    /// Starts `command` as the leader of a new process group and collects both its outputs.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        heed_signals();
        let mut child = command
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self {
            stdout: child.stdout.take().map(collect),
            stderr: child.stderr.take().map(collect),
            program: command.get_program().to_string_lossy().into_owned(),
            child,
        })
    }

    /// The child's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The child itself, to write to its standard input or to ask for its state.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits until the child's first thread waits in a system call: one of these beginnings of
    /// `/proc/PID/syscall`, the number and the first arguments. What it does before is done then.
    ///
    /// # Panics
    /// When it does not come there within a minute.
    pub fn wait_until_in(&self, calls: &[&str]) {
        let path = format!("/proc/{}/syscall", self.id());
        wait_until(Duration::from_secs(60), "the program's own wait", || {
            let found = std::fs::read_to_string(&path).unwrap_or_default();
            calls
                .iter()
                .any(|call| found.starts_with(call))
                .then_some(())
        });
    }

    /// Waits until the thread of the child that sleeps most has gone to sleep `times` more. One that polls has
    /// looked as often for something to do: what it has not done by then it does not do, however busy the machine is.
    ///
    /// # Panics
    /// When it does not within a minute.
    pub fn wait_for_sleeps(&self, times: u64) {
        let first = sleeps(self.id());
        wait_until(Duration::from_secs(60), "a program that polls", || {
            (sleeps(self.id()) >= first + times).then_some(())
        });
    }

    /// Sends `signal` to the child alone.
    ///
    /// # Errors
    /// When the child is already reaped.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// Kills the child alone (`SIGKILL`) and returns what it left.
    ///
    /// # Errors
    /// When the child is already reaped.
    ///
    /// # Panics
    /// When the killed child does not end within a minute.
    pub fn kill(self) -> io::Result<Finished> {
        self.signal(Signal::KILL)?;
        Ok(self.finish(Duration::from_secs(60)))
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// When the child runs longer than `timeout`, or its output cannot be collected; its process
    /// group is killed first.
    #[must_use]
    pub fn finish(self, timeout: Duration) -> Finished {
        self.finish_with(timeout, |_| {})
    }

    fn finish_with(mut self, timeout: Duration, mut at_each_look: impl FnMut(&Self)) -> Finished {
        let end = Instant::now() + timeout;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return self.outputs(status, end);
            }
            at_each_look(&self);
            if Instant::now() >= end {
                self.kill_group();
                panic!("{} still runs after {timeout:?}", self.program);
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Lets it run for `time`; if it goes on then, interrupts it as a person would. Not before it
    /// watches for that: a signal that came earlier would end it without a word.
    ///
    /// # Panics
    /// As [`Running::finish`].
    #[must_use]
    pub fn interrupt_after(self, time: Duration, timeout: Duration) -> Finished {
        let (begun, mut is_told) = (Instant::now(), false);
        self.finish_with(timeout, |child| {
            if !is_told && begun.elapsed() >= time && child.watches_for(Signal::INT) {
                is_told = child.signal(Signal::INT).is_ok();
            }
        })
    }

    /// Whether the child has a handler for this signal.
    fn watches_for(&self, signal: Signal) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()));
        let handled = mask_of(&status.unwrap_or_default(), "SigCgt:");
        handled >> (signal.as_raw() - 1) & 1 == 1
    }

    /// Collects the outputs. A grandchild may hold them open after the child's end: it gets the
    /// rest of the time, then the group is killed.
    fn outputs(&mut self, status: ExitStatus, end: Instant) -> Finished {
        while !self.is_drained() && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        if !self.is_drained() {
            self.kill_group();
        }
        let join = |reader: Option<JoinHandle<Vec<u8>>>| {
            reader.and_then(|r| r.join().ok()).unwrap_or_default()
        };
        Finished {
            status,
            stdout: join(self.stdout.take()),
            stderr: join(self.stderr.take()),
        }
    }

    fn is_drained(&self) -> bool {
        let ended =
            |reader: &Option<JoinHandle<_>>| reader.as_ref().is_none_or(|r| r.is_finished());
        ended(&self.stdout) && ended(&self.stderr)
    }

    fn kill_group(&self) {
        // ESRCH is fine: no process is left.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill_group();
        let _ = self.child.wait();
    }
}

/// Signals that this process ignores, because a script or `nohup` started it so, are not ignored
/// by what it starts: tests send them. A signal with a handler has its default again after `exec`. Where the end of
/// children is ignored, no parent hears how they ended.
pub fn heed_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = mask_of(&status, "SigIgn:");
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD] {
            if ignored >> (signal - 1) & 1 == 1 {
                // A flag without a reader: here it stays without effect.
                signal_hook::flag::register(signal, Arc::default()).expect("a handler");
            }
        }
    });
}

/// How often that thread of a process gave its processor away by itself which did so most.
///
/// # Panics
/// When the process is gone.
#[must_use]
pub fn sleeps(pid: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("a process");
    let of_thread = |thread: std::fs::DirEntry| -> Option<u64> {
        let status = std::fs::read_to_string(thread.path().join("status")).ok()?;
        let mut lines = status.lines();
        let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        count.trim().parse().ok()
    };
    let counts = threads.flatten().filter_map(of_thread);
    counts.max().expect("a thread")
}

/// Waits until the kernel has ended a process: it is gone, or a zombie that its parent has not reaped yet.
///
/// # Panics
/// When it goes on for a minute.
pub fn wait_for_end(pid: Pid) {
    wait_until(Duration::from_secs(60), "the end of a process", || {
        is_gone(pid).then_some(())
    });
}

fn is_gone(pid: Pid) -> bool {
    let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
    test_kill_process(pid).is_err()
        || std::fs::read_to_string(stat).is_ok_and(|line| line.contains(") Z "))
}

/// The time of a processor that a process took so far, in steps of 10 ms.
///
/// # Panics
/// When it is gone.
#[must_use]
pub fn processor_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let after_name = stat.rsplit(')').next().expect("the rest of a line");
    let times = after_name.split_whitespace().skip(11).take(2);
    let hundredths: u64 = times
        .map(|time| time.parse::<u64>().expect("a number"))
        .sum();
    Duration::from_millis(hundredths * 10)
}

/// A mask of signals in the text of `/proc/PID/status`.
fn mask_of(status: &str, name: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix(name));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is still worth showing.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECONDS: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn collects_code_and_both_outputs() {
        let done = run(&mut shell("echo out; echo err >&2; exit 3"), SECONDS).unwrap();
        let done = done.expect_code(3);
        assert_eq!(
            (done.stdout_text().as_str(), done.stderr_text().as_str()),
            ("out\n", "err\n")
        );
    }

    #[test]
    #[should_panic(expected = "aaa\n[6809 bytes left out]\nb\nb\n")]
    fn of_a_long_output_both_ends_are_shown() {
        let done = run(
            &mut shell("yes a | head -n 5000 | tr -d '\\n'; echo; yes b | head -n 5000; exit 1"),
            SECONDS,
        )
        .unwrap();
        let _ = done.expect_code(0);
    }

    #[test]
    fn a_signal_reads_as_128_plus_number() {
        let child = Running::start(&mut shell("exec sleep 60")).unwrap();
        assert_eq!(child.kill().unwrap().code(), 137);
    }

    #[test]
    fn an_interrupt_waits_for_its_handler() {
        let child = Running::start(Command::new("sleep").arg("0.2")).unwrap();
        let _ = child
            .interrupt_after(Duration::ZERO, SECONDS)
            .expect_code(0);
        // This shell has one from its start on, and then one that says so.
        let script = "trap 'echo told; exit 5' INT; echo ready; read nothing";
        let mut command = shell(script);
        let mut child = Running::start(command.stdin(Stdio::piped())).unwrap();
        let _input = child.child().stdin.take();
        child.wait_until_in(&[READS_INPUT]);
        let done = child.interrupt_after(Duration::ZERO, SECONDS);
        assert_eq!(done.expect_code(5).stdout_text(), "ready\ntold\n");
    }

    #[test]
    #[should_panic(expected = "still runs after")]
    fn a_hanging_child_is_killed() {
        let _ = run(&mut shell("sleep 60"), Duration::from_millis(50));
    }

    #[test]
    fn drop_kills_grandchildren() {
        let dir = crate::TempDir::new("grandchild").unwrap();
        let file = dir.join("pid");
        let script = format!("sleep 60 & echo $! > {}; wait", file.display());
        let child = Running::start(&mut shell(&script)).unwrap();
        let pid = wait_until(SECONDS, "the grandchild's pid", || {
            std::fs::read_to_string(&file).ok()?.trim().parse().ok()
        });
        drop(child);
        wait_for_end(Pid::from_raw(pid).unwrap());
    }
}
