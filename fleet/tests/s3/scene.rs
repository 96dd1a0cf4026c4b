//! Collectors of a bucket, traced programs and streamers of them: processes that are killed at the end.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::moto;

pub(crate) const FLEET: &str = env!("CARGO_BIN_EXE_ringmark-fleet");
const WITHIN: Duration = Duration::from_secs(120);
/// Lines that a program is sent before it is asked what it did.
const AT_ONCE: u64 = 1000;

/// A directory of its own, and what was started there: removed and killed at the end.
pub(crate) struct Scene {
    root: PathBuf,
    pub(crate) store: &'static str,
    pub(crate) settings: fn(&str) -> Vec<(&'static str, String)>,
    pub(crate) endpoint: String,
    programs: Vec<Running>,
}

/// What a streamer is told.
#[derive(Clone, Copy)]
pub(crate) struct Sending<'s> {
    pub(crate) pid: u32,
    pub(crate) host: &'s str,
    /// The socket that it connects to.
    pub(crate) way: &'s str,
    /// How much may wait on disk, if anything.
    pub(crate) spill: Option<&'s str>,
}

impl Scene {
    pub(crate) fn new(name: &str, endpoint: &str) -> Self {
        let name = format!("ringmark-s3-{name}-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        fs::create_dir_all(&root).unwrap();
        Self {
            root,
            store: "s3://bucket/of/tests",
            settings: moto::settings,
            endpoint: endpoint.to_owned(),
            programs: Vec::new(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(&self.root).stdin(Stdio::null());
        command.env("RINGMARK_DIR", self.path("sessions"));
        command.envs((self.settings)(&self.endpoint));
        command
    }

    /// A collector at a socket of this name, with the bucket at an address.
    pub(crate) fn collector(&self, socket: &str, endpoint: &str) -> Command {
        let mut command = self.command(FLEET);
        command.args(["collect", "--flush", "30ms", "--objects", self.store]);
        command
            .arg("--listen")
            .arg(format!("unix://{}", self.path(socket).display()));
        command.envs((self.settings)(endpoint));
        command.stderr(Stdio::null());
        command
    }

    /// Starts a collector, and waits until it listens.
    pub(crate) fn collect(&self, socket: &str) -> Running {
        let collector = Running::start(&mut self.collector(socket, &self.endpoint));
        let path = self.path(socket);
        wait("a collector", || UnixStream::connect(&path).ok().map(drop));
        collector
    }

    /// Starts a traced program that emits what is written to it, from a number on.
    pub(crate) fn program(&mut self, rings: &str, first: u64) -> Numbers {
        let traced = Path::new(FLEET).with_file_name("examples").join("traced");
        let mut command = self.command(traced);
        command.arg("turns").env("RINGMARK", rings);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Running::start(&mut command);
        let (input, output) = (program.0.stdin.take(), program.0.stdout.take());
        let mut numbers = Numbers {
            pid: program.0.id(),
            input: input.unwrap(),
            output: BufReader::new(output.unwrap()),
            next: first,
            shifts: Vec::new(),
            next_shift: first,
            written: Vec::new(),
        };
        self.programs.push(program);
        numbers.emit();
        numbers
    }

    /// Starts a streamer. What it says is in a file of its host's name.
    pub(crate) fn streamer(&self, sending: Sending<'_>) -> Running {
        let mut command = self.command(FLEET);
        let to = format!("unix://{}", self.path(sending.way).display());
        let pid = sending.pid.to_string();
        command.args(["stream", "-p", &pid, "--open-every", "10ms", "--to", &to]);
        command.args(["--host", sending.host]);
        if let Some(most) = sending.spill {
            let spill = self.path(&format!("{}.spill", sending.host));
            command.args(["--spill-max", most, "--spill"]).arg(spill);
        }
        let said = File::options()
            .create(true)
            .append(true)
            .open(self.said(sending.host));
        Running::start(command.stderr(said.unwrap()))
    }

    fn said(&self, host: &str) -> PathBuf {
        self.path(&format!("{host}.txt"))
    }

    /// Bytes that wait on a host's disk.
    pub(crate) fn spilled(&self, host: &str) -> u64 {
        let files = fs::read_dir(self.path(&format!("{host}.spill")));
        let files = files.into_iter().flatten().flatten();
        files
            .filter_map(|file| Some(file.metadata().ok()?.len()))
            .sum()
    }

    /// Starts a traced program, and a streamer of it.
    pub(crate) fn stream(&mut self, way: &str) -> (Numbers, Running) {
        let numbers = self.program("mode=discard,wait=10s,ring=1M,page=4K", 0);
        let streamer = self.streamer(Sending {
            pid: numbers.pid,
            host: "web",
            way,
            spill: None,
        });
        (numbers, streamer)
    }

    /// Kills a program.
    pub(crate) fn kill(&mut self, numbers: &Numbers) {
        let program = self.programs.iter_mut();
        let mut program = program.filter(|program| program.0.id() == numbers.pid);
        program.next().unwrap().0.kill().unwrap();
    }

    /// Waits until the streamer of a host has sent all. Calls `waiting` until then.
    pub(crate) fn sent(&self, host: &str, streamer: &mut Running, mut waiting: impl FnMut()) {
        let said = || fs::read_to_string(self.said(host)).unwrap();
        let status = wait(&format!("the streamer of {host}"), || {
            waiting();
            streamer.0.try_wait().unwrap()
        });
        // 1: events are lost, which are counted.
        assert!(
            status.code().is_some_and(|code| code <= 1),
            "{host}: {status}: {}",
            said()
        );
    }

    pub(crate) fn told(&self, words: &[&str]) -> Output {
        let mut command = self.command(FLEET);
        command.args(words).arg(self.store).output().unwrap()
    }

    /// What a command prints that succeeds.
    pub(crate) fn printed(&self, words: &[&str]) -> String {
        self.printed_by(words, 0)
    }

    /// What a reader prints. 1: events are lost, which are counted.
    pub(crate) fn read(&self, words: &[&str]) -> String {
        self.printed_by(words, 1)
    }

    fn printed_by(&self, words: &[&str], most: i32) -> String {
        let told = self.told(words);
        let said = String::from_utf8_lossy(&told.stderr);
        let is_fine = told.status.code().is_some_and(|code| code <= most);
        assert!(is_fine, "{words:?}: {}: {said}", told.status);
        String::from_utf8_lossy(&told.stdout).into_owned()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.programs.clear();
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// A process that is killed when it is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn wait<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(done) = done() {
            return done;
        }
        assert!(begun.elapsed() < WITHIN, "{what}");
        sleep(Duration::from_millis(20));
    }
}

/// The traced program's side: numbers that it is told to emit.
pub(crate) struct Numbers {
    pub(crate) pid: u32,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
    /// Spans that are open.
    shifts: Vec<u64>,
    next_shift: u64,
    /// What has a record for good, as [`found`](super::found) writes it.
    written: Vec<String>,
}

impl Numbers {
    /// Has the program do this, and waits until it has.
    fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
        self.heard(line);
    }

    fn heard(&mut self, expected: &str) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), expected);
    }

    /// Has the next number emitted.
    pub(crate) fn emit(&mut self) {
        let number = self.next;
        self.tell(&number.to_string());
        let names = ["emitter.place", "emitter.turn"];
        self.written
            .extend(names.map(|name| format!("{name} {number}")));
        self.next += 1;
    }

    /// Has as many numbers emitted, each as an event alone.
    pub(crate) fn place(&mut self, count: u64) {
        let end = self.next + count;
        while self.next < end {
            let some = self.next..end.min(self.next + AT_ONCE);
            let lines = some.clone().map(|number| format!("place {number}\n"));
            let lines: String = lines.collect();
            self.input.write_all(lines.as_bytes()).unwrap();
            for number in some.clone() {
                self.heard(&format!("place {number}"));
                self.written.push(format!("emitter.place {number}"));
            }
            self.next = some.end;
        }
    }

    pub(crate) fn emit_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.emit();
            sleep(Duration::from_micros(500));
        }
    }

    /// Has a span begun inside those that are open.
    pub(crate) fn begin(&mut self) {
        self.tell(&format!("begin {}", self.next_shift));
        self.shifts.push(self.next_shift);
        self.next_shift += 1;
    }

    /// Has the innermost span ended.
    pub(crate) fn end(&mut self) {
        let number = self.shifts.pop().unwrap();
        self.tell("end");
        self.written.push(format!("emitter.shift {number}"));
    }

    /// How many spans are open.
    pub(crate) fn depth(&self) -> usize {
        self.shifts.len()
    }

    /// The number after the last one.
    pub(crate) fn emitted(&self) -> u64 {
        self.next
    }

    /// Ends the program: all its spans end. Returns all that is written.
    pub(crate) fn finish(mut self) -> Vec<String> {
        while self.depth() > 0 {
            self.end();
        }
        self.written
    }

    /// All that is written by a program that was killed: its spans do not end.
    pub(crate) fn killed(mut self) -> Vec<String> {
        let open = self.shifts.iter();
        let open = open.map(|number| format!("emitter.shift {number} open"));
        self.written.extend(open);
        self.written
    }
}
