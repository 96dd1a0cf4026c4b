//! Promise: a module that a program loads is traced from its first function on: those that the loader
//! calls while it relocates and initialises the module are in the trace.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, SITES, calls, compile, library, ringmark, tool};
use ringmark_tests::json_schema::checked;
use ringmark_tests::process::READS_INPUT;
use ringmark_tests::{Running, require_tools, run};

const ROUNDS: u64 = 100;

/// The program and its two modules.
struct Built {
    fixture: Fixture,
    program: PathBuf,
    module: PathBuf,
    slow: PathBuf,
}

/// How the modules' tables of sites are relocated.
const RELOCATED: [&str; 2] = ["", "-Wl,-z,pack-relative-relocs"];

impl Built {
    fn new(label: &str, more: &str) -> Self {
        let fixture = Fixture::new(label);
        let program = compile(
            &fixture,
            "plugins.c",
            "plugins",
            &format!("{SITES} -pthread"),
        );
        let shared = format!("{SITES} -shared -fPIC {more}");
        let build = |name: &str, more: &str| {
            compile(
                &fixture,
                "plugins_module.c",
                name,
                &format!("{shared} {more}"),
            )
        };
        let module = build("plug.so", "");
        let slow = build("slow.so", "-DSLOW=20000");
        Self {
            fixture,
            program,
            module,
            slow,
        }
    }

    fn words(&self) -> [PathBuf; 3] {
        [
            ROUNDS.to_string().into(),
            self.module.clone(),
            self.slow.clone(),
        ]
    }

    /// Starts the program, which loads the slow module again and again.
    fn start(&self, is_prepared: bool, more: &[&str]) -> Running {
        let mut command = self.fixture.command(&self.program);
        if is_prepared {
            command.env("RINGMARK", "mode=overwrite,ring=4M");
            command.env("LD_PRELOAD", library());
        }
        command.args(self.words()).args(more);
        let running = Running::start(command.stdin(Stdio::piped())).expect("it starts");
        running.wait_until_in(&[READS_INPUT]);
        running
    }

    fn tell(&self, running: &Running, words: &str) -> String {
        let words = words.replace("PID", &running.id().to_string());
        let said = ringmark(&self.fixture, &words, &[]).expect_code(0);
        said.stdout_text() + &said.stderr_text()
    }

    /// Lets the program do its rounds, and returns the calls of the modules' functions.
    fn rounds(&self, running: &mut Running) -> BTreeMap<String, u64> {
        let mut input = running.child().stdin.as_ref().expect("its input");
        input.write_all(b"x").expect("it reads");
        // In `pause`.
        running.wait_until_in(&["34 "]);
        let dump = self.fixture.path("rounds.rmk");
        let snapshot = format!("snapshot -p {} -o", running.id());
        let _ = ringmark(&self.fixture, &snapshot, &[&dump]).expect_code(0);
        let mut found = calls(&self.fixture, "", &dump);
        found.remove("main");
        found
    }
}

/// Whether the C library relocates a module before it says that there is one, as from 2.41 on. Then the
/// resolvers have run.
fn relocates_first() -> bool {
    let mut command = std::process::Command::new("getconf");
    let said = run(command.arg("GNU_LIBC_VERSION"), LIMIT);
    let said = said.expect("getconf").expect_code(0).stdout_text();
    // `glibc 2.36`
    let version = said.trim().rsplit(' ').next().unwrap_or_default();
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (2, 41)
}

/// What each round calls: `dlopen` the resolver, once for the pointer, and the constructor; the
/// program the module's work; `dlclose` the destructor.
fn expected() -> BTreeMap<String, u64> {
    let of = [
        ("plug_begin", 1),
        ("plug_end", 1),
        ("plug_part", 3),
        ("plug_work", 2),
        ("resolved", 1),
    ];
    let of = of.map(|(name, calls)| (name.to_owned(), calls * ROUNDS));
    let mut expected = BTreeMap::from(of);
    if relocates_first() {
        expected.remove("resolved");
    }
    expected
}

#[test]
fn a_program_that_is_traced_from_its_start() {
    if !require_tools(&["gcc"]) {
        return;
    }
    for relocated in RELOCATED {
        let built = Built::new("fn-modules", relocated);
        let dump = built.fixture.path("run.rmk");
        let mut command = tool(&built.fixture);
        command.args(["run", "--kind", "graph", "--filter", "@plug.so", "-o"]);
        command.arg(&dump).arg("--").arg(&built.program);
        command.args(built.words()).stdin(Stdio::null());
        let _ = run(&mut command, LIMIT).expect("it starts").expect_code(0);
        let found = calls(&built.fixture, "", &dump);
        assert_eq!(found, expected(), "{relocated}");
    }
}

fn attached(label: &str, is_prepared: bool) {
    if !require_tools(&["gcc"]) {
        return;
    }
    let built = Built::new(label, "");
    let mut running = built.start(is_prepared, &[]);
    let start = "trace start -p PID --filter main --filter @plug.so --detach";
    let said = built.tell(&running, start);
    assert!(said.contains("1 function matched"), "{said}");
    let said = built.tell(&running, "trace status -p PID");
    assert!(!said.contains("modules"), "{said}");
    assert_eq!(built.rounds(&mut running), expected());
    let _ = built.tell(&running, "trace stop -p PID");
}

#[test]
fn a_program_that_was_prepared_and_is_attached_to_while_it_loads_a_module() {
    attached("fn-modules-prepared", true);
}

#[test]
fn a_program_that_is_attached_to_while_it_loads_a_module() {
    attached("fn-modules-attached", false);
}

/// Each load gives the module's functions new numbers; what was counted goes on.
#[test]
fn a_profile_goes_on_when_a_module_is_loaded_again() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let built = Built::new("fn-modules-again", "");
    let mut running = built.start(true, &[]);
    let start = "trace start -p PID --tracer profile --filter main --filter @plug.so --detach";
    let _ = built.tell(&running, start);
    let mut input = running.child().stdin.as_ref().expect("its input");
    input.write_all(b"x").expect("it reads");
    // In `pause`.
    running.wait_until_in(&["34 "]);
    let report = format!("report -p {} --tracer profile --json", running.id());
    let report = ringmark(&built.fixture, &report, &[]).expect_code(0);
    let counts = checked(&report.stdout_text()).into_iter().map(|object| {
        let count = object["count"].as_u64().expect("a number");
        (object["name"].as_str().expect("a name").to_owned(), count)
    });
    let counts: Vec<_> = counts.collect();
    let each_once = counts.iter().cloned().collect::<BTreeMap<_, _>>();
    assert_eq!(counts.len(), each_once.len(), "{counts:?}");
    assert_eq!(each_once, expected());
    // And in a trace file, which has what was gathered when the tracer was stopped.
    let _ = built.tell(&running, "trace stop -p PID --tracer profile");
    let dump = built.fixture.path("again.rmk");
    let snapshot = format!("snapshot -p {} -o", running.id());
    let _ = ringmark(&built.fixture, &snapshot, &[&dump]).expect_code(0);
    assert_eq!(calls(&built.fixture, "", &dump), expected());
}

/// Another tool has changed the place: the module is found all the same, and status says how.
#[test]
fn where_the_loader_cannot_be_asked_status_says_so() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let built = Built::new("fn-modules-asked", "");
    let mut running = built.start(true, &["changed"]);
    let _ = built.tell(&running, "trace start -p PID --all-functions --detach");
    let said = built.tell(&running, "trace status -p PID");
    let expected = "modules that the program loads are found up to 0.1 s after that: the loader's \
                    function for debuggers: found [c3, cc,";
    assert!(said.contains(expected), "{said}");
    let _ = built.rounds(&mut running);
}
