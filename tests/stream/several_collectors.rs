//! Promise: collectors with a store each, behind one address, take one session in turn. Read together, their stores
//! hold each event once, whichever collectors are killed; a store that is left out is missed by what it held.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use ringmark_tests::collecting::{segments, wait_for_listener};
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Counters, Fixture};
use ringmark_tests::proxy::Proxy;
use ringmark_tests::random::Random;
use ringmark_tests::recording::decode;
use ringmark_tests::store_contents::sealed;
use ringmark_tests::{Running, binary, is_long, run};

const EMIT: &str = env!("CARGO_BIN_EXE_emit");
const LONG: Duration = Duration::from_secs(120);
const COLLECTORS: usize = 3;

/// Collectors, each with a socket and a store of its own.
struct Fleet<'f> {
    fixture: &'f Fixture,
    running: Vec<Running>,
}

impl<'f> Fleet<'f> {
    fn start(fixture: &'f Fixture) -> Self {
        let running = (0..COLLECTORS).map(|number| collector(fixture, number));
        Self {
            fixture,
            running: running.collect(),
        }
    }

    /// Kills one, and starts it again at the same place.
    fn kill(&mut self, number: usize) {
        drop(self.running.remove(number).kill().unwrap());
        let again = collector(self.fixture, number);
        self.running.insert(number, again);
    }
}

fn socket(fixture: &Fixture, number: usize) -> PathBuf {
    fixture.path(&format!("socket-{number}"))
}

fn store(fixture: &Fixture, number: usize) -> PathBuf {
    fixture.path(&format!("store-{number}"))
}

fn collector(fixture: &Fixture, number: usize) -> Running {
    let socket = socket(fixture, number);
    let listen = format!("unix://{}", socket.display());
    let mut command = fixture.command(binary::path());
    command.args(["collect", "--sync", "cache", "--listen", &listen, "--store"]);
    let running = Running::start(command.arg(store(fixture, number))).unwrap();
    wait_for_listener(&socket);
    running
}

/// What `verify --json` says about these stores.
fn verified(fixture: &Fixture, stores: &[PathBuf], code: i32) -> serde_json::Value {
    let mut command = fixture.command(binary::path());
    let verified = run(command.args(["verify", "--json"]).args(stores), LONG);
    let told = verified.unwrap().expect_code(code);
    serde_json::from_slice(&told.stdout).unwrap()
}

/// The lines of `cat` for these stores that are events.
fn lines(fixture: &Fixture, stores: &[PathBuf]) -> u64 {
    let mut command = fixture.command(binary::path());
    let shown = run(command.args(["cat", "--json"]).args(stores), LONG);
    let shown = shown.unwrap().expect_code(0);
    let text = String::from_utf8(shown.stdout).unwrap();
    let is_event = |line: &&str| line.contains("\"kind\":\"event\"");
    text.lines().filter(is_event).count() as u64
}

fn number(of: &serde_json::Value, name: &str) -> u64 {
    of[name].as_u64().unwrap()
}

/// Streams a program in this mode over collectors that are killed in turn; returns the stores that
/// hold something.
fn stream_over_kills(fixture: &Fixture, mode: &str, counters: &Counters) -> Vec<PathBuf> {
    let _ = binary::path();
    let mut fleet = Fleet::start(fixture);
    let sockets: Vec<_> = (0..COLLECTORS).map(|n| socket(fixture, n)).collect();
    let way = fixture.path("way");
    let proxy = Proxy::in_turn(&way, &sockets);
    let ringmark = format!("mode={mode},page=4K,session=32M");
    let arguments = format!("2 100000000 burst=20 pause=2000 {}", counters.argument());
    let program = fixture.start(EMIT, &ringmark, &arguments);
    counters.wait_for(2);
    let to = format!("unix://{}", way.display());
    let mut command = fixture.command(binary::path());
    command.args(["stream", "-p", &program.id().to_string(), "--to", &to]);
    let streamer = Running::start(command.args(["--open-every", "10ms"])).unwrap();
    let mut random = Random::seeded();
    for kill in 0..if is_long() { 100 } else { 9 } {
        sleep(Duration::from_millis(40 + random.below(120)));
        fleet.kill(kill % COLLECTORS);
    }
    drop(program.kill().unwrap());
    let _ = streamer.finish(LONG).expect_code(0);
    println!("{} connections", proxy.connections());
    drop((proxy, fleet));
    // A collector that was killed each time its turn came has taken nothing.
    let stores = (0..COLLECTORS).map(|n| store(fixture, n));
    let taken: Vec<_> = stores.filter(|store| !segments(store).is_empty()).collect();
    assert!(taken.len() > 1, "one collector took all");
    taken
}

fn all_segments(stores: &[PathBuf]) -> Vec<PathBuf> {
    stores
        .iter()
        .flat_map(|store: &PathBuf| segments(Path::new(store)))
        .collect()
}

#[test]
fn killed_in_turn() {
    let fixture = Fixture::new("several");
    let counters = Counters::new(fixture.path("committed"));
    let stores = stream_over_kills(&fixture, "discard,ring=4M", &counters);
    let dump = decode(&all_segments(&stores));
    assert_eq!((dump.conflicts, dump.damage.len()), (0, 0));
    let account = Delivery::of(&dump);
    account.expect_no_errors();
    assert_eq!(account.lost(), 0);
    for (thread, (returned, begun)) in counters.ledger(2).iter().enumerate() {
        let rings = account.rings.values();
        let of_thread = rings.filter(|ring| ring.thread == Some(thread as u64));
        let delivered: u64 = of_thread.map(|ring| ring.delivered).sum();
        assert!(
            (*returned..=*begun).contains(&delivered),
            "thread {thread}: {returned} to {begun} events were written, {delivered} are here"
        );
    }
    let all = verified(&fixture, &stores, 0);
    assert_eq!(number(&all, "events"), account.delivered());
    for none in ["lost", "missing", "late", "unknown", "conflicts"] {
        assert_eq!(number(&all, none), 0, "{none}: {all}");
    }
    assert_eq!(all["complete"], true, "{all}");
    assert_eq!(lines(&fixture, &stores), account.delivered());
    let (distinct, copies) = sealed(&all_segments(&stores));
    println!(
        "{} events, {distinct} pages, {copies} copies",
        account.delivered()
    );

    // Each store alone says that what the others took is missing, and no event is lost.
    for store in &stores {
        let alone = verified(&fixture, std::slice::from_ref(store), 1);
        let (here, missing) = (number(&alone, "events"), number(&alone, "missing"));
        assert!(here < account.delivered() && missing > 0, "{alone}");
        assert_eq!(number(&alone, "lost"), 0, "{alone}");
    }
}

/// A flight recorder that is sent as it goes: what is not there was overwritten, and nothing is missing.
#[test]
fn what_a_flight_recorder_overwrote_is_not_missing() {
    let fixture = Fixture::new("several-overwrite");
    let counters = Counters::new(fixture.path("committed"));
    let stores = stream_over_kills(&fixture, "overwrite,ring=64K", &counters);
    let all = verified(&fixture, &stores, 0);
    for none in ["lost", "missing", "late", "unknown", "conflicts"] {
        assert_eq!(number(&all, none), 0, "{none}: {all}");
    }
    let ledger = counters.ledger(2);
    let (least, most) = ledger.iter().fold((0, 0), |(a, b), (x, y)| (a + x, b + y));
    let accounted = number(&all, "events") + number(&all, "overwritten");
    assert!(
        (least..=most).contains(&accounted),
        "{least} to {most}: {all}"
    );
    println!(
        "{} events, {} overwritten",
        number(&all, "events"),
        number(&all, "overwritten")
    );
}
