//! Promise: several copies of the library in one process have a session each, on one clock; what one
//! copy records never lands in another one's ring.

use crate::c;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use c::{GCC, LIMIT, compile};
use ringmark_decoder::{Dump, Output, Value};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::read;
use ringmark_tests::{is_long, require_tools, run};

const SETTINGS: &str = "mode=discard,keep=always,ring=1M";
const STATIC: &str = "two_copies.c -l:libringmark.a";
/// Events of each name: 5000 of each of two threads.
const EVENTS: u64 = 10_000;

/// Events by name, in each session; each thread's numbers come in their order.
fn by_session(dump: &Dump) -> Vec<BTreeMap<String, u64>> {
    let mut next: BTreeMap<(u32, String), u64> = BTreeMap::new();
    let mut sessions: BTreeMap<[u8; 16], BTreeMap<String, u64>> = BTreeMap::new();
    for item in dump.events() {
        let event = match item {
            Output::Event(event) => event,
            Output::Lost(lost) => panic!("lost {:?}", lost.loss),
        };
        let name = event.name().escape_ascii().to_string();
        let next = next
            .entry((event.page.header.tid, name.clone()))
            .or_default();
        let Some((_, Value::U64(n))) = event.args().next() else {
            panic!("{name} without its number");
        };
        assert_eq!(n, *next, "{name}");
        *next += 1;
        let of_session = sessions.entry(event.session.uuid.0).or_default();
        *of_session.entry(name).or_default() += 1;
    }
    sessions.into_values().collect()
}

fn counts(names: &[&str]) -> BTreeMap<String, u64> {
    let pairs = names.iter().map(|name| ((*name).to_owned(), EVENTS));
    pairs.collect()
}

/// What a session's header says of its clock, by process.
fn clocks(dump: &Dump) -> BTreeMap<u32, BTreeSet<[u64; 5]>> {
    let mut clocks: BTreeMap<u32, BTreeSet<[u64; 5]>> = BTreeMap::new();
    for header in dump.sessions.iter().filter_map(|session| session.header) {
        let clock = u64::from(header.clock);
        let zero = [header.tick_zero, header.mono_zero_ns, header.real_zero_ns];
        let [tick, mono, real] = zero;
        let of_process = clocks.entry(header.pid).or_default();
        of_process.insert([clock, tick, mono, real, header.tick_mult]);
    }
    clocks
}

/// Runs the program with its plugin and expects that many sessions.
fn expect_sessions(fixture: &Fixture, host: &Path, plugin: &Path, how: &str, sessions: usize) {
    let mut command = fixture.program(&host.to_string_lossy(), SETTINGS);
    command.arg(plugin).arg(how);
    let _ = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    let files = fixture.ring_files();
    let dump = read(&files);
    let clocks = clocks(&dump);
    assert!(
        clocks.values().all(|all| all.len() == 1),
        "{how}: one zero: {clocks:?}"
    );
    let plugins = ["plugin.another", "plugin.event"];
    let mut found = by_session(&dump);
    found.sort();
    let expected = match sessions {
        1 => vec![counts(&["host.event", plugins[0], plugins[1]])],
        _ => vec![counts(&["host.event"]), counts(&plugins)],
    };
    assert_eq!(found, expected, "{how}");
    files
        .iter()
        .for_each(|file| std::fs::remove_file(file).expect("a ring file"));
}

/// A shared object that records events of its own, compiled with these flags, too.
fn plugin(fixture: &Fixture, flags: &str) -> PathBuf {
    let flags = format!("-DPLUGIN -shared -fPIC {flags}");
    compile(fixture, GCC, "two_copies.c", &flags, "plugin.so")
}

#[test]
fn a_static_and_a_shared_copy_keep_apart() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("copies");
    let plugin = plugin(&fixture, "-O2");
    let host = |flags: &str, output| compile(&fixture, GCC, STATIC, flags, output);
    // The program keeps its names to itself: the plugin finds those of the shared library.
    let plain = host("-O2 -Wl,--as-needed", "plain");
    expect_sessions(&fixture, &plain, &plugin, "plain", 2);
    // It exports them: the plugin finds all of them there, and has no copy of its own.
    let exporting = host("-O2 -rdynamic -Wl,--as-needed", "exporting");
    expect_sessions(&fixture, &exporting, &plugin, "plain", 1);
    // It exports them, and the plugin finds those of the shared library all the same.
    expect_sessions(&fixture, &exporting, &plugin, "deep", 2);
}

#[test]
fn the_static_library_links_next_to_the_shared_one() {
    if !require_tools(&["gcc", "readelf"]) {
        return;
    }
    let fixture = Fixture::new("copies-both");
    let plugin = plugin(&fixture, "");
    let host = compile(&fixture, GCC, STATIC, "-Wl,--no-as-needed", "both");
    let mut needs = fixture.command("readelf");
    let needs = run(needs.arg("-d").arg(&host), SOON)
        .expect("readelf")
        .stdout_text();
    assert!(needs.contains("libringmark.so"), "{needs}");
    // The linker exports what the shared library has, too.
    expect_sessions(&fixture, &host, &plugin, "plain", 1);
    expect_sessions(&fixture, &host, &plugin, "deep", 2);
}

#[test]
fn a_forked_child_has_a_session_for_each_copy() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("copies-fork");
    let plugin = plugin(&fixture, "-O2");
    let host = compile(&fixture, GCC, STATIC, "-O2 -Wl,--as-needed", "host");
    let rounds = if is_long() { 200 } else { 10 };
    for _ in 0..rounds {
        let mut command = fixture.program(&host.to_string_lossy(), SETTINGS);
        command.arg(&plugin).args(["plain", "fork"]);
        let _ = run(&mut command, LIMIT).expect("it starts").expect_code(0);
        let files = fixture.ring_files();
        let dump = read(&files);
        let clocks = clocks(&dump);
        assert_eq!(clocks.len(), 2, "{clocks:?}");
        assert!(clocks.values().all(|all| all.len() == 1), "{clocks:?}");
        let mut found = by_session(&dump);
        found.sort();
        let half = |all: BTreeMap<String, u64>| -> BTreeMap<_, _> {
            all.into_iter()
                .map(|(name, count)| (name, count / 2))
                .collect()
        };
        let (host, plugin) = (
            counts(&["host.event"]),
            counts(&["plugin.another", "plugin.event"]),
        );
        let mut expected = vec![host.clone(), half(host), plugin.clone(), half(plugin)];
        expected.sort();
        assert_eq!(found, expected);
        files
            .iter()
            .for_each(|file| std::fs::remove_file(file).expect("a ring file"));
    }
}
