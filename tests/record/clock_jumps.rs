//! Promise: a session has one clock; whatever becomes of the system's clocks, and from whichever time namespace it is read,
//!, no process is taken for dead, no event gets a wrong time, and every step back is flagged.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Instant, SystemTime};

use ringmark_decoder::{Dump, Output};
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::codec::write::seal_header;
use ringmark_format::counters::CountersHeader;
use ringmark_format::page::PageHeader;
use ringmark_reader::{Access, Session};
use ringmark_ring::identity::Liveness;
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Counters, Fixture, SOON, wait_until_mapped};
use ringmark_tests::recording::{decode, record};
use ringmark_tests::{Finished, Running, binary, require_tools, run, wait_until};
use rustix::process::geteuid;
use zerocopy::{FromBytes, IntoBytes};

const EMIT: &str = ringmark_tests::program!("emit");
const SHIFT: [&str; 5] = ["--time", "--monotonic", "5000000", "--boottime", "5000000"];
const HOUR_NS: u64 = 3_600_000_000_000;

fn real_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_nanos() as u64
}

/// Earliest and latest event, ns since 1970.
fn times(dump: &Dump) -> (u64, u64) {
    let found = dump.verify();
    (found.first_ns.unwrap(), found.last_ns.unwrap())
}

fn can_shift_time() -> bool {
    if !require_tools(&["unshare"]) {
        return false;
    }
    assert!(geteuid().is_root(), "needs root: a time namespace");
    true
}

/// A command that runs with monotonic clock and start times moved by 58 days.
fn shifted(fixture: &Fixture, ringmark: &str) -> Command {
    let mut command = fixture.program("unshare", ringmark);
    command.args(SHIFT);
    command
}

fn tool(fixture: &Fixture, arguments: &[&str], is_shifted: bool) -> Finished {
    let mut command = if is_shifted {
        let mut command = fixture.command("unshare");
        command.args(SHIFT).arg(binary::path());
        command
    } else {
        fixture.command(binary::path())
    };
    run(command.args(arguments), SOON).unwrap()
}

/// A program on one side of a time namespace, tools on the other.
fn seen_from_another_time(clock: &str, program_is_shifted: bool) {
    let fixture = Fixture::new("timens");
    let ringmark = format!("mode=discard,ring=256K,page=4K,session=4M,clock={clock}");
    let mut command = if program_is_shifted {
        shifted(&fixture, &ringmark)
    } else {
        fixture.program("unshare", &ringmark)
    };
    // Without an offset `unshare` alone: the program's pid is that of the child in both cases.
    command.args([EMIT, "2", "2000", "burst=100", "pause=15000", "hold=600000"]);
    let counters = Counters::new(fixture.path("counters"));
    let before = real_ns();
    let program = Running::start(command.arg(counters.argument())).unwrap();
    let pid = program.id().to_string();
    let ring_file = fixture.ring_file();
    let tool = |arguments: &[&str]| tool(&fixture, arguments, !program_is_shifted);

    let listed = tool(&["list", "--json"]).stdout_text();
    assert!(listed.contains("\"state\":\"alive\""), "{clock}: {listed}");
    let _ = tool(&["clean"]);
    assert!(ring_file.exists(), "a living session was cleaned away");
    let mut other = fixture.program(EMIT, "1");
    let _ = run(other.args(["0", "1"]), SOON).unwrap().expect_code(0);
    assert!(
        ring_file.exists(),
        "another start cleaned a living session away"
    );

    counters.wait_for_each(2, 2000);
    // Its last minutes hold all of it.
    let recent = fixture.path("recent.rmk").display().to_string();
    let _ = tool(&["snapshot", "-p", &pid, "--last", "30m", "-o", &recent]).expect_code(0);
    assert!(
        decode(&[recent.into()]).verify().events > 0,
        "{clock}: all too old"
    );

    let dump = fixture.path("a.rmk").display().to_string();
    let recorder = recorder(&fixture, &pid, &dump, !program_is_shifted);
    wait_until_mapped(&recorder, &ring_file);
    let session = Session::open(&ring_file, Access::Observe).unwrap();
    assert_eq!(session.liveness(), Liveness::Alive);
    let killed = Instant::now();
    let _ = program.kill().unwrap();
    wait_until(SOON, "death is found", || {
        session.process_ended().then_some(())
    });
    println!("{clock}: found dead after {:?}", killed.elapsed());
    let _ = recorder.finish(SOON).expect_code(0);
    let after = real_ns();
    expect_all_between(clock, &decode(&[PathBuf::from(dump)]), before, after);
}

/// A recorder on this side of the time namespace.
fn recorder(fixture: &Fixture, pid: &str, dump: &str, is_shifted: bool) -> Running {
    let mut command = if is_shifted {
        let mut command = fixture.command("unshare");
        command.args(SHIFT).arg(binary::path());
        command
    } else {
        fixture.command(binary::path())
    };
    // It becomes what it starts: the recorder has its pid.
    Running::start(command.args(["record", "-p", pid, "-o", dump])).unwrap()
}

/// A dump has every event, at times between these two.
fn expect_all_between(clock: &str, found: &Dump, before: u64, after: u64) {
    Delivery::of(found).expect_exact(2, 2000);
    let (first, last) = times(found);
    assert!(
        before <= first && first <= last && last <= after,
        "{clock}: {before} {first} {last} {after}"
    );
    // Nineteen pauses at least; at most the time that we have waited, as was seen above.
    let spread = last - first;
    assert!(
        spread >= 250_000_000,
        "{clock}: {spread} ns between the first and the last event"
    );
}

#[test]
fn a_program_in_another_time_namespace() {
    if can_shift_time() {
        seen_from_another_time("tsc", true);
        seen_from_another_time("monotonic", true);
    }
}

#[test]
fn tools_in_another_time_namespace() {
    if can_shift_time() {
        seen_from_another_time("tsc", false);
        seen_from_another_time("monotonic", false);
    }
}

/// A dump of two threads with several pages each, and what is done to its clock.
struct Trace {
    fixture: Fixture,
    bytes: Vec<u8>,
}

impl Trace {
    fn new(label: &str) -> Self {
        let fixture = Fixture::new(label);
        let ringmark = "mode=discard,ring=256K,page=4K,session=4M,keep=always";
        let program = fixture.start(EMIT, ringmark, "2 2000 burst=150 pause=2000");
        let _ = program.finish(SOON).expect_code(0);
        let dump = fixture.path("true.rmk");
        record(&fixture.ring_file(), &dump);
        let bytes = fs::read(&dump).unwrap();
        Self { fixture, bytes }
    }

    /// The dump with the content of its blocks of one kind changed, and sound again.
    fn with(&self, kind: u16, mut change: impl FnMut(&BlockHeader, &mut [u8])) -> Seen {
        let mut bytes = self.bytes.clone();
        for content in contents(&self.bytes) {
            let at = content.start - BlockHeader::BYTES;
            let (mut header, _) = BlockHeader::read_from_prefix(&bytes[at..]).unwrap();
            if header.kind == kind {
                change(&header, &mut bytes[content.clone()]);
                seal_header(&mut header, &bytes[content.clone()]).unwrap();
                bytes[at..content.start].copy_from_slice(header.as_bytes());
            }
        }
        self.see(&bytes)
    }

    /// The dump with the headers of pages from number 6 on changed.
    fn with_later_pages(&self, change: impl Fn(&mut PageHeader)) -> Seen {
        self.with(kind::PAGE, |block, content| {
            let (mut header, _) = PageHeader::read_from_prefix(content).unwrap();
            if block.page_number >= 6 {
                change(&mut header);
            }
            content[..PageHeader::BYTES].copy_from_slice(header.as_bytes());
        })
    }

    fn see(&self, bytes: &[u8]) -> Seen {
        let path = self.fixture.path("changed.rmk");
        fs::write(&path, bytes).unwrap();
        let name = path.display().to_string();
        let cat = tool(&self.fixture, &["cat", &name], false).expect_code(0);
        let list = tool(&self.fixture, &["list", &name], false).expect_code(0);
        let verify = tool(&self.fixture, &["verify", &name], false).expect_code(0);
        Seen {
            dump: decode(&[path]),
            lines: cat.stdout_text(),
            notes: cat.stderr_text(),
            notes_of_list: list.stderr_text(),
            verified: verify.stdout_text(),
        }
    }
}

/// Where the contents of the blocks are.
fn contents(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (header, _) = BlockHeader::read_from_prefix(&bytes[at..]).unwrap();
        let from = at + BlockHeader::BYTES;
        let stored = header.stored_bytes as usize;
        found.push(from..from + stored);
        at = from + stored.next_multiple_of(8);
    }
    found
}

/// A dump with a strange clock, and how it is reported.
struct Seen {
    dump: Dump,
    lines: String,
    notes: String,
    notes_of_list: String,
    verified: String,
}

impl Seen {
    /// All events are shown, and this number of steps back is flagged.
    #[track_caller]
    fn expect(&self, backward: u64, clock_steps: u64) {
        assert_eq!(self.lines.matches("emit.tick").count(), 4000);
        let count = |name: &str, n: u64| self.verified.contains(&format!("{name}: {n}\n"));
        assert!(count("backward", backward), "{}", self.verified);
        assert!(count("clock_steps", clock_steps), "{}", self.verified);
        for notes in [&self.notes, &self.notes_of_list] {
            let told = notes.matches("back in time").count();
            assert_eq!(told, usize::from(clock_steps > 0), "{notes}");
        }
    }

    /// Every ring's events in the order in which they were emitted, at times that never go back.
    #[track_caller]
    fn expect_order(&self) {
        Delivery::of(&self.dump).expect_exact(2, 2000);
        let mut last = [0; 8];
        for item in self.dump.events() {
            if let Output::Event(event) = item {
                let last = &mut last[event.slot().0 as usize];
                assert!(*last <= event.t_ns, "{} after {last}", event.t_ns);
                *last = event.t_ns;
            }
        }
    }
}

#[test]
fn a_clock_that_steps_back_is_flagged() {
    let trace = Trace::new("back");
    let truth = trace.see(&trace.bytes);
    truth.expect(0, 0);
    truth.expect_order();

    let counter = trace.with_later_pages(|page| page.tick_base -= 1 << 40);
    counter.expect(2, 2);

    let mono = trace.with_later_pages(|page| page.mono_base_ns -= 10_000_000_000);
    mono.expect(0, 2);
    mono.expect_order();

    let mut records = 0;
    let inside = trace.with(kind::PAGE, |block, content| {
        // The time of one record in the middle of a page is that of the page's start.
        if block.page_number == 3 {
            let at = PageHeader::BYTES + 50 * 24;
            content[at..at + 4].fill(0);
            records += 1;
        }
    });
    inside.expect(records, 0);
    assert_eq!(records, 2);
}

#[test]
fn sleep_and_a_moved_wall_clock_change_nothing() {
    let trace = Trace::new("sleep");
    let truth = trace.see(&trace.bytes);

    // The machine sleeps for an hour: the counter goes on, the monotonic clock does not.
    let counter_runs = trace.with_later_pages(|page| page.tick_base += HOUR_NS);
    counter_runs.expect(0, 0);
    counter_runs.expect_order();
    // The counter stands still, and the other clock goes on.
    let counter_stands = trace.with_later_pages(|page| page.mono_base_ns += HOUR_NS);
    counter_stands.expect(0, 0);
    counter_stands.expect_order();

    let moved = trace.with(kind::COUNTERS, |_, content| {
        let (mut header, _) = CountersHeader::read_from_prefix(content).unwrap();
        header.sample_real_ns -= HOUR_NS;
        content[..CountersHeader::BYTES].copy_from_slice(header.as_bytes());
    });
    moved.expect(0, 0);
    assert_eq!(moved.lines, truth.lines);
}
