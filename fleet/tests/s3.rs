//! Promise: collectors that share a bucket, in S3 or in Azure, keep nothing else, and no event of theirs is lost or comes twice,
//! whatever the way to the bucket does and whichever collector is killed. Readers get from the bucket what
//! they need of it.

#[path = "common/azurite.rs"]
mod azurite;
#[path = "common/fault_proxy.rs"]
mod fault_proxy;
#[path = "common/moto.rs"]
mod moto;
#[allow(dead_code, unreachable_pub)]
#[path = "../../tests/src/proxy.rs"]
mod proxy;
#[allow(dead_code, unreachable_pub)]
#[path = "../../tests/src/random.rs"]
mod random;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use azurite::Azurite;
use fault_proxy::{Fault, FaultProxy};
use moto::Moto;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proxy::Proxy;
use random::Random;

const FLEET: &str = env!("CARGO_BIN_EXE_ringmark-fleet");
const WITHIN: Duration = Duration::from_secs(120);
/// Each fault happens as often.
const EACH: usize = 10;
/// Kills of collectors.
const KILLS: usize = 10;

/// A directory of its own, and what was started there: removed and killed at the end.
struct Scene {
    root: PathBuf,
    store: &'static str,
    settings: fn(&str) -> Vec<(&'static str, String)>,
    endpoint: String,
    started: Vec<Child>,
}

impl Scene {
    fn new(name: &str, endpoint: &str) -> Self {
        let name = format!("ringmark-s3-{name}-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        fs::create_dir_all(&root).unwrap();
        Self {
            root,
            store: "s3://bucket/of/tests",
            settings: moto::settings,
            endpoint: endpoint.to_owned(),
            started: Vec::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(&self.root).stdin(Stdio::null());
        command.env("RINGMARK_DIR", self.path("sessions"));
        command.envs((self.settings)(&self.endpoint));
        command
    }

    /// Starts a collector at a socket of this name; returns its number.
    fn collect(&mut self, socket: &str) -> Child {
        let path = self.path(socket);
        let mut command = self.command(FLEET);
        command.args(["collect", "--flush", "30ms", "--objects", self.store]);
        command
            .arg("--listen")
            .arg(format!("unix://{}", path.display()));
        let collector = command.stderr(Stdio::null()).spawn().unwrap();
        wait("a collector", || UnixStream::connect(&path).ok().map(drop));
        collector
    }

    /// Starts a traced program that emits what is written to it, and a streamer of it.
    fn stream(&mut self, way: &str) -> (Numbers, Child) {
        let traced = Path::new(FLEET).with_file_name("examples").join("traced");
        let mut command = self.command(traced);
        command
            .arg("turns")
            .env("RINGMARK", "mode=discard,wait=10s,ring=1M,page=4K");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = command.spawn().unwrap();
        let (input, output) = (program.stdin.take(), program.stdout.take());
        let mut numbers = Numbers {
            input: input.unwrap(),
            output: BufReader::new(output.unwrap()),
            next: 0,
        };
        numbers.emit();
        let pid = program.id().to_string();
        self.started.push(program);
        let mut command = self.command(FLEET);
        let to = format!("unix://{}", self.path(way).display());
        command.args(["stream", "-p", &pid, "--open-every", "10ms", "--to", &to]);
        let streamer = command.stderr(Stdio::piped()).spawn().unwrap();
        (numbers, streamer)
    }

    fn told(&self, words: &[&str]) -> Output {
        let mut command = self.command(FLEET);
        command.args(words).arg(self.store).output().unwrap()
    }

    /// What a command prints that succeeds.
    fn printed(&self, words: &[&str]) -> String {
        let told = self.told(words);
        let said = String::from_utf8_lossy(&told.stderr);
        assert!(told.status.success(), "{words:?}: {}: {said}", told.status);
        String::from_utf8_lossy(&told.stdout).into_owned()
    }

    /// How often each number is in the store, by `scan` and by `cat`.
    fn found(&self) -> [BTreeMap<u64, usize>; 2] {
        let scanned = self.printed(&["scan", "--name", "emitter.place"]);
        let mut lines = scanned
            .lines()
            .map(|line| line.split(',').collect::<Vec<_>>());
        let header = lines.next().unwrap();
        let at = header.iter().position(|name| *name == "arg_n").unwrap();
        let scanned = lines.map(|row| row[at].parse().unwrap());
        let shown = self.printed(&["cat", "--name", "emitter.place"]);
        let number = |line: &str| line.rsplit_once("n=")?.1.trim().parse().ok();
        let shown = shown.lines().map(|line| number(line).expect(line));
        [counted(scanned), counted(shown)]
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.started.drain(..).for_each(end);
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn end(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn counted(numbers: impl Iterator<Item = u64>) -> BTreeMap<u64, usize> {
    let mut counted = BTreeMap::new();
    numbers.for_each(|number| *counted.entry(number).or_default() += 1);
    counted
}

/// The traced program's side: numbers that it is told to emit.
struct Numbers {
    input: ChildStdin,
    output: BufReader<std::process::ChildStdout>,
    next: u64,
}

impl Numbers {
    /// Has the next number emitted, and waits until it is.
    fn emit(&mut self) {
        writeln!(self.input, "{}", self.next).unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{}\n", self.next));
        self.next += 1;
    }

    fn emit_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.emit();
            sleep(Duration::from_micros(500));
        }
    }
}

fn wait<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(done) = done() {
            return done;
        }
        assert!(begun.elapsed() < WITHIN, "{what}");
        sleep(Duration::from_millis(20));
    }
}

/// Ends the program, then the streamer, which has sent all.
fn finish(numbers: Numbers, streamer: Child) -> u64 {
    let emitted = numbers.next;
    drop(numbers);
    let done = streamer.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}: {said}", done.status);
    emitted
}

/// Each number is there once, by all commands.
fn all_once(scene: &Scene, emitted: u64) {
    let once: BTreeMap<u64, usize> = (0..emitted).map(|number| (number, 1)).collect();
    let [scanned, shown] = scene.found();
    assert_eq!(scanned, once);
    assert_eq!(shown, once);
    let verified = scene.printed(&["verify", "--json"]);
    for figure in ["lost", "missing", "late", "unknown", "conflicts", "damaged"] {
        assert!(verified.contains(&format!("\"{figure}\":0")), "{verified}");
    }
    assert!(verified.contains("\"complete\":true"), "{verified}");
}

#[test]
fn no_fault_on_the_way_loses_or_repeats_an_event() {
    let Some(moto) = Moto::start() else { return };
    let faulty = FaultProxy::start(&moto.address(), EACH, &mut Random::seeded());
    let mut scene = Scene::new("faults", faulty.address());
    let collector = scene.collect("socket");
    let (mut numbers, streamer) = scene.stream("socket");
    wait("all faults", || {
        numbers.emit_for(Duration::from_millis(50));
        faulty.is_done().then_some(())
    });
    let emitted = finish(numbers, streamer);
    end(collector);
    println!("{emitted} numbers, {:?}", faulty.faults());
    assert!(
        Fault::ALL
            .iter()
            .all(|fault| faulty.faults()[fault] >= EACH)
    );
    scene.endpoint = moto.address();
    all_once(&scene, emitted);
}

#[test]
fn collectors_of_one_bucket_are_killed_in_turn() {
    let Some(moto) = Moto::start() else { return };
    let holding = FaultProxy::holding(&moto.address());
    let mut scene = Scene::new("killed", holding.address());
    let sockets = ["first", "second"];
    let mut collectors = sockets.map(|socket| scene.collect(socket));
    let to = sockets.map(|socket| scene.path(socket));
    let way = Proxy::in_turn(&scene.path("way"), &to);
    let (mut numbers, streamer) = scene.stream("way");
    let mut random = Random::seeded();
    for kill in 0..KILLS {
        numbers.emit_for(Duration::from_millis(300 + random.below(300)));
        // Its object is not there in one case, and in the other it is, but not acknowledged.
        let held = [Fault::HeldBefore, Fault::HeldAfter][kill % 2];
        wait("an object that is put", || {
            numbers.emit_for(Duration::from_millis(5));
            holding.holds(held).then_some(())
        });
        let putting = (way.connections() as usize - 1) % 2;
        collectors[putting].kill().unwrap();
        let _ = collectors[putting].wait().unwrap();
        collectors[putting] = scene.collect(sockets[putting]);
    }
    let emitted = finish(numbers, streamer);
    collectors.into_iter().for_each(end);
    println!("{emitted} numbers, {} connections", way.connections());
    assert!(
        way.connections() as usize > KILLS,
        "a kill did not meet the streamer"
    );
    scene.endpoint = moto.address();
    all_once(&scene, emitted);
}

#[test]
fn a_store_in_azure_is_written_and_read() {
    let Some(azurite) = Azurite::start() else {
        return;
    };
    let mut scene = Scene::new("azure", &azurite.address());
    (scene.store, scene.settings) = ("az://bucket/of/tests", azurite::settings);
    let collector = scene.collect("socket");
    let (mut numbers, streamer) = scene.stream("socket");
    numbers.emit_for(Duration::from_secs(1));
    let emitted = finish(numbers, streamer);
    end(collector);
    all_once(&scene, emitted);
    let listed: serde_json::Value =
        serde_json::from_str(&scene.printed(&["store", "ls", "--json"])).expect("JSON");
    assert!(listed["written"].as_u64() >= Some(emitted), "{listed}");
    // Its tables are there, too.
    let compacted = || String::from_utf8_lossy(&scene.told(&["compact"]).stderr).into_owned();
    let rows = scene.printed(&["scan"]).lines().count() - 1;
    let first = compacted();
    assert!(
        first.contains(&format!("tests: {rows} rows of")),
        "{rows}, {emitted}: {first}"
    );
    let again = compacted();
    assert!(again.contains("tests: 0 rows of 0 segments"), "{again}");
    let files = scene.printed(&["store", "files", "--table", "events"]);
    let start = "az://bucket/of/tests/tables/events/date=";
    assert!(
        files.starts_with(start) && files.lines().count() == 1,
        "{files}"
    );
}

/// Bytes that readers of the store get, and their requests, by `words`.
fn read_by(scene: &mut Scene, moto: &Moto, words: &[&str]) -> (u64, u64) {
    let counting = FaultProxy::start(&moto.address(), 0, &mut Random::from_seed(1));
    scene.endpoint = counting.address().to_owned();
    let _ = scene.printed(words);
    counting.asked("GET")
}

#[test]
fn a_reader_gets_what_is_chosen_and_little_else() {
    let Some(moto) = Moto::start() else { return };
    let mut scene = Scene::new("ranges", &moto.address());
    let collector = scene.collect("socket");
    let (mut numbers, streamer) = scene.stream("socket");
    numbers.emit_for(Duration::from_secs(2));
    let _ = finish(numbers, streamer);
    end(collector);
    let segments = moto.ask("GET", "/bucket?list-type=2&prefix=of/tests/raw");
    let segments = segments.matches("<Key>").count() as u64;
    assert!(segments > 20, "{segments}");
    let (requests, bytes) = read_by(&mut scene, &moto, &["verify"]);
    println!("{segments} segments: {requests} requests, {bytes} bytes");
    // Two lists, the schema, and of each segment its footer and all of it.
    assert!(requests <= 3 + 2 * segments, "{requests} of {segments}");
    scene.endpoint = moto.address();
    let rows = scene.printed(&["scan"]).lines().count() as i64 - 1;
    let _ = scene.printed(&["scan", "--format", "parquet"]);
    let file = File::open(scene.path("tests.parquet")).unwrap();
    let columns = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    assert_eq!(columns.metadata().file_metadata().num_rows(), rows);
    let (few, less) = read_by(&mut scene, &moto, &["scan", "--host", "none"]);
    println!("another host: {few} requests, {less} bytes");
    assert!(few <= 2 + segments && less < bytes, "{few}: {less}");
}
