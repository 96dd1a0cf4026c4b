//! Promise: 2,000 threads are looked at, those that come and go are counted, and nothing is left behind.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use ringmark_profile::{LOOK_EVERY, Missing, Profile, Profiler};
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::compile;
use ringmark_tests::require_tools;

/// The program with its threads; ended by the end of its input when dropped.
pub(crate) struct Threads(pub(crate) Child);

impl Threads {
    pub(crate) fn start(fixture: &Fixture, idle: u64, short: u64) -> Self {
        let flags = "-O2 -pthread";
        let program = compile(fixture, "../c/many_threads.c", "many_threads", flags);
        let mut child = Command::new(program)
            .args([idle.to_string(), short.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a program");
        let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
        said.read_line(&mut String::new()).expect("it is ready");
        Self(child)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("ours").count()
}

/// Looks until the profile has what is asked for. The runner of the tests limits the time.
fn look_until(profiler: &mut Profiler, found: impl Fn(&Profile) -> bool) -> Profile {
    loop {
        assert!(profiler.look(), "it lives");
        let profile = profiler.profile();
        if found(&profile) {
            return profile;
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Whether threads are left out, but for few of those that come and go: they may have begun as the kernel's events did.
fn is_left_out(missing: &&Missing) -> bool {
    const FEW: u64 = 100;
    matches!(
        missing,
        Missing::Threads(_) | Missing::ThreadsRunning(FEW..)
    )
}

#[test]
fn two_thousand_wait_and_others_come_and_go() {
    const IDLE: usize = 2000;
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("many-threads");
    let program = Threads::start(&fixture, IDLE as u64, 8);
    let most = getrlimit(Resource::Nofile).maximum;
    let all = Rlimit {
        current: most,
        maximum: most,
    };
    setrlimit(Resource::Nofile, all).expect("as many as we may have");
    let before = descriptors();
    let mut profiler = Profiler::attach(program.0.id(), 99).expect("it is there");
    let waits_of_idle = |profile: &Profile| {
        let waits = profile.waits.iter();
        let mut waits =
            waits.filter(|wait| wait.stack.iter().any(|of| of.name == "waits_for_ever"));
        waits.next().map_or(0, |wait| wait.times)
    };
    let brief = |profile: &Profile| {
        profile
            .threads
            .iter()
            .filter(|of| of.name == "brief")
            .count()
    };
    let profile = look_until(&mut profiler, |profile| {
        waits_of_idle(profile) >= IDLE as u64 && brief(profile) >= 40
    });
    assert_eq!(waits_of_idle(&profile), IDLE as u64, "each waits once");
    let idle = profile
        .threads
        .iter()
        .filter(|of| of.name == "idle")
        .count();
    assert_eq!(idle, IDLE);
    let limit = getrlimit(Resource::Nofile).current;
    println!(
        "{} descriptors of {limit:?}, {} threads seen",
        descriptors(),
        profile.threads.len()
    );
    // A descriptor for each, and two for each on two processors.
    if limit.is_none_or(|limit| limit > 4 * IDLE as u64) {
        assert_eq!(profile.missing.iter().find(is_left_out), None);
    }
    if !matches!(profile.missing.first(), Some(Missing::Running(_))) {
        let brief = |missing: &&Missing| matches!(missing, Missing::BriefThreads(20..));
        assert!(
            profile.missing.iter().any(|of| brief(&of)),
            "{:?}",
            profile.missing
        );
    }
    drop(profiler);
    assert_eq!(descriptors(), before, "something is left behind");
}
