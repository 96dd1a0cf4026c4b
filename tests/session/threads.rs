//! Promise: threads come and go without a leak, within the memory cap; what finds no room is lost
//! and counted by its cause.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ringmark_decoder::{Dump, Output};
use ringmark_format::open_span::RING_WAIT_NS;
use ringmark_format::slot::state;
use ringmark_reader::{Access, Session};
use ringmark_tests::delivery::{Delivery, number};
use ringmark_tests::fixture::{Fixture, SOON, stop_recorder};
use ringmark_tests::is_long;
use ringmark_tests::recording::{decode, read};

const THREADS: &str = ringmark_tests::program!("threads");
const RECORDER: &str = ringmark_tests::program!("recorder");
const EVENTS: u64 = 50;

/// Threads that come and go.
fn serial() -> u64 {
    if is_long() { 100_000 } else { 10_000 }
}

/// Threads at once: what the system allows, where it is less than ten thousand.
fn parallel() -> u64 {
    if !is_long() {
        return 2_000;
    }
    let limits = ["/proc/sys/kernel/threads-max", "/sys/fs/cgroup/pids.max"];
    let limits = limits.map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let limits = limits
        .iter()
        .filter_map(|text| text.trim().parse::<u64>().ok());
    limits.map(|limit| limit / 2).fold(10_000, u64::min)
}

/// Runs it to its end: its memory does not grow between a tenth and the end. Returns by how many
/// blocks its ring file does.
fn run(fixture: &Fixture, ringmark: &str, arguments: &str) -> u64 {
    let program = fixture.start(THREADS, ringmark, arguments);
    let done = program.finish(15 * SOON).expect_code(0);
    assert_eq!(done.stderr_text(), "");
    let said = done.stdout_text();
    println!("{arguments}: resident pages early and late, blocks of the file: {said}");
    let numbers = said.split_whitespace().map(|n| n.parse().unwrap());
    let [early, late, file_early, file_late]: [u64; 4] =
        numbers.collect::<Vec<_>>().try_into().unwrap();
    assert!(
        late < early + 256,
        "resident pages grew from {early} to {late}"
    );
    file_late - file_early
}

/// That every ring was given back.
fn expect_no_leak(ring_file: &Path) {
    let session = Session::open(ring_file, Access::Observe).unwrap();
    let ring = session.ring();
    let given_back = |state| matches!(state, state::SEALED | state::WARM | state::FREE);
    let slots = (0..ring.slots_used()).filter_map(|index| ring.slot(index));
    let leaked = slots.filter(|slot| !given_back(slot.state())).count();
    assert_eq!(leaked, 0, "rings leaked");
}

/// The file never takes more than the session's size and its regions in front of the rings.
fn expect_under_cap(ring_file: &Path, session_bytes: u64) {
    let about = std::fs::metadata(ring_file).unwrap();
    let regions = about.len() - session_bytes;
    assert!(regions < 2 << 20, "regions of {regions} bytes");
    assert!(about.blocks() * 512 <= about.len());
}

/// The first event of a ring read the clock when its thread had the ring: what that took is no part of a
/// first call.
fn expect_no_wait_for_rings(dump: &Dump) {
    let slots = dump.sessions.iter().flat_map(|session| &session.slots);
    let first = slots
        .flat_map(|slot| &slot.pages)
        .filter(|page| page.number.0 == 0);
    for page in first {
        let (first, _) = page.summary.ticks.expect("an event");
        let base = page.header.tick_base;
        assert!(first >= base, "{} ticks before the ring", base - first);
    }
}

/// Every event once: there, or lost, or overwritten. Threads whose events are there.
fn expect_sum(dump: &Dump, emitted: u64) -> Delivery {
    expect_no_wait_for_rings(dump);
    let account = Delivery::of(dump);
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

fn causes(account: &Delivery) -> Vec<(&'static str, u64)> {
    let mut all = account.elsewhere.clone();
    for (cause, count) in account.rings.values().flat_map(|r| &r.lost) {
        *all.entry(cause).or_default() += count;
    }
    all.into_iter().collect()
}

#[test]
fn threads_one_after_another_or_in_batches_reuse_their_rings() {
    let session = 8 << 20;
    for (mode, how) in [
        ("overwrite", "serial"),
        ("discard", "serial"),
        ("overwrite", "batches"),
    ] {
        let fixture = Fixture::new("serial");
        let ringmark = format!("mode={mode},ring=64K,session={session},keep=always");
        let grown = run(&fixture, &ringmark, &format!("{how} {} {EVENTS}", serial()));
        assert_eq!(grown, 0, "the ring file grew");
        let ring_file = fixture.ring_file();
        expect_under_cap(&ring_file, session);
        expect_no_leak(&ring_file);
        let account = expect_sum(&read(&[ring_file]), serial() * EVENTS);
        let (delivered, causes) = (account.delivered(), causes(&account));
        println!("{mode}, {how}: delivered {delivered}, {causes:?}");
        let expected: &[_] = match mode {
            "overwrite" => &["overwritten", "no memory", "no ring"],
            _ => &["no memory", "no ring"],
        };
        // One after the other, there is a ring to overwrite for each.
        let expected = if how == "serial" && mode == "overwrite" {
            &expected[..1]
        } else {
            expected
        };
        assert!(
            causes.iter().all(|(cause, _)| expected.contains(cause)),
            "{causes:?}"
        );
        assert!(delivered >= 2_000, "{delivered}");
    }
}

#[test]
fn a_recorder_frees_the_rings_of_threads_that_ended() {
    let fixture = Fixture::new("drained");
    let dump = fixture.path("a.rmk");
    let recorder = fixture.recorder(RECORDER, &dump, None).unwrap();
    let ringmark = "mode=discard,ring=64K,session=8M";
    run(&fixture, ringmark, &format!("serial {} {EVENTS}", serial()));
    let said = stop_recorder(recorder, SOON);
    let account = expect_sum(&decode(&[dump]), serial() * EVENTS);
    println!(
        "delivered {}, {:?}; {said}",
        account.delivered(),
        causes(&account)
    );
    // Several times what the session holds at once, 128 rings; how much depends on how often the
    // recorder gets a processor.
    assert!(account.delivered() > 5 * 128 * EVENTS);
}

#[test]
fn thousands_of_threads_at_once_share_the_cap() {
    let session = 16 << 20;
    for mode in ["overwrite", "discard"] {
        let fixture = Fixture::new("parallel");
        let ringmark = format!("mode={mode},session={session},keep=always");
        run(
            &fixture,
            &ringmark,
            &format!("parallel {} {EVENTS}", parallel()),
        );
        let ring_file = fixture.ring_file();
        expect_under_cap(&ring_file, session);
        expect_no_leak(&ring_file);
        let observed = Session::open(&ring_file, Access::Observe).unwrap();
        let slots = u64::from(observed.ring().slots_used());
        let account = expect_sum(&read(&[ring_file]), parallel() * EVENTS);
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

/// Runs threads whose rings are large, one after the other: the most page faults in a first event.
fn first_events(fixture: &Fixture, settings: &str) -> u64 {
    let ringmark = format!("mode=discard,ring=16M,session=256M,warm=0,keep=always{settings}");
    let arguments = format!("first {BIG} {EVENTS_OF_BIG}");
    let program = fixture.start(THREADS, &ringmark, &arguments);
    let done = program.finish(SOON).expect_code(0);
    assert_eq!(done.stderr_text(), "");
    let faults = done.stdout_text().trim().parse().unwrap();
    println!("{faults} page faults at most");
    faults
}

/// The longest waits for the rings.
fn waits(ring_file: &Path) -> Vec<u64> {
    let session = Session::open(ring_file, Access::Observe).unwrap();
    let ring = session.ring();
    let slots = (0..ring.slots_used()).filter_map(|index| ring.slot(index));
    slots.map(|slot| slot.ring_wait_ns()).collect()
}

/// Threads with large rings, and events of each: more than a page.
const BIG: u64 = 4;
const EVENTS_OF_BIG: u64 = 10_000;

/// A page has 16 system pages, and a ring of 16 MiB 4,096.
#[test]
fn a_first_event_waits_for_a_page_and_not_for_a_ring() {
    let fixture = Fixture::new("first");
    let faults = first_events(&fixture, "");
    assert!(faults < 256, "{faults} page faults in a first event");
    let ring_file = fixture.ring_file();
    assert!(waits(&ring_file).iter().all(|ns| *ns > 0));
    let account = expect_sum(&read(&[ring_file]), BIG * EVENTS_OF_BIG);
    assert_eq!(account.lost(), 0, "{:?}", causes(&account));
}

/// To get 16 MiB takes longer than this on any machine.
const LONG_NS: u64 = 100_000;

#[test]
fn where_nobody_prepares_rings_the_wait_for_one_is_known() {
    let fixture = Fixture::new("first-alone");
    let _ = first_events(&fixture, ",control=off");
    let waits = waits(&fixture.ring_file());
    println!("{waits:?} ns");
    assert_eq!(waits.len() as u64, BIG);
    assert!(waits.iter().all(|ns| *ns >= LONG_NS), "{waits:?}");
    let longest = waits.into_iter().max().filter(|ns| *ns >= RING_WAIT_NS);
    let verified = read(&[fixture.ring_file()]).verify();
    assert_eq!(verified.ring_wait_ns, longest.unwrap_or(0));
}
