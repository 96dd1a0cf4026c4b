//! Promise: collectors with a store each, behind one address, take one session in turn. Read together, their stores
//! hold each event once, whichever collectors are killed; a store that is left out is missed by what it held. What a
//! damaged spill cost is told to the collector that comes next.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringmark_tests::collecting::{segments, wait_for_listener};
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Counters, Fixture};
use ringmark_tests::proxy::Proxy;
use ringmark_tests::recording::decode;
use ringmark_tests::store_contents::sealed;
use ringmark_tests::{Running, binary, over_kills, run, wait_until};

const EMIT: &str = ringmark_tests::program!("emit");
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
    collector_at(fixture, &socket(fixture, number), number)
}

fn collector_at(fixture: &Fixture, socket: &Path, number: usize) -> Running {
    let listen = format!("unix://{}", socket.display());
    let mut command = fixture.command(binary::path());
    command.args(["collect", "--sync", "cache", "--listen", &listen, "--store"]);
    let running = Running::start(command.arg(store(fixture, number))).unwrap();
    wait_for_listener(socket);
    running
}

/// What `verify --json` says about these stores.
fn verified(fixture: &Fixture, stores: &[PathBuf], codes: &[i32]) -> serde_json::Value {
    let mut command = fixture.command(binary::path());
    let verified = run(command.args(["verify", "--json"]).args(stores), LONG);
    let told = verified.unwrap();
    assert!(
        codes.contains(&told.code()),
        "{}: {}",
        told.code(),
        told.stderr_text()
    );
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

/// The events that `report` counts in these stores.
fn reported(fixture: &Fixture, stores: &[PathBuf]) -> u64 {
    let mut command = fixture.command(binary::path());
    let reported = run(command.args(["report", "--json"]).args(stores), LONG);
    let told = reported.unwrap().expect_code(0);
    let text = told.stdout_text();
    let row = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let rows = text.lines().map(row);
    let rows = rows.filter(|row| row["of"] == "event");
    rows.map(|row| number(&row, "count")).sum()
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
    over_kills::stream_over_kills((fixture, EMIT, &ringmark), counters, &way, |kill| {
        fleet.kill(kill % COLLECTORS);
    });
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
    let all = verified(&fixture, &stores, &[0]);
    assert_eq!(number(&all, "events"), account.delivered());
    for none in ["lost", "missing", "late", "unknown", "conflicts"] {
        assert_eq!(number(&all, none), 0, "{none}: {all}");
    }
    assert_eq!(all["complete"], true, "{all}");
    assert_eq!(lines(&fixture, &stores), account.delivered());
    assert_eq!(reported(&fixture, &stores), account.delivered());
    let (distinct, copies) = sealed(&all_segments(&stores));
    println!(
        "{} events, {distinct} pages, {copies} copies",
        account.delivered()
    );

    // A store alone is not complete: it says that what the others took is missing, if anything told it so. One that
    // has the first pages alone does not know that there are more.
    let mut told = 0;
    for store in &stores {
        let alone = verified(&fixture, std::slice::from_ref(store), &[0, 1]);
        assert!(number(&alone, "events") < account.delivered(), "{alone}");
        assert_eq!(alone["complete"], false, "{alone}");
        assert_eq!(number(&alone, "lost"), 0, "{alone}");
        told += u64::from(number(&alone, "missing") > 0);
    }
    assert!(told > 0, "the store with the end knows of what came before");
}

/// A flight recorder that is sent as it goes: what is not there was overwritten, and nothing is missing.
#[test]
fn what_a_flight_recorder_overwrote_is_not_missing() {
    let fixture = Fixture::new("several-overwrite");
    let counters = Counters::new(fixture.path("committed"));
    let stores = stream_over_kills(&fixture, "overwrite,ring=64K", &counters);
    let all = verified(&fixture, &stores, &[0]);
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

/// One collector takes the beginning and is killed; what then waits on disk is damaged. The next collector, with a
/// store of its own, is told which pages will never come: both stores together account for every event.
#[test]
fn what_a_damaged_spill_cost_is_told_to_the_next() {
    let fixture = Fixture::new("several-spill");
    let counters = Counters::new(fixture.path("committed"));
    let (way, spill) = (fixture.path("way"), fixture.path("spill"));
    let first = collector_at(&fixture, &way, 0);
    let arguments = format!(
        "2 100000000 bulk=200 burst=20 pause=2000 {}",
        counters.argument()
    );
    let ringmark = "mode=discard,ring=4M,page=4K,session=32M";
    let program = fixture.start(EMIT, ringmark, &arguments);
    counters.wait_for(2);
    let to = format!("unix://{}", way.display());
    let mut command = fixture.command(binary::path());
    command.args(["stream", "-p", &program.id().to_string()]);
    command.args(["--to", &to, "--spill"]).arg(&spill);
    let streamer = Running::start(&mut command).unwrap();
    wait_until(LONG, "the first collector has some", || {
        (!segments(&store(&fixture, 0)).is_empty()).then_some(())
    });
    drop(first.kill().unwrap());
    let waiting = wait_until(LONG, "pages wait on disk", || {
        let files = fs::read_dir(&spill).ok()?.flatten();
        let bytes = |file: fs::DirEntry| Some((file.metadata().ok()?.len(), file.path()));
        files
            .filter_map(bytes)
            .max()
            .filter(|(bytes, _)| *bytes > 300_000)
    });
    // Everything from there to the end of that file cannot be read.
    let damaged = fs::OpenOptions::new().write(true).open(&waiting.1).unwrap();
    damaged.write_all_at(&[0xA5; 512], waiting.0 / 2).unwrap();
    let second = collector_at(&fixture, &way, 1);
    wait_until(LONG, "the second collector has some", || {
        (!segments(&store(&fixture, 1)).is_empty()).then_some(())
    });
    drop(program.kill().unwrap());
    let told = streamer.finish(LONG).expect_code(0).stderr_text();
    drop(second.kill().unwrap());
    assert!(told.contains("the rest of it is left out"), "{told}");

    let stores = [0, 1].map(|number| store(&fixture, number));
    let all = verified(&fixture, &stores, &[1]);
    for none in ["missing", "late", "unknown", "conflicts"] {
        assert_eq!(number(&all, none), 0, "{none}: {all}");
    }
    let ledger = counters.ledger(2);
    let (least, most) = ledger.iter().fold((0, 0), |(a, b), (x, y)| (a + x, b + y));
    let (events, lost) = (number(&all, "events"), number(&all, "lost"));
    println!("{events} events, {lost} lost");
    assert!(
        lost > 0 && (least..=most).contains(&(events + lost)),
        "{least} to {most}: {all}"
    );
}
