//! Promise: collectors that share one store of objects and keep nothing else take one session in turn, and are killed.
//! The store has each event once, whatever was put twice; a connection is acknowledged what is there. Damaged and foreign
//! files in the store are counted or ignored, never fatal and never removed.

#[path = "object_collectors/rolling_restart.rs"]
mod rolling_restart;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringmark_decoder::store::{SegmentFooter, is_raw, objects_below, schema_session};
use ringmark_reader::StreamStatus;
use ringmark_reader::{Access, Session};
use ringmark_tests::collecting::wait_for_listener;
use ringmark_tests::fixture::{Counters, Fixture, SOON};
use ringmark_tests::json_schema::checked;
use ringmark_tests::proxy::Proxy;
use ringmark_tests::random::Random;
use ringmark_tests::{Running, binary, over_kills, run, wait_until};
use rustix::process::Signal;

const EMIT: &str = ringmark_tests::program!("emit");
const LONG: Duration = Duration::from_secs(120);
const COLLECTORS: usize = 3;

fn socket(fixture: &Fixture, number: usize) -> PathBuf {
    fixture.path(&format!("socket-{number}"))
}

fn store(fixture: &Fixture) -> PathBuf {
    fixture.path("objects")
}

fn collector(fixture: &Fixture, number: usize, flush: &str) -> Running {
    let socket = socket(fixture, number);
    let listen = format!("unix://{}", socket.display());
    let objects = format!("file://{}", store(fixture).display());
    let mut command = fixture.command(binary::path());
    command.args(["collect", "--sync", "cache", "--flush", flush]);
    command.args(["--listen", &listen, "--objects", &objects]);
    let running = Running::start(&mut command).unwrap();
    wait_for_listener(&socket);
    running
}

/// The segments of the store.
fn raw(fixture: &Fixture) -> Vec<PathBuf> {
    let store = store(fixture);
    let names = objects_below(&store, "raw").unwrap();
    let raw = names.iter().filter(|name| is_raw(name));
    raw.map(|name| store.join(name)).collect()
}

fn told(fixture: &Fixture, words: &[&str], path: &Path, codes: &[i32]) -> String {
    let mut command = fixture.command(binary::path());
    let done = run(command.args(words).arg(path), LONG).unwrap();
    assert!(
        codes.contains(&done.code()),
        "{words:?}: {}: {}",
        done.code(),
        done.stderr_text()
    );
    done.stdout_text()
}

fn verified(fixture: &Fixture, path: &Path, codes: &[i32]) -> serde_json::Value {
    serde_json::from_str(&told(fixture, &["verify", "--json"], path, codes)).unwrap()
}

fn number(of: &serde_json::Value, name: &str) -> u64 {
    of[name].as_u64().unwrap()
}

/// The events that `cat`, `report` and `export --format csv` find, which all are of `emit`.
fn counts(fixture: &Fixture, path: &Path) -> [u64; 3] {
    let is_event = |line: &&str| line.contains("\"kind\":\"event\"");
    let cat = told(fixture, &["cat", "--json"], path, &[0]);
    let rows = told(fixture, &["report", "--json"], path, &[0]);
    let row = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let rows = rows.lines().map(row).filter(|row| row["of"] == "event");
    let scanned = told(
        fixture,
        &["export", "--format", "csv", "-o", "-"],
        path,
        &[0],
    );
    [
        cat.lines().filter(is_event).count() as u64,
        rows.map(|row| number(&row, "count")).sum(),
        scanned.lines().count() as u64 - 1,
    ]
}

/// Streams a program over collectors that are killed in turn; it is not there any more.
fn stream_over_kills(fixture: &Fixture, counters: &Counters) {
    let start = |number| collector(fixture, number, "30ms");
    let mut fleet: Vec<_> = (0..COLLECTORS).map(start).collect();
    let sockets: Vec<_> = (0..COLLECTORS).map(|n| socket(fixture, n)).collect();
    let way = fixture.path("way");
    let proxy = Proxy::in_turn(&way, &sockets);
    let of = (fixture, EMIT, "mode=discard,ring=4M,page=4K,session=32M");
    over_kills::stream_over_kills(of, counters, &way, |kill| {
        let number = kill % COLLECTORS;
        drop(fleet.remove(number).kill().unwrap());
        fleet.insert(number, start(number));
    });
    println!("{} connections", proxy.connections());
}

/// The footers of all segments, each of which has one.
fn footers(fixture: &Fixture) -> Vec<SegmentFooter> {
    let read = |path: PathBuf| {
        let segment = fs::read(&path).unwrap();
        let bytes = SegmentFooter::end_bytes(&segment);
        let footer = bytes.and_then(|bytes| SegmentFooter::read(&segment[segment.len() - bytes..]));
        footer.unwrap_or_else(|| panic!("{}: no footer", path.display()))
    };
    raw(fixture).into_iter().map(read).collect()
}

#[test]
fn killed_in_turn() {
    let fixture = Fixture::new("objects");
    let counters = Counters::new(fixture.path("committed"));
    stream_over_kills(&fixture, &counters);
    let store = store(&fixture);
    let all = verified(&fixture, &store, &[0]);
    for none in ["lost", "missing", "late", "unknown", "conflicts", "damaged"] {
        assert_eq!(number(&all, none), 0, "{none}: {all}");
    }
    assert_eq!(all["complete"], true, "{all}");
    let events = number(&all, "events");
    let ledger = counters.ledger(2);
    let (least, most) = ledger.iter().fold((0, 0), |(a, b), (x, y)| (a + x, b + y));
    assert!((least..=most).contains(&events), "{least} to {most}: {all}");
    assert_eq!(counts(&fixture, &store), [events; 3]);

    let footers = footers(&fixture);
    let collectors: Vec<_> = raw(&fixture)
        .iter()
        .map(|path| path.parent().unwrap().to_owned())
        .collect();
    let is_new = |at: &usize| !collectors[..*at].contains(&collectors[*at]);
    let took = (0..collectors.len()).filter(is_new).count();
    println!(
        "{events} events in {} segments of {took} collectors, {} copies",
        footers.len(),
        number(&all, "repeated")
    );
    assert!(took > 1, "one collector took all");
    assert!(footers.iter().all(|footer| footer.sessions.len() == 1));
    let epochs: Vec<_> = footers
        .iter()
        .map(|footer| footer.sessions[0].epoch)
        .collect();
    assert!(epochs.iter().all(|epoch| *epoch > 0), "{epochs:?}");
    // Schema that was acknowledged is not sent again.
    let schema = objects_below(&store, "schema").unwrap();
    assert!(
        schema.iter().all(|name| schema_session(name).is_some()),
        "{schema:?}"
    );

    accounts(&fixture, events);
    put_twice(&fixture, events);
    accounts(&fixture, events);
    damage(&fixture, events);
}

/// What `store` says of the host: each event once, the bytes of each object but its footer, and the schema.
fn accounts(fixture: &Fixture, events: u64) {
    let store = store(fixture);
    let listed = |words: &[&str]| -> Vec<serde_json::Value> {
        let words = [&["store", "ls", "--json"], words].concat();
        checked(&told(fixture, &words, &store, &[0]))
    };
    let all = listed(&[]);
    let raw = raw(fixture);
    assert_eq!(all.len(), 1, "one host, one service: {all:?}");
    assert_eq!(number(&all[0], "written"), events);
    assert_eq!(number(&all[0], "segments"), raw.len() as u64);
    assert_eq!(number(&all[0], "sessions"), 1);
    let segments = footers(fixture)
        .iter()
        .map(|footer| footer.segment_bytes)
        .sum::<u64>();
    let schema = objects_below(&store, "schema").unwrap();
    let schema = schema
        .iter()
        .map(|name| fs::metadata(store.join(name)).unwrap().len());
    assert_eq!(number(&all[0], "bytes"), segments + schema.sum::<u64>());
    // Two hours, if one ended during the test.
    let hours = listed(&["--by", "hour"]);
    assert!((1..=2).contains(&hours.len()), "{hours:?}");
    let sum = |name| hours.iter().map(|hour| number(hour, name)).sum::<u64>();
    assert_eq!(sum("bytes"), number(&all[0], "bytes"));
    assert!(sum("written") >= events && hours.iter().all(|hour| hour["period"].is_string()));
}

/// The same pages in objects of another collector, as after an answer that got lost: each counts once.
fn put_twice(fixture: &Fixture, events: u64) {
    for path in raw(fixture) {
        let other = path
            .parent()
            .unwrap()
            .with_file_name("0a0a0a0a-0a0a-0a0a-0a0a-0a0a0a0a0a0a");
        fs::create_dir_all(&other).unwrap();
        let number = fs::read_dir(&other).unwrap().count();
        fs::copy(&path, other.join(format!("{number:012}.rms"))).unwrap();
    }
    let store = store(fixture);
    let all = verified(fixture, &store, &[0]);
    assert_eq!(number(&all, "events"), events);
    assert!(
        number(&all, "repeated") > 0 && number(&all, "conflicts") == 0,
        "{all}"
    );
    assert_eq!(counts(fixture, &store), [events; 3]);
}

/// Truncated, altered, foreign and oddly named files: what is damaged is told, the rest is there.
fn damage(fixture: &Fixture, events: u64) {
    let store = store(fixture);
    let foreign = [
        ("raw/v2/notes.txt", "mine"),
        ("raw/v2/2026-11-26-19/x/000000000000.rms", "mine"),
        ("raw/v3/000000000000.rms", "mine"),
        ("schema/host/x/0-1-00000000.rms", "mine"),
        (
            "raw/v2/2026-11-26-19/0b0a0a0a-0a0a-0a0a-0a0a-0a0a0a0a0a0a/000000000000.rms.tmp",
            "mine",
        ),
    ];
    for (name, text) in foreign {
        fs::create_dir_all(store.join(name).parent().unwrap()).unwrap();
        fs::write(store.join(name), text).unwrap();
    }
    assert_eq!(number(&verified(fixture, &store, &[0]), "events"), events);

    // The copies are damaged, the first objects are whole.
    let copies: Vec<_> = raw(fixture)
        .into_iter()
        .filter(|path| path.to_string_lossy().contains("/0a0a0a0a-"))
        .collect();
    let mut random = Random::seeded();
    for path in &copies {
        let mut bytes = fs::read(path).unwrap();
        match random.below(4) {
            0 => bytes.truncate(random.below(bytes.len() as u64) as usize),
            1 => bytes.clear(),
            _ => {
                for _ in 0..1 + random.below(20) {
                    let at = random.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << random.below(8);
                }
            }
        }
        fs::write(path, bytes).unwrap();
    }
    let all = verified(fixture, &store, &[0, 1]);
    assert_eq!(
        (number(&all, "events"), number(&all, "conflicts")),
        (events, 0),
        "{all}"
    );
    assert!(number(&all, "damaged") > 0, "{all}");
    // Another collector opens the store, and nothing that is not its own goes.
    let again = collector(fixture, 0, "30ms");
    drop(again.kill().unwrap());
    for (name, text) in foreign {
        assert_eq!(
            fs::read_to_string(store.join(name)).unwrap(),
            text,
            "{name}"
        );
    }
    assert!(copies.iter().all(|path| path.exists()));
}

/// Pages of a session that its streamer has released.
fn released(ring_file: &Path) -> u64 {
    let session = Session::open(ring_file, Access::Observe).unwrap();
    let ring = session.ring();
    (0..ring.slots_used())
        .filter_map(|slot| ring.slot(slot))
        .map(|slot| slot.consumed())
        .sum()
}

/// What was not put is not acknowledged: while objects cannot be written, pages stay where they are, and nothing is lost.
#[test]
fn a_store_that_is_away_is_waited_for() {
    let fixture = Fixture::new("objects-away");
    let counters = Counters::new(fixture.path("committed"));
    let taking = collector(&fixture, 0, "30ms");
    let store = store(&fixture);
    // No directory can be made below a file.
    fs::write(store.join("raw"), "in the way").unwrap();
    let ringmark = "mode=discard,ring=4M,page=4K,session=32M,keep=always";
    let arguments = format!("2 2000 {}", counters.argument());
    let program = fixture.start(EMIT, ringmark, &arguments);
    let _ = program.finish(SOON).expect_code(0);
    let to = format!("unix://{}", socket(&fixture, 0).display());
    let mut command = fixture.command(binary::path());
    let ring_file = fixture.ring_file();
    let streamer = Running::start(command.args(["stream", "--all", "--to", &to])).unwrap();
    let session = Session::open(&ring_file, Access::Observe).unwrap();
    wait_until(LONG, "pages that are under way", || {
        StreamStatus::of(&session).filter(|status| status.in_flight > 0)
    });
    streamer.wait_for_sleeps(50);
    assert_eq!(
        released(&ring_file),
        0,
        "what was not put is not acknowledged"
    );
    fs::remove_file(store.join("raw")).unwrap();
    wait_until(LONG, "objects", || {
        (!raw(&fixture).is_empty()).then_some(())
    });
    streamer.signal(Signal::INT).unwrap();
    let _ = streamer.finish(LONG).expect_code(0);
    let told = taking.kill().unwrap().stderr_text();
    assert!(
        told.contains("streamers wait, nothing is refused"),
        "{told}"
    );
    let all = verified(&fixture, &store, &[0]);
    assert_eq!(
        (number(&all, "events"), number(&all, "lost")),
        (4000, 0),
        "{all}"
    );
}

/// Collectors with a directory and with objects do not take each other's store.
#[test]
fn another_store_is_refused_by_name() {
    let fixture = Fixture::new("objects-refused");
    let directory = fixture.path("directory");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("mine"), "1").unwrap();
    let refused = |directory: &Path| {
        let mut command = fixture.command(binary::path());
        let listen = format!("unix://{}", socket(&fixture, 1).display());
        let objects = format!("file://{}", directory.display());
        command.args(["collect", "--listen", &listen, "--objects", &objects]);
        run(&mut command, SOON)
            .unwrap()
            .expect_code(2)
            .stderr_text()
    };
    assert!(refused(&directory).contains("expected a store of objects or an empty directory"));
    fs::write(
        directory.join("ringmark-store.json"),
        "{\"version\":3,\"store\":\"x\"}",
    )
    .unwrap();
    let told = refused(&directory);
    assert!(told.contains("version 3"), "{told}");
    fs::write(directory.join("store.id"), "").unwrap();
    assert!(refused(&directory).contains("--store"));
    assert_eq!(fs::read_to_string(directory.join("mine")).unwrap(), "1");
}
