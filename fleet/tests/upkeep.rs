//! Promise: what a run deletes or removes of the tables is what was asked for, and nothing that is not its own.

#[path = "../../decoder/tests/common/mod.rs"]
mod common;
mod common_store;

use std::fs;
use std::time::{Duration, SystemTime};

use common_store::{Store, begun, put, segments, sessions};

/// The time of two days ago.
fn two_days_ago() -> SystemTime {
    SystemTime::now() - Duration::from_secs(2 * 24 * 3600)
}

#[test]
fn files_that_no_log_names_go_when_they_are_old() {
    let sent = sessions();
    let store = begun("orphans", &sent);
    for (number, of) in segments(&sent, 2).iter().enumerate() {
        put(&store, number, of);
        store.compact();
    }
    let (rows, known) = (store.rows(), store.files("spans"));
    let uuid = "ab09368f-5897-40e1-b114-dec2f84826c3";
    let copy = |name: &str, time: SystemTime| {
        let path = known[0].with_file_name(name);
        fs::copy(&known[0], &path).expect("a copy");
        let file = fs::File::options().write(true).open(&path).expect("a file");
        file.set_modified(time).expect("a time");
        path
    };
    for file in &known {
        let file = fs::File::options().write(true).open(file).expect("a file");
        file.set_modified(two_days_ago()).expect("a time");
    }
    let old = [format!("{uuid}-0.parquet"), format!("{uuid}-m1.parquet")];
    let old = old.map(|name| copy(&name, two_days_ago()));
    let kept = [
        copy(&format!("{uuid}-2.parquet"), SystemTime::now()),
        copy("another.parquet", two_days_ago()),
        copy(&format!("{uuid}-3.parquet.crc"), two_days_ago()),
    ];
    let said = store.compact();
    assert!(said.contains("2 files deleted that no log names"), "{said}");
    assert!(old.iter().all(|file| !file.exists()));
    assert!(kept.iter().chain(&known).all(|file| file.exists()));
    assert_eq!(store.rows(), rows);
}

/// Rows of a host in the table of losses.
fn losses_of(store: &Store, host: &str) -> usize {
    let files = store.files("losses").into_iter();
    let batches = files.flat_map(|file| common_store::batches(&file));
    let rows = batches.map(|batch| {
        let hosts = batch.column_by_name("host").expect("a column").clone();
        let is_of = |row: &usize| common_store::cell(&hosts, *row) == host;
        (0..batch.num_rows()).filter(is_of).count()
    });
    rows.sum()
}

/// Makes the removals of a version of the log of spans a day older.
fn make_older(store: &Store, version: usize) {
    let log = store.0.join("tables/spans/_delta_log");
    let version = log.join(format!("{version:020}.json"));
    let text = fs::read_to_string(&version).expect("a version");
    let at = text
        .split("\"deletionTimestamp\":")
        .nth(1)
        .expect("a removal");
    let at: String = at.chars().take_while(char::is_ascii_digit).collect();
    let earlier = at.parse::<u64>().expect("a time") - 25 * 3600 * 1000;
    fs::write(&version, text.replace(&at, &earlier.to_string())).expect("a version");
}

#[test]
fn the_rows_of_a_host_are_removed_and_its_files_a_day_later() {
    let mut sent = sessions();
    sent[1].host = "web-2";
    let store = begun("host", &sent);
    let segments = segments(&sent, 3);
    for (number, of) in segments.iter().take(2).enumerate() {
        put(&store, number, of);
        store.compact();
    }
    // A file of this host alone.
    let of_one = segments[2].iter().filter(|(sent, _)| sent.host == "web-2");
    let of_one: Vec<_> = of_one
        .map(|(sent, blocks)| (*sent, blocks.clone()))
        .collect();
    put(&store, 2, &of_one);
    store.compact();
    let (before, former) = (store.rows(), store.files("spans"));
    let is_other = |row: &&String| !row.contains("|web-2|");
    let expected: Vec<_> = before.iter().filter(is_other).cloned().collect();
    assert!(expected.len() > 100 && before.len() > expected.len() + 100);
    let versions = || common_store::below(&store.0.join("tables/spans/_delta_log"));
    let losses = || losses_of(&store, "web-2");
    let (count, lost) = (versions(), losses());
    let said = store.compact_with("compact . --rm-host web-2");
    let removed = before.len() - expected.len() + lost;
    assert!(
        said.contains(&format!("{removed} rows of web-2 removed")),
        "{said}"
    );
    assert_eq!(
        (store.rows(), losses(), versions()),
        (expected.clone(), 0, count + 1)
    );
    assert!(store.files("spans").len() < former.len());
    assert!(
        former.iter().all(|file| file.exists()),
        "queries may still read them"
    );
    let said = store.compact_with("compact . --rm-host web-2");
    assert!(said.contains("0 rows of web-2 removed"), "{said}");
    assert_eq!(versions(), count + 1);
    // A day later.
    make_older(&store, count);
    put(&store, 3, &segments[2]);
    store.compact();
    let left = former.iter().filter(|file| file.exists()).count();
    assert_eq!(
        left,
        former
            .iter()
            .filter(|file| store.files("spans").contains(file))
            .count()
    );
}

#[test]
fn pages_of_forgotten_sessions_get_no_rows_and_stay() {
    let sent = sessions();
    let store = begun("late-weeks", &sent);
    let segments = segments(&sent, 3);
    for (number, of) in segments.iter().enumerate() {
        put(&store, number, of);
    }
    store.compact();
    let rows = store.rows();
    // Its sessions were over eight days ago.
    let state = store.0.join("tables/state");
    let plans = fs::read_dir(state)
        .expect("plans")
        .map(|entry| entry.expect("one").path());
    let plan = plans
        .filter(|path| path.extension().is_some_and(|of| of == "json"))
        .max();
    let plan = plan.expect("a plan");
    let text = fs::read_to_string(&plan).expect("a plan");
    let mut value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for session in value["sessions"].as_array_mut().expect("sessions") {
        let over_ns = session["over_ns"].as_u64().expect("it is over");
        session["over_ns"] = (over_ns - 8 * 24 * 3600 * 1_000_000_000).into();
    }
    fs::write(&plan, value.to_string()).expect("a plan");
    // They are known for the last time.
    put(&store, 5, &segments[0]);
    assert!(!store.compact().contains("a week after"));
    let pages = segments[1]
        .iter()
        .map(|(_, blocks)| pages_in(blocks))
        .sum::<usize>();
    assert!(pages > 2);
    for number in [6, 7] {
        put(&store, number, &segments[1]);
        let said = store.compact();
        let lines = [
            format!("without rows: {pages}\n"),
            format!("and are kept: {}\n", number - 5),
        ];
        assert!(lines.iter().all(|line| said.contains(line)), "{said}");
    }
    assert_eq!(store.rows(), rows);
    store.compact_with("compact . --keep-raw 0s");
    assert_eq!(common_store::below(&store.0.join("raw")), 2);
    assert!(store.compact().contains("0 rows of 0 segments"));
}

#[test]
fn a_damaged_segment_is_told_and_kept() {
    let sent = sessions();
    let store = begun("damaged", &sent);
    for (number, of) in segments(&sent, 3).iter().enumerate() {
        put(&store, number, of);
    }
    let collectors =
        fs::read_dir(store.0.join("raw/v2").join(common_store::hour())).expect("a directory");
    let collector = collectors.map(|entry| entry.expect("one").path()).next();
    let path = collector.expect("a collector").join("000000000001.rms");
    let mut bytes = fs::read(&path).expect("a segment");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xA5);
    fs::write(&path, bytes).expect("a segment");
    for run in 0..2 {
        let done = store.command("compact . --keep-raw 0s").output();
        let done = done.expect("it runs");
        let said = common_store::said(&done);
        assert_eq!(done.status.code(), Some(1 - run), "{said}");
        assert!(said.contains("and are kept: 1\n"), "{said}");
    }
    assert!(path.exists());
    assert_eq!(common_store::below(&store.0.join("raw")), 1);
}

/// Number of the pages in blocks.
fn pages_in(blocks: &[u8]) -> usize {
    let blocks = ringmark_format::block_at::Blocks::new(blocks);
    blocks
        .filter(|block| block.header.kind == ringmark_format::block::kind::PAGE)
        .count()
}

#[test]
fn a_run_says_what_it_did_as_json() {
    let sent = sessions();
    let store = begun("json", &sent);
    for (number, of) in segments(&sent, 2).iter().enumerate() {
        put(&store, number, of);
    }
    let done = store.command("compact . --json --merge").output();
    let told = done.expect("it runs").stdout;
    let told: serde_json::Value = serde_json::from_slice(&told).expect("a line of JSON");
    assert_eq!(told["rows"], store.rows().len());
    assert_eq!(
        (&told["segments"], &told["late_pages"]),
        (&2.into(), &0.into())
    );
    let schema = include_str!("../../format-spec/json.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).expect("JSON");
    let required = schema["$defs"]["compacted"]["required"]
        .as_array()
        .expect("keys");
    let head = ["v", "kind", "session", "host", "service", "pid"];
    assert_eq!(
        told.as_object().expect("an object").len(),
        required.len() + head.len()
    );
    let keys = required
        .iter()
        .map(|key| key.as_str().expect("a key"))
        .chain(head);
    assert!(keys.clone().all(|key| told.get(key).is_some()), "{told}");
    assert_eq!(told["kind"], "compacted");
}

/// As on a full disk: what was begun of a file would be one more for each run.
#[test]
fn a_file_that_cannot_be_written_leaves_nothing() {
    let sent = sessions();
    let store = begun("no-room", &sent);
    put(&store, 0, &segments(&sent, 1)[0]);
    let compact = store.command("compact .");
    for _ in 0..2 {
        let mut limited = std::process::Command::new("sh");
        limited.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh"]);
        limited.arg(compact.get_program()).args(compact.get_args());
        let done = limited.current_dir(&store.0).output().expect("it runs");
        let said = common_store::said(&done);
        assert!(
            !done.status.success() && said.contains("File too large"),
            "{said}"
        );
        assert_eq!(common_store::below(&store.0.join("tmp")), 0, "{said}");
    }
    store.compact();
    store.check(&store.scanned(), "with room");
}
