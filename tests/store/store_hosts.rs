//! Promise: `store hosts` says of each host of a store whether it is silent, lagging, heard or over, and how far it is complete.

use std::time::Duration;

use ringmark_tests::collecting::wait_for_listener;
use ringmark_tests::fixture::{Counters, Fixture, SOON};
use ringmark_tests::json_schema::checked;
use ringmark_tests::{Running, binary, run, wait_until};
use rustix::process::Signal;

const EMIT: &str = ringmark_tests::program!("emit");
const EVENTS: u64 = 1500;

struct Scene {
    fixture: Fixture,
    listen: String,
}

impl Scene {
    fn start(&self, arguments: &str) -> Running {
        let mut command = self.fixture.command(binary::path());
        command.args(arguments.split_whitespace());
        Running::start(&mut command).unwrap()
    }

    fn collector(label: &str, store: &str) -> (Self, Running) {
        let fixture = Fixture::new(label);
        let listen = format!("unix://{}", fixture.path("socket").display());
        let scene = Self { fixture, listen };
        let place = scene.fixture.path("store");
        let store = store.replace("STORE", &place.display().to_string());
        let arguments = format!("collect --listen {} {store}", scene.listen);
        let running = scene.start(&arguments);
        wait_for_listener(&scene.fixture.path("socket"));
        (scene, running)
    }

    fn streamer(&self) -> Running {
        self.start(&format!(
            "stream --all --host web-1 --to {} --open-every 100ms",
            self.listen
        ))
    }

    /// What `store hosts` says with these options, and its exit code.
    fn hosts(&self, options: &str) -> (String, i32) {
        let mut command = self.fixture.command(binary::path());
        command
            .args(["store", "hosts"])
            .arg(self.fixture.path("store"));
        let done = run(command.args(options.split_whitespace()), SOON).unwrap();
        (done.stdout_text(), done.code())
    }

    /// Waits until `store hosts` says that the host is in this state.
    fn wait_for(&self, options: &str, state: &str, code: i32) -> String {
        wait_until(SOON, state, || {
            let (text, found) = self.hosts(options);
            (text.contains(state) && found == code).then_some(text)
        })
    }
}

fn expect_states(label: &str, store: &str) {
    let (scene, collector) = Scene::collector(label, store);
    let counters = Counters::new(scene.fixture.path("counters"));
    let arguments = format!("1 {EVENTS} hold=600000 {}", counters.argument());
    let ringmark = "mode=discard,ring=1M,page=4K,session=8M";
    let program = scene.fixture.start(EMIT, ringmark, &arguments);
    let streamer = scene.streamer();
    wait_until(SOON, "all events", || {
        (counters.read(1) == [EVENTS]).then_some(())
    });
    // Nothing comes any more of a program that waits: it is heard all the same.
    let text = scene.wait_for("", "heard", 0);
    assert!(text.contains("web-1"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let _ = scene.wait_for("--lag 1ms", "lagging", 1);
    let _ = streamer.kill().unwrap();
    let _ = scene.wait_for("--silent 2s", "silent", 1);
    let json = scene.wait_for("--silent 2s --json", "\"state\":\"silent\"", 1);
    assert!(
        json.contains("\"kind\":\"stored_host\"") && json.contains("\"host\":\"web-1\""),
        "{json}"
    );
    let streamer = scene.streamer();
    let _ = program.kill().unwrap();
    let text = scene.wait_for("--silent 1ms", "over", 0);
    assert!(text.contains("whole"), "{text}");
    let json = &checked(&scene.hosts("--json").0)[0];
    let counted = (json["events"].as_u64(), json["lost"].as_u64());
    assert_eq!(counted, (Some(EVENTS), Some(0)), "{json}");
    let mut command = scene.fixture.command(binary::path());
    let hours = command.args(["store", "ls", "--by", "hour", "--json"]);
    let hours = run(hours.arg(scene.fixture.path("store")), SOON).unwrap();
    let hours = checked(&hours.expect_code(0).stdout_text());
    let puts: f64 = hours.iter().filter_map(|hour| hour["puts"].as_f64()).sum();
    // A store of objects has at least the schema and a segment, and each counts as a whole.
    let is_whole = (puts - puts.round()).abs() < 1e-6;
    assert!(
        is_whole && (puts >= 2.0) == store.starts_with("--objects"),
        "{hours:?}"
    );
    for running in [streamer, collector] {
        running.signal(Signal::TERM).unwrap();
        let _ = running.finish(SOON + Duration::from_secs(1));
    }
}

#[test]
fn hosts_of_the_store_of_one_collector() {
    expect_states("hosts-disk", "--store STORE");
}

#[test]
fn hosts_of_a_store_of_objects() {
    expect_states("hosts-objects", "--objects file://STORE --flush 100ms");
}
