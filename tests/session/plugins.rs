//! Promise: a shared object in Rust may have a session, and its host may close it whenever it likes.

use std::collections::BTreeMap;
use std::path::Path;

use ringmark_decoder::Output;
use ringmark_tests::binary::built;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::read;

const HOST: &str = ringmark_tests::program!("plugin_host");
const HOST_TRACED: &str = ringmark_tests::program!("plugin_host_traced");
/// The session is in memory without a name.
const MEMFD: u32 = 1;
/// The session has no helper thread.
const QUIET: u32 = 2;

/// Runs the host with the plugin to its end; the events of the sessions that stay, by name.
fn run(host: &str, how: u32) -> BTreeMap<String, u64> {
    let plugin = built("libringmark_test_plugin.so");
    run_with(host, &plugin, how)
}

fn run_with(host: &str, plugin: &Path, how: u32) -> BTreeMap<String, u64> {
    let fixture = Fixture::new("plugin");
    let arguments = format!("{} {how}", plugin.display());
    let done = fixture.start(host, "0", &arguments).finish(SOON);
    let done = done.expect_code(0);
    assert_eq!(done.stdout_text(), "alive\n");
    let mut events = BTreeMap::new();
    for item in read(&fixture.ring_files()).events() {
        match item {
            Output::Event(event) => {
                *events
                    .entry(event.name().escape_ascii().to_string())
                    .or_default() += 1;
            }
            Output::Lost(lost) => panic!("{lost:?}"),
        }
    }
    events
}

#[test]
fn a_host_without_ringmark_closes_a_plugin_whose_session_runs() {
    let expected = BTreeMap::from([("plugin.event".to_owned(), 30)]);
    for how in [0, QUIET] {
        assert_eq!(run(HOST, how), expected, "how {how}");
    }
}

#[test]
fn so_does_a_host_with_a_session_of_its_own() {
    let host = ("host.event".to_owned(), 2);
    let in_memory = BTreeMap::from([host.clone()]);
    for how in [MEMFD, MEMFD | QUIET] {
        assert_eq!(run(HOST_TRACED, how), in_memory, "how {how}");
    }
    let both = BTreeMap::from([host, ("plugin.event".to_owned(), 30)]);
    for how in [0, QUIET] {
        assert_eq!(run(HOST_TRACED, how), both, "how {how}");
    }
}
