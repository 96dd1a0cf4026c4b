//! Three collectors of one bucket, many streamers, and all that can go wrong between them.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::fault_proxy::{self, Fault};
use super::fleet::Fleet;
use super::found::{Expected, Found, scanned};
use super::moto::Moto;
use super::random::Random;
use super::s3s::S3s;
use super::scene::{Numbers, Running, Scene, Sending, wait};

/// How much of all there is.
struct Size {
    hosts: usize,
    /// How often each fault happens.
    each: usize,
    /// The same for each of three ways to be killed.
    kills: usize,
    /// How long faults may take until all have happened.
    within: Duration,
    /// How long the pages of the late host wait on its disk.
    late: Duration,
}

impl Size {
    fn of_run() -> Self {
        match std::env::var_os("RINGMARK_LONG") {
            Some(_) => Self {
                hosts: 50,
                each: 12,
                kills: 34,
                within: Duration::from_secs(3600),
                late: Duration::from_secs(3600),
            },
            None => Self {
                hosts: 5,
                each: 4,
                kills: 4,
                within: Duration::from_secs(120),
                late: Duration::ZERO,
            },
        }
    }

    /// Each kind of fault, and how often.
    fn kinds(&self) -> Vec<(Fault, usize)> {
        let alive = Fault::ALL.into_iter().chain([Fault::Ended]);
        let kills = Fault::KILLS.map(|kill| (kill, self.kills));
        alive.map(|fault| (fault, self.each)).chain(kills).collect()
    }
}

/// Numbers of a host begin with its own million.
const MILLION: u64 = 1_000_000;
const RINGS: &str = "mode=discard,ring=256K,page=4K";
const SPILL: &str = "64M";
/// The host whose pages come late, and the one that has no room for all of its events.
const LATE: &str = "late";
const SMALL: &str = "small";
const SMALL_RINGS: &str = "mode=discard,ring=64K,page=4K";
const SMALL_SPILL: &str = "64K";
/// More than that has room for.
const TOO_MANY: u64 = 20_000;

/// A host with one program.
struct Host {
    name: String,
    numbers: Numbers,
    streamer: Running,
}

impl Host {
    fn start(scene: &mut Scene, number: usize) -> Self {
        let name = format!("web-{number}");
        let mut numbers = scene.program(RINGS, number as u64 * MILLION);
        numbers.begin();
        let streamer = scene.streamer(Sending {
            pid: numbers.pid,
            host: &name,
            way: Fleet::WAY,
            spill: Some(SPILL),
        });
        Self {
            name,
            numbers,
            streamer,
        }
    }

    /// Emits a number, and begins or ends a span at times. The outermost goes on.
    fn turn(&mut self, random: &mut Random) {
        match random.below(20) {
            0 if self.numbers.depth() < 5 => self.numbers.begin(),
            1 if self.numbers.depth() > 1 => self.numbers.end(),
            _ => self.numbers.emit(),
        }
    }
}

/// Starts a program whose streamer finds no collector until much waits on disk, and is killed then.
fn alone(scene: &mut Scene, name: &str, number: u64, (rings, spill): (&str, &str)) -> Numbers {
    let mut numbers = scene.program(rings, number * MILLION);
    let streamer = scene.streamer(Sending {
        pid: numbers.pid,
        host: name,
        way: "nowhere",
        spill: Some(spill),
    });
    wait("pages on disk", || {
        numbers.place(TOO_MANY / 20);
        (scene.spilled(name) >= 40 << 10).then_some(())
    });
    drop(streamer);
    numbers
}

#[test]
fn three_collectors_lose_and_repeat_nothing() {
    let Some(moto) = Moto::start() else { return };
    let tables = || moto.objects("of/tests", "tables");
    three_collectors_of("three", &moto.address(), tables);
}

#[test]
fn three_collectors_of_another_server_lose_and_repeat_nothing() {
    let Some(server) = S3s::start() else {
        return;
    };
    let tables = || server.objects("of/tests", "tables");
    three_collectors_of("three-s3s", &server.address(), tables);
}

/// `tables`: names and bytes of all objects of tables.
fn three_collectors_of(name: &str, address: &str, tables: impl FnOnce() -> Vec<(String, Vec<u8>)>) {
    let (size, mut random, begun) = (Size::of_run(), Random::seeded(), Instant::now());
    let mut scene = Scene::new(name, address);
    let plan = fault_proxy::plan(&size.kinds(), &mut random);
    let faults = plan.len();
    let mut fleet = Fleet::start(&scene, 3, address, plan);
    let late = alone(&mut scene, LATE, 1000, (RINGS, SPILL));
    let spilled = Instant::now();
    let mut small = alone(&mut scene, SMALL, 2000, (SMALL_RINGS, SMALL_SPILL));
    small.place(TOO_MANY);
    let hosts = (0..size.hosts).map(|number| Host::start(&mut scene, number));
    let mut hosts: Vec<_> = hosts.collect();
    println!("{} hosts run after {:?}", hosts.len(), begun.elapsed());
    meet_all(&scene, &mut fleet, &mut hosts, (&mut random, size.within));
    println!("{faults} faults and passes after {:?}", begun.elapsed());
    let mut written = finish(&mut scene, &mut fleet, hosts);
    let _ = scene.printed(&["compact"]);
    while spilled.elapsed() < size.late {
        fleet.revive(&scene);
        sleep(Duration::from_millis(100));
    }
    let late = send(&scene, &mut fleet, (LATE, SPILL), late);
    written.extend(late);
    let small = send(&scene, &mut fleet, (SMALL, SMALL_SPILL), small);
    report(&size, &fleet, &written);
    drop(fleet);
    println!("all sent after {:?}", begun.elapsed());
    let _ = scene.printed(&["compact"]);
    account(&scene, small, &mut written);
    let least = segments_of_hosts(&scene, size.hosts);
    println!("the span around each host's others lies in {least} segments at least");
    assert!(least >= 3, "{least}");
    let expected = Expected {
        scene: &scene,
        written,
    };
    expected.segments_differ().unwrap();
    expected.tables_differ(address).unwrap();
    if std::env::var_os("RINGMARK_LONG").is_some() {
        expected.spark_differs(tables()).unwrap();
    }
    println!("all read after {:?}", begun.elapsed());
}

/// The least number of segments that hold pages of one of the hosts. Each has one thread, in a span from its first
/// page to its last.
fn segments_of_hosts(scene: &Scene, count: usize) -> u64 {
    let listed = scene.printed(&["store", "ls", "--json"]);
    let rows = listed
        .lines()
        .map(|line| -> serde_json::Value { serde_json::from_str(line).expect("JSON") });
    let is_host = |row: &serde_json::Value| {
        row["host"]
            .as_str()
            .is_some_and(|host| host.starts_with("web-"))
    };
    let segments = rows
        .filter(is_host)
        .map(|row| row["segments"].as_u64().expect("a number"));
    let segments: Vec<_> = segments.collect();
    assert_eq!(segments.len(), count, "{listed}");
    segments.into_iter().min().expect("a host")
}

/// Emits until all faults have happened.
fn meet_all(
    scene: &Scene,
    fleet: &mut Fleet,
    hosts: &mut [Host],
    (random, within): (&mut Random, Duration),
) {
    let begun = Instant::now();
    let mut tables = 0;
    while !fleet.faulty.is_done() {
        assert!(begun.elapsed() < within, "{:?}", fleet.faulty.faults());
        fleet.revive(scene);
        hosts.iter_mut().for_each(|host| host.turn(random));
        sleep(Duration::from_millis(5));
        // Tables are made while all that goes on, twice.
        if fleet.starts >= 6 * (tables + 1) && tables < 2 {
            let _ = scene.printed(&["compact"]);
            tables += 1;
        }
    }
}

/// Ends half of the programs, kills the others, whose last pages stay open, and waits until all is sent. Returns what
/// they wrote.
fn finish(scene: &mut Scene, fleet: &mut Fleet, hosts: Vec<Host>) -> BTreeSet<String> {
    let (mut written, mut streamers) = (BTreeSet::new(), Vec::new());
    for (at, host) in hosts.into_iter().enumerate() {
        if at % 2 == 0 {
            written.extend(host.numbers.finish());
        } else {
            scene.kill(&host.numbers);
            written.extend(host.numbers.killed());
        }
        streamers.push((host.name, host.streamer));
    }
    for (name, mut streamer) in streamers {
        scene.sent(&name, &mut streamer, || fleet.revive(scene));
    }
    written
}

/// Sends what waits on a host's disk and in its rings, and returns what its program wrote.
fn send(
    scene: &Scene,
    fleet: &mut Fleet,
    (host, spill): (&str, &str),
    numbers: Numbers,
) -> Vec<String> {
    let mut streamer = scene.streamer(Sending {
        pid: numbers.pid,
        host,
        way: Fleet::WAY,
        spill: Some(spill),
    });
    let written = numbers.finish();
    scene.sent(host, &mut streamer, || fleet.revive(scene));
    written
}

fn report(size: &Size, fleet: &Fleet, written: &BTreeSet<String>) {
    let (kills, with_pages) = fleet.faulty.kills();
    println!(
        "{} lines of {} hosts, {:?}, {kills} kills, {with_pages} of them with pages under way, {} starts, {} connections",
        written.len(),
        size.hosts,
        fleet.faulty.faults(),
        fleet.starts,
        fleet.way.connections()
    );
    for (fault, each) in size.kinds() {
        let times = fleet.faulty.faults()[&fault];
        assert!(times >= each, "{times} times {fault:?}");
    }
    assert!(10 * with_pages >= 9 * kills, "{with_pages} of {kills}");
}

/// Compares what is lost with what the store says of it, and adds what the host without room did not lose to the list.
fn account(scene: &Scene, small: Vec<String>, written: &mut BTreeSet<String>) {
    let verified = |host: &str| -> serde_json::Value {
        let told = scene.told(&["verify", "--json", "--host", host]);
        serde_json::from_slice(&told.stdout).expect("JSON")
    };
    let lost = |of: &serde_json::Value| of["lost"].as_u64().unwrap();
    for host in ["web-*", LATE, SMALL] {
        let of = verified(host);
        for figure in ["missing", "late", "unknown", "conflicts", "damaged"] {
            assert_eq!(of[figure], 0, "{figure}: {of}");
        }
        assert_eq!(of["complete"], true, "{of}");
        assert!(host == SMALL || lost(&of) == 0, "{of}");
    }
    let found: Found = scanned(scene);
    let (kept, gone): (Vec<_>, Vec<_>) =
        small.into_iter().partition(|line| found.contains_key(line));
    let lost = lost(&verified(SMALL));
    println!(
        "{SMALL}: {} kept, {} gone, {lost} lost",
        kept.len(),
        gone.len()
    );
    assert!(
        lost > 0 && gone.len() as u64 == lost,
        "{lost}, {}",
        gone.len()
    );
    written.extend(kept);
}
