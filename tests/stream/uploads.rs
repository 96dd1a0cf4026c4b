//! Promise: with `stream --on-trigger` what a flight recorder holds stays on its host until something happens; then it is
//! in the store, each event once. What is sent, and how fast, the operator chooses.

use std::path::Path;
use std::time::{Duration, Instant};

use ringmark_decoder::Dump;
use ringmark_tests::collecting::Collecting;
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Counters, Fixture, SOON, wait_until_mapped};
use ringmark_tests::{Running, binary, wait_until};
use rustix::process::Signal;

const EMIT: &str = ringmark_tests::program!("emit");
const OVERWRITE: &str = "mode=overwrite,ring=64K,page=4K,session=8M";
/// How often a streamer looks, and must send nothing.
const LOOKS: u64 = 40;

struct Scene {
    fixture: Fixture,
    collecting: Collecting,
}

impl Scene {
    fn new(label: &str) -> Self {
        let fixture = Fixture::new(label);
        let (socket, store) = (fixture.path("socket"), fixture.path("store"));
        let collecting = Collecting::start(&socket, &store);
        Self {
            fixture,
            collecting,
        }
    }

    fn streamer(&self, what: &[&str]) -> Running {
        let mut command = self.fixture.command(binary::path());
        let to = format!("unix://{}", self.fixture.path("socket").display());
        command.args(["stream", "--open-every", "100ms", "--to", &to]);
        Running::start(command.args(what)).unwrap()
    }

    /// A streamer that waits for triggers, and has met what is there.
    fn waiting_streamer(&self) -> Running {
        let streamer = self.streamer(&["--all", "--on-trigger"]);
        for file in self.fixture.ring_files() {
            wait_until_mapped(&streamer, &file);
        }
        streamer
    }

    /// A program that emits until it is ended.
    fn program(&self, counters: &Counters) -> Running {
        let arguments = format!("1 100000000 burst=20 pause=5000 {}", counters.argument());
        let program = self.fixture.start(EMIT, OVERWRITE, &arguments);
        wait_until(SOON, "some events", || {
            (counters.read(1)[0] >= 100).then_some(())
        });
        program
    }

    fn pages(&self) -> u64 {
        self.collecting.figure("pages_total")
    }

    fn wait_for_pages(&self, before: u64) {
        wait_until(SOON, "pages in the store", || {
            (self.pages() > before).then_some(())
        });
    }

    /// What is stored: without damage, each event once.
    fn stored(&self) -> (Dump, u64) {
        let dump = self.collecting.stored();
        assert_eq!((dump.conflicts, dump.damage.len()), (0, 0));
        let account = Delivery::of(&dump);
        account.expect_no_errors();
        let delivered = account.delivered();
        (dump, delivered)
    }
}

fn end(streamer: Running) -> String {
    streamer.signal(Signal::TERM).unwrap();
    streamer.finish(SOON).expect_code(0).stderr_text()
}

#[test]
fn only_what_ended_badly_is_sent() {
    let scene = Scene::new("uploads-ends");
    let fixture = &scene.fixture;
    let streamer = scene.streamer(&["--all", "--on-trigger"]);
    let counters = Counters::new(fixture.path("well"));
    let well = scene.program(&counters);
    let mapped = fixture.ring_file();
    wait_until_mapped(&streamer, &mapped);
    counters.stop();
    let _ = well.finish(SOON).expect_code(0);
    wait_until(SOON, "the file to go, as without a streamer", || {
        (!mapped.exists()).then_some(())
    });
    assert_eq!(scene.pages(), 0, "nothing was sent");
    let counters = Counters::new(fixture.path("badly"));
    let badly = scene.program(&counters);
    wait_until_mapped(&streamer, &fixture.ring_file());
    drop(badly.kill().unwrap());
    scene.wait_for_pages(0);
    wait_until(SOON, "its end", || {
        (scene.collecting.stored().endings().len() == 1).then_some(())
    });
    let told = end(streamer);
    let (dump, delivered) = scene.stored();
    let ending = dump.endings()[0].ending.to_string();
    assert!(ending.contains("SIGKILL"), "{ending}");
    assert!(delivered >= 100, "{delivered} of the killed program");
    assert!(told.contains("what the rings hold is sent"), "{told}");
}

#[test]
fn what_is_there_is_sent_on_request_and_the_program_goes_on() {
    let scene = Scene::new("uploads-request");
    let counters = Counters::new(scene.fixture.path("counters"));
    let program = scene.program(&counters);
    let streamer = scene.waiting_streamer();
    streamer.wait_for_sleeps(LOOKS);
    assert_eq!(scene.pages(), 0, "nothing was asked for");
    let mut before = 0;
    for round in 1..=2 {
        let emitted = counters.read(1)[0];
        streamer.signal(Signal::USR1).unwrap();
        wait_until(SOON, "what was there", || {
            let account = Delivery::of(&scene.collecting.stored());
            let reached = account.rings.values().map(|ring| ring.emitted()).max();
            (reached >= Some(emitted)).then_some(())
        });
        streamer.wait_for_sleeps(LOOKS);
        let (_, delivered) = scene.stored();
        assert!(delivered > before, "round {round}");
        before = delivered;
        streamer.wait_for_sleeps(LOOKS);
        assert_eq!(scene.stored().1, delivered, "it waits again, round {round}");
    }
    let told = end(streamer);
    assert_eq!(scene.stored().1, before, "an end asks for nothing");
    assert!(told.contains("1 session: what"), "{told}");
    drop(program.kill().unwrap());
}

/// The control group of this process.
fn own_group() -> Option<String> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let last = groups.lines().last()?;
    last.splitn(3, ':').nth(2).map(str::to_owned)
}

fn is_taken(streamer: &Running, file: &Path) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", streamer.id()));
    maps.unwrap_or_default().contains(&*file.to_string_lossy())
}

#[test]
fn a_control_group_is_chosen() {
    let Some(group) = own_group() else {
        return;
    };
    let scene = Scene::new("uploads-group");
    let ringmark = "mode=discard,ring=1M,page=16K,session=8M";
    let program = scene.fixture.start(EMIT, ringmark, "1 100 hold=600000");
    let file = scene.fixture.ring_file();
    let other = scene.streamer(&["--cgroup", "/no/such.slice"]);
    let ours = scene.streamer(&["--cgroup", &group]);
    wait_until(SOON, "its events", || {
        (Delivery::of(&scene.collecting.stored()).delivered() == 100).then_some(())
    });
    assert!(!is_taken(&other, &file), "it is in another group");
    let _ = (end(ours), end(other));
    drop(program.kill().unwrap());
}

#[test]
fn no_more_is_sent_in_a_second_than_may_be() {
    const RATE: u64 = 1 << 20;
    let scene = Scene::new("uploads-rate");
    let ringmark = "mode=discard,ring=8M,page=16K,session=32M,keep=always";
    let program = scene.fixture.start(EMIT, ringmark, "1 3000 bulk=1000");
    let _ = program.finish(SOON).expect_code(0);
    let begun = Instant::now();
    let streamer = scene.streamer(&["--all", "--max-rate", "1M"]);
    wait_until(SOON, "all events", || {
        (Delivery::of(&scene.collecting.stored()).delivered() == 3000).then_some(())
    });
    let took = begun.elapsed();
    let received = scene.collecting.figure("received_bytes_total");
    let least = Duration::from_secs_f64(received as f64 / RATE as f64 - 1.0);
    assert!(
        took >= least && received > 3 * RATE / 2,
        "{received} bytes in {took:?}"
    );
    let _ = end(streamer);
}
