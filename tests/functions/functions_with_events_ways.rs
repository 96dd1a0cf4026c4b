//! Promise: a program's own events and its functions are one trace in every way to record: by a trigger,
//! in a snapshot, after a death, by a recorder or streamer of all, by one command on a running
//! program. Each event lies where the program emitted it; of rings that are overwritten that holds in
//! the time that all of them cover.

use crate::with_events;

use std::path::{Path, PathBuf};
use std::process::Command;

use ringmark_tests::collecting::Collecting;
use ringmark_tests::fixture::{Fixture, wait_until_mapped};
use ringmark_tests::functions::{library, tool};
use ringmark_tests::recording::decode;
use ringmark_tests::{Running, is_long, require_tools, run, wait_until};
use rustix::process::Signal;
use with_events::order::{Part, check, fault};
use with_events::program::{Copy, LIMIT, Program, Started, Work};

/// What the function tracer of a program that is started with it does.
const TRACED: &str = "tracer=graph;filter=*;args=1";

/// The round whose event is planted in another place, from the end.
const PLANTED_ROUND: u64 = 20;

/// Rings that a reader empties.
fn emptied() -> &'static str {
    match is_long() {
        true => "mode=discard,keep=always,ring=8M,session=128M",
        false => "mode=discard,keep=always,ring=1M,session=16M",
    }
}

/// Rings that hold the last part; those of functions are too small for all. Calls of Rust are
/// recorded without arguments: in fewer bytes.
fn overwritten(copy: Copy) -> &'static str {
    match (is_long(), copy) {
        (true, Copy::Rust) => "mode=overwrite,keep=always,ring=8M,session=256M,page=16K",
        (true, _) => "mode=overwrite,keep=always,ring=10M,session=256M,page=16K",
        (false, _) => "mode=overwrite,keep=always,ring=32K,session=16M,page=4K",
    }
}

/// A program of each kind, that is traced from its start.
fn for_all(way: fn(&Scene)) {
    if !require_tools(&["gcc"]) {
        return;
    }
    for copy in [Copy::Rust, Copy::Static, Copy::Shared, Copy::Plugin] {
        way(&Scene::new(copy, ""));
    }
}

/// A program to be recorded in some way.
struct Scene {
    fixture: Fixture,
    program: Program,
    work: Work,
    copy: Copy,
}

impl Scene {
    /// `flags`: more of them for the compiler.
    fn new(copy: Copy, flags: &str) -> Self {
        let fixture = Fixture::new("fn-ways");
        let program = Program::build(&fixture, copy, flags);
        let work = Work::new(copy);
        Self {
            fixture,
            program,
            work,
            copy,
        }
    }

    fn start(&self, settings: &str, tracers: &str) -> Started {
        let preload = Some(library());
        let mut command = self
            .program
            .command(&self.fixture, &self.work, settings, preload);
        command.env("RINGMARK_TRACE", tracers);
        self.program.start(command, &self.work)
    }

    /// A command that ends by itself, or when it is asked to.
    fn tool(&self, words: &str, of: &Started) -> Command {
        let mut command = tool(&self.fixture);
        let pid = of.id().to_string();
        command.args(
            words
                .split(' ')
                .map(|word| if word == "PID" { &pid } else { word }),
        );
        command
    }

    fn trace_file(&self) -> PathBuf {
        self.fixture.path("way.rmk")
    }

    /// Waits until a command has opened all sessions of the program.
    fn wait_until_opened(&self, by: &Running) {
        for ring_file in self.fixture.ring_files() {
            wait_until_mapped(by, &ring_file);
        }
    }

    fn check(&self, part: Part, what: &str) {
        check(
            &decode(&[self.trace_file()]),
            &self.work,
            self.copy,
            part,
            what,
        );
    }
}

fn ends_well(command: Running) {
    command.signal(Signal::INT).expect("it runs");
    let _ = command.finish(LIMIT).expect_code(0);
}

fn snapshot(scene: &Scene) {
    let mut program = scene.start(overwritten(scene.copy), TRACED);
    program.go();
    program.wait_until_done();
    let mut snapshot = scene.tool("snapshot -p PID -o", &program);
    let _ = run(snapshot.arg(scene.trace_file()), LIMIT)
        .expect("ringmark")
        .expect_code(0);
    let _ = program.finish();
}

fn record_all(scene: &Scene) {
    let mut program = scene.start(emptied(), TRACED);
    let mut recorder = scene.tool("record --all -o", &program);
    let recorder = Running::start(recorder.arg(scene.trace_file())).expect("it starts");
    scene.wait_until_opened(&recorder);
    program.go();
    program.wait_until_done();
    let _ = program.finish();
    ends_well(recorder);
}

#[test]
fn in_a_snapshot() {
    for_all(|scene| {
        snapshot(scene);
        scene.check(Part::Cover, "snapshot");
    });
}

#[test]
fn by_a_recorder_of_all() {
    for_all(|scene| {
        record_all(scene);
        scene.check(Part::Whole, "record --all");
    });
}

/// The check itself: one event of each thread is before the call that should emit it, after it,
/// there twice, or not there.
#[test]
fn an_event_in_a_wrong_place_is_seen() {
    if !require_tools(&["gcc"]) {
        return;
    }
    for place in ["BEFORE", "AFTER", "TWICE", "NOWHERE"] {
        for part in [Part::Cover, Part::Whole] {
            let scene = Scene::new(Copy::Static, &format!("-DPLANTED={place}"));
            match part {
                Part::Cover => snapshot(&scene),
                Part::Whole | Part::Recorded => record_all(&scene),
            }
            let found = fault(&decode(&[scene.trace_file()]), &scene.work, part);
            let found = found.expect("it is seen");
            let round = format!("{}", scene.work.rounds - PLANTED_ROUND);
            let is_it = found.contains(" exceptions, ") && found.contains(&round);
            assert!(is_it, "{place}, {part:?}: {found}");
        }
    }
}

#[test]
fn by_a_trigger() {
    for_all(|scene| {
        let tracers = format!("{TRACED};trigger=*all_done:entry=snapshot");
        let mut program = scene.start(overwritten(scene.copy), &tracers);
        let mut snapshot = scene.tool("snapshot --on-trigger -p PID -o", &program);
        let snapshot = Running::start(snapshot.arg(scene.trace_file())).expect("it starts");
        scene.wait_until_opened(&snapshot);
        program.go();
        let _ = snapshot.finish(LIMIT).expect_code(0);
        let _ = program.finish();
        scene.check(Part::Cover, "trigger");
    });
}

#[test]
fn after_a_death() {
    for_all(|scene| {
        let deaths = scene.fixture.path("deaths");
        std::fs::create_dir(&deaths).expect("a directory");
        let mut program = scene.start(overwritten(scene.copy), TRACED);
        let mut watch = scene.tool("record --all --on-death", &program);
        let watch = Running::start(watch.arg(&deaths)).expect("it starts");
        scene.wait_until_opened(&watch);
        program.go();
        program.wait_until_done();
        let pid = program.id();
        assert_eq!(program.running.kill().expect("it runs").code(), 137);
        let written = wait_until(LIMIT, "a trace file", || {
            let maps = std::fs::read_to_string(format!("/proc/{}/maps", watch.id()));
            let is_let_go = maps.is_ok_and(|maps| !maps.contains(".ring"));
            is_let_go.then(|| files_in(&deaths))
        });
        // One for all sessions of the process.
        assert_eq!(written.len(), 1, "{written:?}");
        let name = written[0]
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        assert!(name.ends_with(&format!("-{pid}-SIGKILL.rmk")), "{name}");
        std::fs::rename(&written[0], scene.trace_file()).expect("a file");
        ends_well(watch);
        scene.check(Part::Cover, "on-death");
    });
}

fn files_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[test]
fn by_a_streamer() {
    for_all(|scene| {
        let socket = scene.fixture.path("socket");
        let collecting = Collecting::start(&socket, &scene.fixture.path("store"));
        let mut program = scene.start(emptied(), TRACED);
        let mut streamer = scene.tool("stream -p PID --to", &program);
        let to = format!("unix://{}", socket.display());
        let streamer = Running::start(streamer.arg(to)).expect("it starts");
        scene.wait_until_opened(&streamer);
        program.go();
        let _ = program.finish();
        let _ = streamer.finish(LIMIT).expect_code(0);
        let stored = collecting.stored();
        check(&stored, &scene.work, scene.copy, Part::Whole, "stream");
        // One process in the store, too.
        let processes = stored.sessions.iter().map(|session| session.process);
        assert_eq!(processes.max(), Some(0), "one process");
    });
}

/// One command loads the tracer, records both, and stops.
#[test]
fn by_one_command_on_a_running_program() {
    for_all(|scene| {
        let settings = emptied();
        let command = scene
            .program
            .command(&scene.fixture, &scene.work, settings, None);
        let mut program = scene.program.start(command, &scene.work);
        let mut recorder = scene.tool("record -p PID --kind graph --args 1 -o", &program);
        let recorder = Running::start(recorder.arg(scene.trace_file())).expect("it starts");
        let mut status = scene.tool("trace status -p PID", &program);
        wait_until(LIMIT, "the start", || {
            let said = run(&mut status, LIMIT).expect("ringmark").stdout_text();
            said.contains("leased").then_some(())
        });
        program.go();
        let _ = program.finish();
        let _ = recorder.finish(LIMIT).expect_code(0);
        scene.check(Part::Recorded, "record -p --kind");
    });
}
