//! Promise: threads come and go without a leak, within the memory cap; what finds no room is lost
//! and counted by its cause.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ringmark_decoder::{Dump, Output};
use ringmark_reader::{Access, Session};
use ringmark_tests::account::{Account, number};
use ringmark_tests::recording::{decode, read};
use ringmark_tests::stage::{SOON, Stage, stop_recorder};

const THREADS: &str = env!("CARGO_BIN_EXE_threads");
const RECORDER: &str = env!("CARGO_BIN_EXE_recorder");
const SERIAL: u64 = 10_000;
const PARALLEL: u64 = 2_000;
const EVENTS: u64 = 50;

/// Runs it to its end; returns resident pages early and late.
fn run(stage: &Stage, ringmark: &str, arguments: &str) -> (u64, u64) {
    let program = stage.start(THREADS, ringmark, arguments);
    let done = program.finish(3 * SOON).expect_code(0);
    assert_eq!(done.stderr_text(), "");
    let said = done.stdout_text();
    let (early, late) = said.trim().split_once(' ').unwrap();
    (early.parse().unwrap(), late.parse().unwrap())
}

/// The file never takes more than the session's size and its regions in front of the rings.
fn expect_under_cap(ring_file: &Path, session_bytes: u64) {
    let about = std::fs::metadata(ring_file).unwrap();
    let regions = about.len() - session_bytes;
    assert!(regions < 2 << 20, "regions of {regions} bytes");
    assert!(about.blocks() * 512 <= about.len());
}

/// Every event once: there, or lost, or overwritten. Threads whose events are there.
fn expect_sum(dump: &Dump, emitted: u64) -> Account {
    let account = Account::of(dump);
    let sum = account.delivered() + account.lost();
    assert_eq!(
        sum,
        emitted,
        "delivered {}, lost {:?}",
        account.delivered(),
        causes(&account)
    );
    let mut seen = BTreeSet::new();
    for item in dump.events() {
        if let Output::Event(event) = item {
            let key = (number(&event, "thread"), number(&event, "seq"));
            assert!(seen.insert(key), "{key:?} is there twice");
        }
    }
    account
}

fn causes(account: &Account) -> Vec<(&'static str, u64)> {
    let mut all = account.elsewhere.clone();
    for (cause, count) in account.rings.values().flat_map(|r| &r.lost) {
        *all.entry(cause).or_default() += count;
    }
    all.into_iter().collect()
}

#[test]
fn ten_thousand_threads_one_after_another_reuse_their_rings() {
    let session = 8 << 20;
    for mode in ["overwrite", "lossless"] {
        let stage = Stage::new("serial");
        let ringmark = format!("mode={mode},ring=64K,session={session},keep=always");
        let (early, late) = run(&stage, &ringmark, &format!("serial {SERIAL} {EVENTS}"));
        assert!(
            late < early + 256,
            "resident pages grew from {early} to {late}"
        );
        let ring_file = stage.ring_file();
        expect_under_cap(&ring_file, session);
        let account = expect_sum(&read(&[ring_file]), SERIAL * EVENTS);
        println!(
            "{mode}: delivered {}, {:?}, resident {early} -> {late}",
            account.delivered(),
            causes(&account)
        );
        let expected: &[_] = match mode {
            "overwrite" => &["overwritten"],
            _ => &["no memory", "no ring"],
        };
        let causes = causes(&account);
        assert!(
            causes.iter().all(|(cause, _)| expected.contains(cause)),
            "{causes:?}"
        );
        assert!(account.delivered() >= 2_000, "{}", account.delivered());
    }
}

#[test]
fn a_recorder_frees_the_rings_of_threads_that_ended() {
    let stage = Stage::new("drained");
    let dump = stage.path("a.rmk");
    let recorder = stage.recorder(RECORDER, &dump, None).unwrap();
    let ringmark = "mode=lossless,ring=64K,session=8M";
    let (early, late) = run(&stage, ringmark, &format!("serial {SERIAL} {EVENTS}"));
    assert!(
        late < early + 256,
        "resident pages grew from {early} to {late}"
    );
    let said = stop_recorder(recorder, SOON);
    let account = expect_sum(&decode(&[dump]), SERIAL * EVENTS);
    println!(
        "delivered {}, {:?}; {said}",
        account.delivered(),
        causes(&account)
    );
    assert!(account.delivered() > SERIAL * EVENTS / 2);
}

#[test]
fn two_thousand_threads_at_once_share_the_cap() {
    let session = 16 << 20;
    for mode in ["overwrite", "lossless"] {
        let stage = Stage::new("parallel");
        let ringmark = format!("mode={mode},session={session},keep=always");
        run(&stage, &ringmark, &format!("parallel {PARALLEL} {EVENTS}"));
        let ring_file = stage.ring_file();
        expect_under_cap(&ring_file, session);
        let observed = Session::open(&ring_file, Access::Observe).unwrap();
        let slots = u64::from(observed.ring().slots_used());
        let account = expect_sum(&read(&[ring_file]), PARALLEL * EVENTS);
        println!(
            "{mode}: {slots} slots, delivered {}, {:?}",
            account.delivered(),
            causes(&account)
        );
        // A thread that has a ring keeps what it emits: 50 events fit the smallest one. In overwrite
        // mode threads without one take over those of threads that ended.
        assert!(slots >= 64, "{slots}");
        let expected: &[_] = match mode {
            "overwrite" => &["no memory", "no ring", "overwritten"],
            _ => &["no memory", "no ring"],
        };
        let causes = causes(&account);
        assert!(
            causes.iter().all(|(cause, _)| expected.contains(cause)),
            "{causes:?}"
        );
        let least = slots * EVENTS;
        assert!(account.delivered() >= least, "{}", account.delivered());
        assert!(mode == "overwrite" || account.delivered() == least);
    }
}
