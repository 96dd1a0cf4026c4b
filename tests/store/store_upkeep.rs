//! Promise: `ringmark store` shows what a store has, and removes what a host sent and nothing else, not while a
//! collector has the store.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ringmark_format::Uuid;
use ringmark_tests::collecting::{Collecting, segments};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::json_schema::checked;
use ringmark_tests::scripted_streamer::{ScriptedStreamer, page};
use ringmark_tests::terminal::on_terminal;
use ringmark_tests::{ringmark, run};
use serde_json::Value;

/// Two sessions of each of two hosts, stored; whatever else lies there.
fn stored(fixture: &Fixture) -> PathBuf {
    stored_of(fixture, ["web-1", "web-2"])
}

/// The same of hosts with these names.
fn stored_of(fixture: &Fixture, hosts: [&str; 2]) -> PathBuf {
    let (socket, store) = (fixture.path("socket"), fixture.path("store"));
    let collecting = Collecting::start(&socket, &store);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    runtime.block_on(async {
        for (host, first) in hosts.into_iter().zip([1, 5]) {
            let mut peer = ScriptedStreamer::greeted(&socket, host).await.unwrap();
            for n in first..first + 2 {
                peer.announce(Uuid([n; 16])).await.unwrap();
                peer.send(&page(Uuid([n; 16]), 0)).await.unwrap();
            }
            peer.settle().await.unwrap();
        }
    });
    drop(collecting);
    store
}

/// Every file below a directory, with its content.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => drop(found.insert(entry.path(), fs::read(entry.path()).unwrap())),
        }
    }
    found
}

fn store(arguments: &[&str], dir: &Path, code: i32) -> String {
    let mut command = ringmark();
    command.arg("store").arg(arguments[0]).arg(dir);
    let done = run(command.args(&arguments[1..]), SOON).unwrap();
    let done = done.expect_code(code);
    done.stdout_text() + &done.stderr_text()
}

#[test]
fn what_a_host_sent_is_removed_and_nothing_else() {
    let fixture = Fixture::new("upkeep");
    let dir = stored(&fixture);
    fs::write(dir.join("notes.txt"), "of the operator").unwrap();
    let listed = store(&["ls"], &dir, 0);
    println!("{listed}\n{}", store(&["df"], &dir, 0));
    for host in ["web-1", "web-2"] {
        assert!(
            listed.lines().any(|line| line.starts_with(host)),
            "{listed}"
        );
    }
    let mut its = segments(&dir);
    its.retain(|segment| segment.to_string_lossy().contains("/web-1/"));
    for ending in ["new", "damaged", "2.damaged", "txt"] {
        fs::write(its[0].with_extension(ending), ending).unwrap();
    }
    let before = files(&dir);
    let told = store(&["rm", "--host", "web-1"], &dir, 0);
    let after = files(&dir);
    let is_kept = |path: &PathBuf| {
        let name = path.to_string_lossy();
        !name.contains("/web-1/") || name.ends_with(".txt")
    };
    let removed = before.len() - after.len();
    assert!(removed >= 5, "two segments and what belongs to them");
    assert!(
        told.starts_with(&format!("{removed} files removed, ")),
        "{told}"
    );
    let kept = before.into_iter().filter(|(path, _)| is_kept(path));
    assert_eq!(after, kept.collect(), "what is kept is byte-identical");
    assert_eq!(segments(&dir).len(), 2);
    assert!(!store(&["ls"], &dir, 0).contains("web-1"));
    let none = store(&["rm", "--host", "web-1"], &dir, 4);
    assert!(none.contains("found nothing of host web-1"), "{none}");
}

/// Long names are shortened in the middle on a terminal, and whole elsewhere; a store may be named by its address.
#[test]
fn no_row_is_wider_than_the_terminal() {
    let fixture = Fixture::new("upkeep-wide");
    let names = ["web", "bank"].map(|first| format!("{first}-{}-end", "x".repeat(120)));
    let dir = stored_of(&fixture, [&names[0], &names[1]]);
    let address = format!("file://{}", dir.display());
    for action in ["ls", "hosts", "df"] {
        let mut command = ringmark();
        command.args(["--color", "never", "store", action, &address]);
        let screen = on_terminal(&mut command, 80);
        let widest = screen.lines().map(|line| line.trim_end().chars().count());
        assert!(widest.max().is_some_and(|widest| widest <= 80), "{screen}");
        let is_there = |begin: &str| screen.contains(&format!("{begin}-x"));
        assert!(
            is_there("web") && is_there("bank") && screen.contains("x-end "),
            "{screen}"
        );
        let mut command = ringmark();
        let wide = on_terminal(command.args(["store", action, &address, "--wide"]), 80);
        let piped = run(ringmark().args(["store", action, &address]), SOON).unwrap();
        for text in [wide, piped.stdout_text()] {
            assert!(names.iter().all(|name| text.contains(name)), "{text}");
        }
    }
    for reader in ["cat", "verify", "list"] {
        let done = run(ringmark().args([reader, &address]), SOON).unwrap();
        let told = done.stderr_text();
        assert!(!told.contains("cannot be opened"), "{reader}: {told}");
        assert!(done.code() < 2, "{reader}: {told}");
    }
}

#[test]
fn objects_say_the_same_as_the_tables() {
    let fixture = Fixture::new("upkeep-json");
    let dir = stored(&fixture);
    let objects = |arguments: &[&str]| checked(&store(arguments, &dir, 0));
    let listed = objects(&["ls", "--json"]);
    let hosts: Vec<_> = listed.iter().map(|line| &line["host"]).collect();
    assert_eq!(hosts, ["web-1", "web-2"]);
    assert!(
        listed
            .iter()
            .all(|line| line["sessions"] == 2 && line["segments"] == 2 && line["period"].is_null())
    );
    let by_day = objects(&["ls", "--json", "--by", "day"]);
    let day = by_day[0]["period"].as_str().expect("a day");
    assert_eq!((day.len(), day.matches('-').count()), (10, 2), "{day}");
    let sizes = objects(&["df", "--json"]);
    let (space, sizes) = sizes.split_last().expect("a last line");
    let sum = |lines: &[Value]| {
        lines
            .iter()
            .map(|line| line["bytes"].as_u64())
            .sum::<Option<u64>>()
    };
    assert_eq!(
        (space["bytes"].as_u64(), sum(sizes)),
        (sum(&listed), sum(&listed))
    );
    assert!(sizes.iter().all(|line| line["service"].is_null()));
    let removed = objects(&["rm", "--host", "web-1", "--json"]);
    assert_eq!(
        (removed.len(), &removed[0]["kind"]),
        (1, &"removed_files".into())
    );
    assert_eq!(objects(&["ls", "--json"])[..], listed[1..]);
}

#[test]
fn what_a_killed_collector_left_the_next_one_clears() {
    let fixture = Fixture::new("upkeep-left");
    let dir = stored(&fixture);
    let segment = segments(&dir).remove(0);
    let left = [
        segment.with_extension("new"),
        segment.with_file_name("mine.new"),
    ];
    left.iter()
        .for_each(|path| fs::write(path, "half").unwrap());
    let orphan = segments(&dir).remove(1).with_extension("idx");
    fs::write(&orphan, "an index").unwrap();
    fs::remove_file(orphan.with_extension("rmk")).unwrap();
    drop(Collecting::start(&fixture.path("again"), &dir));
    assert!(!left[0].exists() && left[1].exists() && !orphan.exists());
    assert!(segment.exists());
}

#[test]
fn a_store_in_use_is_only_looked_at() {
    let fixture = Fixture::new("upkeep-used");
    let dir = stored(&fixture);
    let collecting = Collecting::start(&fixture.path("again"), &dir);
    assert!(store(&["ls"], &dir, 0).contains("web-1"));
    let told = store(&["rm", "--host", "web-1"], &dir, 4);
    assert!(told.contains("a collector has this store"), "{told}");
    assert_eq!(segments(&dir).len(), 4);
    drop(collecting);
}

#[test]
fn other_directories_are_no_stores() {
    let fixture = Fixture::new("upkeep-none");
    fs::create_dir(fixture.path("other")).unwrap();
    for arguments in [&["ls"][..], &["df"], &["rm", "--host", "a"]] {
        let told = store(arguments, &fixture.path("other"), 4);
        assert!(
            told.contains("found no store.id, expected a store"),
            "{told}"
        );
    }
    assert!(files(&fixture.path("other")).is_empty());
}
