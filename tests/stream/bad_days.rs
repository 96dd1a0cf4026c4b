//! Promise: whatever happens to collector, streamer, store and clock, each event is stored once or counted as lost.
//! What happens, and when, follows from a seed that is printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ringmark_reader::{Access, Session};
use ringmark_tests::collecting::{segments, wait_for_listener};
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Counters, Fixture, is_mapped};
use ringmark_tests::random::Random;
use ringmark_tests::recording::decode;
use ringmark_tests::{Running, binary, is_long, preload_shim, require_tools, run, wait_until};
use rustix::process::Signal;

const EMIT: &str = ringmark_tests::program!("emit");
const LONG: Duration = Duration::from_secs(180);
const PROGRAMS: usize = 3;
/// Threads of each program.
const THREADS: u64 = 2;
/// Size of the store's file system while it has room, in MiB.
const ROOM: u64 = 2048;
/// Bytes that it has left when it is made full.
const RUNNING_OUT: u64 = 128 << 10;
/// How far the clock is set, in seconds: farther than `keep-age`.
const JUMP: i64 = 8 * 24 * 3600;

/// How long it goes on, and how often something happens.
struct Plan {
    length: Duration,
    every: Duration,
    /// Pause of each thread after ten events, in us.
    pause: u64,
}

impl Plan {
    fn new() -> Self {
        match is_long() {
            true => Self {
                length: Duration::from_secs(2 * 3600),
                every: Duration::from_secs(3),
                pause: 200_000,
            },
            false => Self {
                length: Duration::from_secs(9),
                every: Duration::from_millis(400),
                pause: 10_000,
            },
        }
    }
}

/// How often each thing happened.
#[derive(Debug, Default)]
struct Happened {
    collectors_killed: u32,
    collectors_ended: u32,
    streamers_killed: u32,
    filled: u32,
    reloads: u32,
    bad_reloads: u32,
    jumps: u32,
}

/// A collector and a streamer, and what they stand on.
struct Scene {
    fixture: Fixture,
    /// Holds the mount namespace with the store's file system.
    holder: Running,
    collector: Option<Running>,
    streamer: Option<Running>,
    shim: PathBuf,
    happened: Happened,
}

impl Scene {
    fn start() -> Self {
        let fixture = Fixture::new("bad-days");
        fs::create_dir(fixture.path("store")).unwrap();
        let mut command = fixture.command("unshare");
        let mount = format!(
            "mount -t tmpfs -o size={ROOM}m,mode=0700 ringmark-test \"$1\"; touch \"$1/../mounted\"; exec sleep 100000"
        );
        command.args(["--mount", "sh", "-euc", &mount, "sh"]);
        let holder = Running::start(command.arg(fixture.path("store"))).unwrap();
        wait_until(LONG, "a file system", || {
            fixture.path("mounted").exists().then_some(())
        });
        fs::write(fixture.path("clock"), "0").unwrap();
        let mut scene = Self {
            shim: preload_shim::build(&fixture, "clock_shim"),
            fixture,
            holder,
            collector: None,
            streamer: None,
            happened: Happened::default(),
        };
        scene.configure("");
        scene.start_collector();
        scene.start_streamer();
        scene
    }

    fn configure(&self, more: &str) {
        let text = format!(
            "listen = 'unix://{}'\nstore = '{}'\nkeep-age = '2d'\nsegment-age = '2s'\n{more}\n",
            self.fixture.path("socket").display(),
            self.fixture.path("store").display()
        );
        fs::write(self.fixture.path("collector.toml"), text).unwrap();
    }

    /// A command where the store's file system is.
    fn inside(&self, program: &str) -> std::process::Command {
        let mut command = self.fixture.command("nsenter");
        command.arg(format!("--mount=/proc/{}/ns/mnt", self.holder.id()));
        command.arg(program);
        command
    }

    fn start_collector(&mut self) {
        let _ = fs::remove_file(self.fixture.path("socket"));
        let mut command = self.inside("env");
        command.arg(format!("LD_PRELOAD={}", self.shim.display()));
        let clock = self.fixture.path("clock");
        command.arg(format!("SHIM_CLOCK={}", clock.display()));
        command.arg(binary::path()).args(["collect", "--config"]);
        command.arg(self.fixture.path("collector.toml"));
        self.collector = Some(Running::start(&mut command).unwrap());
        wait_for_listener(&self.fixture.path("socket"));
    }

    fn start_streamer(&mut self) {
        let mut command = self.fixture.command(binary::path());
        let to = format!("unix://{}", self.fixture.path("socket").display());
        command.args(["stream", "--all", "--to", &to, "--spill-max", "4M"]);
        command.args(["--open-every", "500ms", "--spill"]);
        command.arg(self.fixture.path("spill"));
        self.streamer = Some(Running::start(&mut command).unwrap());
    }

    fn kill_collector(&mut self) {
        drop(self.collector.take().unwrap().kill().unwrap());
        self.start_collector();
        self.happened.collectors_killed += 1;
    }

    fn end_collector(&mut self) {
        let collector = self.collector.take().unwrap();
        collector.signal(Signal::TERM).unwrap();
        let _ = collector.finish(LONG).expect_code(0);
        self.start_collector();
        self.happened.collectors_ended += 1;
    }

    fn kill_streamer(&mut self) {
        drop(self.streamer.take().unwrap().kill().unwrap());
        self.start_streamer();
        self.happened.streamers_killed += 1;
    }

    fn resize(&self, bytes: u64) {
        let mut command = self.inside("mount");
        command.args(["-o", &format!("remount,size={bytes}")]);
        command.arg(self.fixture.path("store"));
        // It may have grown beyond that since.
        let _ = run(&mut command, LONG).unwrap();
    }

    fn fill(&mut self) {
        let mut command = self.inside("df");
        command.args(["--output=used", "-B1"]);
        let done = run(command.arg(self.fixture.path("store")), LONG).unwrap();
        let text = done.expect_code(0).stdout_text();
        let used: u64 = text.lines().last().unwrap().trim().parse().unwrap();
        self.resize(used + RUNNING_OUT);
        self.happened.filled += 1;
    }

    fn make_room(&self) {
        self.resize(ROOM << 20);
    }

    fn reload(&mut self) {
        self.configure("rate-per-host = '1G'");
        self.collector
            .as_ref()
            .unwrap()
            .signal(Signal::HUP)
            .unwrap();
        self.happened.reloads += 1;
    }

    fn reload_a_mistake(&mut self) {
        self.configure("no such line");
        self.collector
            .as_ref()
            .unwrap()
            .signal(Signal::HUP)
            .unwrap();
        thread::sleep(Duration::from_millis(200));
        self.configure("");
        self.happened.bad_reloads += 1;
    }

    /// Sets the collector's wall clock forward, later back.
    fn jump(&mut self, random: &mut Random) {
        let by = [0, JUMP, -JUMP][random.below(3) as usize];
        fs::write(self.fixture.path("clock"), by.to_string()).unwrap();
        self.happened.jumps += 1;
    }

    /// One of the things that happen.
    fn happen(&mut self, random: &mut Random) {
        match random.below(10) {
            0 => self.kill_collector(),
            1 => self.end_collector(),
            2 | 3 => self.kill_streamer(),
            4 => self.fill(),
            5 | 6 => self.make_room(),
            7 => self.reload(),
            8 => self.reload_a_mistake(),
            _ => self.jump(random),
        }
    }

    /// The store as it is seen from here.
    fn store(&self) -> PathBuf {
        let root = format!("/proc/{}/root", self.holder.id());
        let store = self.fixture.path("store");
        PathBuf::from(root).join(store.strip_prefix("/").unwrap())
    }
}

/// A program of numbered events, and its own count of them.
fn start_program(fixture: &Fixture, number: usize, plan: &Plan) -> (Running, Counters) {
    let counters = Counters::new(fixture.path(&format!("counters-{number}")));
    // The rings of one program are too small at times.
    let ring = ["1M", "256K", "64K"][number % 3];
    let ringmark = format!("mode=discard,ring={ring},page=16K,session=8M,keep=always");
    let (length, pause) = (plan.length.as_millis(), plan.pause);
    let arguments = format!(
        "{THREADS} 100000000 bulk=100 burst=10 pause={pause} for={length} {}",
        counters.argument()
    );
    (fixture.start(EMIT, &ringmark, &arguments), counters)
}

/// Each event of each thread is stored once or counted.
fn expect_all(scene: &Scene, mut emitted: Vec<u64>) {
    let dump = decode(&segments(&scene.store()));
    assert_eq!((dump.conflicts, dump.damage.len()), (0, 0));
    let account = Delivery::of(&dump);
    account.expect_no_errors();
    let mut found: Vec<u64> = account.rings.values().map(|ring| ring.emitted()).collect();
    println!(
        "{} emitted: {} stored, {} counted as lost; {:?}",
        emitted.iter().sum::<u64>(),
        account.delivered(),
        account.lost(),
        scene.happened
    );
    emitted.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, emitted, "stored and counted, by thread");
}

/// Whether the streamer let go of a session since all of it is stored, or removed it.
fn is_taken(file: &Path) -> bool {
    let Ok(session) = Session::open(file, Access::Observe) else {
        return !file.exists();
    };
    let ring = session.ring();
    let mut slots = (0..ring.slots_used()).filter_map(|index| ring.slot(index));
    session.process_ended() && slots.all(|slot| slot.consumed() == slot.produced())
}

#[test]
fn what_is_emitted_is_stored_once_or_counted() {
    if !require_tools(&["unshare", "mount", "nsenter", "gcc", "df"]) {
        return;
    }
    let (plan, mut random) = (Plan::new(), Random::seeded());
    let mut scene = Scene::start();
    let programs: Vec<_> = (0..PROGRAMS)
        .map(|number| start_program(&scene.fixture, number, &plan))
        .collect();
    let end = Instant::now() + plan.length;
    while Instant::now() < end {
        scene.happen(&mut random);
        thread::sleep(plan.every);
    }
    scene.make_room();
    let mut emitted = Vec::new();
    for (program, counters) in programs {
        let _ = program.finish(LONG).expect_code(0);
        emitted.extend(counters.read(THREADS));
    }
    // One that was started just now has to find the sessions.
    let streamer = scene.streamer.take().unwrap();
    for file in scene.fixture.ring_files() {
        wait_until(LONG, "a session that is found, taken or gone", || {
            (is_mapped(&streamer, &file) || is_taken(&file)).then_some(())
        });
    }
    streamer.signal(Signal::TERM).unwrap();
    let ended = streamer.finish(LONG);
    // 1: something was lost, and counted.
    assert!((0..=1).contains(&ended.code()), "{}", ended.stderr_text());
    expect_all(&scene, emitted);
    drop(scene.collector.take().unwrap().kill().unwrap());
}
