//! Promise: the tables of a store have each row of an export once, whatever is killed in between, in whatever
//! order pages come, and whatever other runs there are at the same time.

#[path = "../../decoder/tests/common/mod.rs"]
mod common;
mod common_store;

use std::fs;
use std::time::Duration;

use common_store::{Sent, Store, begun, below, hour_before, put, put_in, segments, sessions};

#[test]
fn tables_have_the_rows_of_a_scan() {
    let sent = sessions();
    let store = begun("tables", &sent);
    let segments = segments(&sent, 7);
    for (number, of) in segments.iter().enumerate() {
        put(&store, number, of);
        // Some runs find one segment, some several.
        if number % 3 != 1 {
            store.compact();
        }
    }
    let rows = store.scanned();
    let unended = store.check(&rows, "all");
    assert!(rows.len() > 1000 && unended > 0, "{} {unended}", rows.len());
    let versions = fs::read_dir(store.0.join("tables/losses/_delta_log")).expect("a log");
    assert_eq!(versions.count(), 5);
    assert!(store.compact().contains("0 rows of 0 segments"));
}

#[test]
fn a_run_that_is_killed_at_any_step_is_taken_up() {
    let sent = sessions();
    let segments = segments(&sent, 3);
    let expected = {
        let store = begun("killed", &sent);
        segments
            .iter()
            .enumerate()
            .for_each(|(number, of)| put(&store, number, of));
        store.scanned()
    };
    let mut steps = 0;
    for at in 0.. {
        let store = begun("killed", &sent);
        put(&store, 0, &segments[0]);
        store.compact();
        put(&store, 1, &segments[1]);
        let mut command = store.command("compact .");
        command.env("RINGMARK_FLEET_ABORT_AT", at.to_string());
        let is_whole = command.output().expect("it runs").status.code().is_some();
        // What comes in between belongs to no batch that was decided before.
        put(&store, 2, &segments[2]);
        store.compact();
        store.check(&expected, &format!("step {at}"));
        steps += 1;
        if is_whole {
            break;
        }
    }
    assert!(steps > 10, "{steps} steps");
}

#[test]
fn two_at_the_same_time_give_each_row_once() {
    let sent = sessions();
    let store = begun("two", &sent);
    let segments = segments(&sent, 4);
    for (number, of) in segments.iter().enumerate() {
        put(&store, number, of);
        let runs: Vec<_> = (0..2)
            .map(|_| store.command("compact .").spawn().expect("it runs"))
            .collect();
        for mut run in runs {
            assert!(
                run.wait()
                    .expect("it ends")
                    .code()
                    .is_some_and(|code| code <= 1)
            );
        }
    }
    store.check(&store.scanned(), "all");
}

#[test]
fn a_segment_that_comes_late_or_twice_changes_nothing() {
    let sent = sessions();
    let store = begun("late", &sent);
    let segments = segments(&sent, 5);
    for number in [0, 3, 1] {
        put(&store, number, &segments[number]);
        store.compact();
    }
    put(&store, 4, &segments[4]);
    put(&store, 2, &segments[2]);
    // The same pages again, in a segment of their own.
    put(&store, 7, &segments[1]);
    store.compact();
    put(&store, 8, &segments[3]);
    store.compact();
    store.check(&store.scanned(), "all");
}

#[test]
fn merged_tables_have_the_same_rows_and_the_list_names_their_files() {
    let sent = sessions();
    let store = begun("merged", &sent);
    for (number, of) in segments(&sent, 6).iter().enumerate() {
        put(&store, number, of);
        store.compact();
    }
    let (rows, former) = (store.rows(), store.files("spans"));
    assert!(former.len() > 2);
    let said = store.compact_with("compact . --merge");
    assert!(said.contains("small files are 3 now"), "{said}");
    assert_eq!(store.rows(), rows);
    assert_eq!(store.files("spans").len(), 1);
    assert!(
        former.iter().all(|file| file.exists()),
        "queries may still read them"
    );
    let list = |words: &str| {
        let done = store.command(words).output().expect("it runs");
        assert!(done.status.success(), "{}", common_store::said(&done));
        String::from_utf8(done.stdout).expect("UTF-8")
    };
    let listed = list("store files . --table spans");
    let path = store.files("spans").remove(0);
    let path = path.canonicalize().expect("it is there");
    assert_eq!(listed.trim_end(), path.display().to_string());
    assert_eq!(
        list("store files . --table events --to 2026-01-01T00:00:00Z"),
        ""
    );
    assert!(
        store
            .compact_with("compact . --merge")
            .contains("0 small files are 0 now")
    );
}

#[test]
fn raw_goes_when_it_is_covered_and_old_and_schema_with_the_last_of_it() {
    let sent = sessions();
    let store = begun("raw", &sent);
    let segments = segments(&sent, 5);
    let raw = || common_store::below(&store.0.join("raw"));
    let schema = || common_store::below(&store.0.join("schema"));
    for number in [0, 1, 3] {
        put(&store, number, &segments[number]);
    }
    // Segment 3 waits for 2, and keeps all of the schema.
    let said = store.compact_with("compact . --keep-raw 0s");
    assert!(raw() >= 1 && schema() == 2, "{said}");
    put(&store, 2, &segments[2]);
    put(&store, 4, &segments[4]);
    let whole = {
        let store = begun("whole", &sent);
        segments
            .iter()
            .enumerate()
            .for_each(|(number, of)| put(&store, number, of));
        store.scanned()
    };
    let said = store.compact_with("compact . --keep-raw 100000h");
    assert!(said.contains("0 segments and 0 schema"), "{said}");
    store.check(&whole, "kept");
    store.compact_with("compact . --keep-raw 0s");
    assert_eq!((raw(), schema()), (0, 0));
    store.check(&whole, "deleted");
    // What was deleted and comes again is known.
    sent.iter().for_each(|sent| store.begin(sent));
    put(&store, 9, &segments[1]);
    store.compact();
    store.check(&whole, "again");
}

#[test]
fn a_segment_without_its_footer_is_read() {
    let sent = sessions();
    let store = begun("footer", &sent);
    for (number, of) in segments(&sent, 3).iter().enumerate() {
        put(&store, number, of);
    }
    let path = store.segment(2, &[]).with_file_name("000000000001.rms");
    put(&store, 2, &segments(&sent, 3)[2]);
    let bytes = fs::read(&path).expect("a segment");
    fs::write(&path, &bytes[..bytes.len() - 8]).expect("a file");
    store.compact();
    store.check(&store.scanned(), "without a footer");
    assert!(
        store.compact().contains("0 rows of 0 segments"),
        "it is covered"
    );
    let copy = path.with_file_name("000000000011.rms");
    fs::copy(&path, copy).expect("a copy");
    store.compact();
    store.check(&store.scanned(), "twice");
}

#[test]
fn a_log_without_its_first_versions_is_refused() {
    let sent = sessions();
    let store = begun("cleared", &sent);
    for (number, of) in segments(&sent, 2).iter().enumerate() {
        put(&store, number, of);
        store.compact();
    }
    for table in ["losses", "spans"] {
        let log = store.0.join("tables").join(table).join("_delta_log");
        let first = log.join(format!("{:020}.json", 0));
        let aside = store.0.join("aside");
        fs::rename(&first, &aside).expect("a first version");
        let done = store.command("compact .").output().expect("it runs");
        let said = common_store::said(&done);
        assert!(!done.status.success(), "{said}");
        assert!(said.contains("expected every version from 0"), "{said}");
        fs::rename(&aside, &first).expect("a first version");
    }
    assert!(store.compact().contains("0 rows of 0 segments"));
}

#[test]
fn the_directory_for_tables_is_made() {
    let sent = sessions();
    let store = begun("compact-into", &sent);
    put(&store, 0, &segments(&sent, 1)[0]);
    store.compact_with("compact . --into elsewhere/tables");
    assert!(below(&store.0.join("elsewhere/tables/tables/spans")) > 0);
}

/// A collector puts what came, also when it is no more than a beginning and counters.
#[test]
fn a_session_of_which_no_schema_came_yet_is_gone_on_with() {
    let sent = sessions();
    let store = Store::new("no-schema");
    let (first, second) = (&sent[0], &sent[1]);
    store.begin(first);
    let all = segments(&sent[..1], 2);
    let alone = |number, sent: &Sent, blocks: &[u8]| store.segment(number, &[(sent, blocks)]);
    let _ = alone(10, second, &second.counters(0));
    for (number, of) in all.iter().enumerate() {
        put(&store, number, of);
        let done = store.command("compact .").output().expect("it runs");
        let said = common_store::said(&done);
        assert!(done.status.success() && !said.contains("SESSION"), "{said}");
    }
    store.begin(second);
    let _ = alone(
        11,
        second,
        &[second.pages.concat(), second.end.clone()].concat(),
    );
    store.compact();
    store.check(&store.scanned(), "all");
}

/// Whoever looks at a store may have a clock that runs ahead: what is old says the newest upload.
#[test]
fn nothing_is_old_because_the_clock_of_this_machine_is_ahead() {
    let sent = sessions();
    let store = begun("clock", &sent);
    let segments = segments(&sent, 2);
    let (first, last) = (&segments[0], &segments[1]);
    for (number, of) in [first, last].into_iter().enumerate() {
        put_in(&store, &hour_before(26), number, of);
    }
    common_store::make_old(&store, Duration::from_secs(26 * 3600));
    let said = store.compact_with("compact . --keep-raw 24h");
    assert!(said.contains("no host is given up"), "{said}");
    assert!(said.contains(": 0 segments and 0 schema"), "{said}");
    store.check(&store.scanned(), "by a clock that is ahead");
    // An upload of today says how late it is.
    put_in(&store, &hour_before(0), 2, last);
    let said = store.compact_with("compact . --keep-raw 24h");
    assert!(!said.contains("no host is given up"), "{said}");
    assert!(said.contains(": 2 segments"), "{said}");
}

/// Another engine may leave out what a log may leave out. What is there is then not known.
#[test]
fn a_file_that_a_log_adds_without_statistics_is_not_deleted() {
    let sent = sessions();
    let store = begun("no-stats", &sent);
    put(&store, 0, &segments(&sent, 1)[0]);
    store.compact();
    let log = store.0.join("tables/spans/_delta_log");
    let text = fs::read_to_string(log.join(format!("{:020}.json", 0))).expect("a version");
    let adds = text.lines().filter(|line| line.contains("\"add\""));
    let adds: Vec<serde_json::Value> = adds
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let path = adds[0]["add"]["path"].as_str().expect("a path").to_owned();
    let removal =
        serde_json::json!({"remove": {"path": path, "deletionTimestamp": 1, "dataChange": true}});
    let mut restored = adds[0].clone();
    let _ = restored["add"]
        .as_object_mut()
        .expect("add")
        .remove("stats");
    for (version, action) in [(1, removal), (2, restored)] {
        fs::write(
            log.join(format!("{version:020}.json")),
            format!("{action}\n"),
        )
        .expect("a version");
    }
    let done = store
        .command("compact . --keep-raw 0s")
        .output()
        .expect("it runs");
    let said = common_store::said(&done);
    assert!(!done.status.success(), "{said}");
    assert!(
        said.contains(&path) && said.contains("expected") && said.contains("stats"),
        "{said}"
    );
    assert!(store.0.join("tables/spans").join(&path).exists());
    assert_eq!(below(&store.0.join("raw")), 1);
}

/// Schema may be away for one run: an object store may list it late, an operator may have moved it.
#[test]
fn rows_wait_for_the_schema_that_their_pages_need() {
    let sent = sessions();
    let store = Store::new("late-schema");
    store.begin(&sent[0]);
    for (number, of) in segments(&sent, 3).iter().enumerate() {
        put(&store, number, of);
    }
    let done = store.command("compact .").output().expect("it runs");
    let said = common_store::said(&done);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(
        said.contains("the rows of this session wait for them"),
        "{said}"
    );
    assert!(
        store.rows().iter().all(|row| !row.contains("type#")),
        "{said}"
    );
    sent.iter().for_each(|sent| store.begin(sent));
    let done = store.command("compact .").output().expect("it runs");
    assert!(done.status.success(), "{}", common_store::said(&done));
    store.check(&store.scanned(), "with its schema");
}

/// Whoever may write the log may not choose what is opened.
#[test]
fn a_log_names_no_plan_outside_the_state() {
    let sent = sessions();
    let store = begun("foreign-plan", &sent);
    put(&store, 0, &segments(&sent, 1)[0]);
    store.compact();
    let log = store.0.join("tables/losses/_delta_log");
    for plan in [
        "../../../../../etc/passwd",
        "/etc/passwd",
        "tables/state/../../raw.json",
        "tables/spans/x.json",
    ] {
        let action = serde_json::json!({"commitInfo": {"ringmark": {"plan": plan}}});
        let path = log.join(format!("{:020}.json", 1));
        fs::write(&path, format!("{action}\n")).expect("a version");
        let done = store.command("compact .").output().expect("it runs");
        let said = common_store::said(&done);
        assert!(!done.status.success(), "{said}");
        let line = format!("a log names the plan {plan:?}, expected one of tables/state/");
        assert!(said.contains(&line), "{said}");
        fs::remove_file(path).expect("a version");
    }
    assert!(store.compact().contains("0 rows of 0 segments"));
}
