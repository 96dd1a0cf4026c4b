//! Threads have the names that they have now, in all that a reader writes and shows, and the names that
//! they were last seen with once they are gone.

use std::collections::BTreeSet;
use std::fs;

use ringmark_decoder::{Dump, Output};
use ringmark_reader::{Access, Session};
use ringmark_tests::fixture::{Fixture, SOON, stop_recorder};
use ringmark_tests::functions::tool;
use ringmark_tests::process::{Running, run};
use ringmark_tests::recording::{decode, read};
use ringmark_tests::{require_tools, wait_until};

const NAMED_LATE: &str = ringmark_tests::program!("named_late");
const RECORDER: &str = ringmark_tests::program!("recorder");
const RINGMARK: &str = "mode=discard,ring=4M,keep=always";
const LATE: [&str; 4] = ["late gone", "late lives", "late main", "late open"];

struct Named {
    fixture: Fixture,
    program: Running,
}

impl Named {
    /// Starts it, as `unshare` does in a pid namespace of its own, and waits for its names.
    fn start(label: &str, unshare: &[&str]) -> Self {
        let fixture = Fixture::new(label);
        let first = unshare.first().copied().unwrap_or(NAMED_LATE);
        let mut command = fixture.program(first, RINGMARK);
        if !unshare.is_empty() {
            command.args(&unshare[1..]).arg(NAMED_LATE);
        }
        let (ready, go) = (fixture.path("ready"), fixture.path("go"));
        let program = Running::start(command.args([&ready, &go])).expect("it starts");
        wait_until(SOON, "its names", || ready.exists().then_some(()));
        Self { fixture, program }
    }

    fn go(&self) {
        fs::write(self.fixture.path("go"), "").expect("a file");
    }

    /// What `ringmark WORDS` prints.
    fn ringmark(&self, words: &str) -> String {
        let mut command = tool(&self.fixture);
        command.current_dir(self.fixture.path("."));
        let done = run(command.args(words.split_whitespace()), SOON).expect("ringmark");
        done.expect_code(0).stdout_text()
    }

    fn trace(&self, name: &str) -> Dump {
        decode(&[self.fixture.path(name)])
    }
}

/// The threads of all events, and of all open spans.
fn names(dump: &Dump) -> (BTreeSet<String>, BTreeSet<String>) {
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let events = dump.events().filter_map(|item| match item {
        Output::Event(event) => Some(text(event.comm())),
        Output::Lost(_) => None,
    });
    let open = dump.open_spans();
    let open = open.iter().map(|thread| text(thread.comm));
    (events.collect(), open.collect())
}

fn expect_late(dump: &Dump) {
    let (events, open) = names(dump);
    assert_eq!(events, BTreeSet::from(LATE.map(str::to_owned)));
    assert_eq!(open, BTreeSet::from(["late open".to_owned()]));
}

#[test]
fn a_snapshot_and_what_looks_at_a_program_say_what_threads_are_called() {
    let named = Named::start("named-late", &[]);
    let _ = named.ringmark("snapshot -o now.rmk");
    expect_late(&named.trace("now.rmk"));
    let list = named.ringmark("list -v");
    let cat = named.ringmark(&format!("cat --json -p {}", named.program.id()));
    for name in LATE {
        assert!(list.contains(name), "{name} in {list}");
        assert!(cat.contains(name), "{name} in {cat}");
    }
    assert!(
        !list.contains("early") && !cat.contains("\"early"),
        "{list}\n{cat}"
    );
}

#[test]
fn threads_in_a_pid_namespace_of_their_own_have_their_names() {
    if !require_tools(&["unshare"]) {
        return;
    }
    let named = Named::start(
        "named-apart",
        &["unshare", "--pid", "--fork", "--kill-child"],
    );
    let _ = named.ringmark("snapshot -o now.rmk");
    expect_late(&named.trace("now.rmk"));
}

/// The first thread has the number and the start of the program's, and another name.
#[test]
fn a_process_that_executes_another_program_takes_no_name_with_it() {
    let fixture = Fixture::new("named-exec");
    let (ready, go) = (fixture.path("ready"), fixture.path("go"));
    let mut command = fixture.program(NAMED_LATE, RINGMARK);
    let program = Running::start(command.args([&ready, &go]).arg("sleep")).expect("it starts");
    let ring_file = {
        wait_until(SOON, "its names", || ready.exists().then_some(()));
        fixture.ring_file()
    };
    fs::write(&go, "").expect("a file");
    let comm = format!("/proc/{}/comm", program.id());
    wait_until(SOON, "the other program", || {
        let name = fs::read_to_string(&comm).unwrap_or_default();
        (name == "sleep\n").then_some(())
    });
    let (events, _) = names(&read(&[ring_file]));
    assert!(!events.contains("sleep"), "{events:?}");
    assert!(events.contains("named_late"), "{events:?}");
}

#[test]
fn a_recording_has_the_names_that_threads_had_when_it_last_saw_them() {
    let named = Named::start("named-gone", &[]);
    let file = named.fixture.path("all.rmk");
    let ring_file = named.fixture.ring_file();
    let recorder = named.fixture.recorder(RECORDER, &file, Some(&ring_file));
    let recorder = recorder.expect("a recorder");
    let session = Session::open(&ring_file, Access::Observe).expect("a session");
    wait_until(SOON, "a page that was taken", || {
        let slot = session.ring().slot(0)?;
        (slot.consumed() > 0).then_some(())
    });
    named.go();
    let _ = named.program.finish(SOON).expect_code(0);
    let _ = stop_recorder(recorder, SOON);
    expect_late(&decode(&[file]));
}
