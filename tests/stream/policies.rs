//! Promise: an operator's signed policy and a host's own bounds say what is recorded and sent; what a budget leaves
//! out is counted, exactly; a collector that is not honest can do no more than hand out the newest policy again.

use std::fs;
use std::path::PathBuf;

use ringmark_decoder::Verification;
use ringmark_tests::collecting::{segments, wait_for_listener};
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Counters, Fixture, SOON};
use ringmark_tests::json_schema::checked;
use ringmark_tests::recording::decode;
use ringmark_tests::{Running, binary, run, wait_until};
use rustix::process::Signal;

const EMIT: &str = ringmark_tests::program!("emit");
const KNOBS: &str = ringmark_tests::program!("knobs");
const EVENTS: u64 = 30_000;

struct Scene {
    fixture: Fixture,
}

impl Scene {
    fn new(label: &str) -> Self {
        Self {
            fixture: Fixture::new(label),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.fixture.path(name)
    }

    fn listen(&self) -> String {
        format!("unix://{}", self.path("socket").display())
    }

    /// Runs a command of `ringmark` in this scene's directory to its end.
    fn ringmark(&self, arguments: &str, code: i32) -> String {
        let mut command = self.fixture.command(binary::path());
        command
            .args(arguments.split_whitespace())
            .current_dir(self.path(""));
        let done = run(&mut command, SOON).unwrap().expect_code(code);
        done.stdout_text() + &done.stderr_text()
    }

    /// Starts a command of `ringmark`, whose notices go to the file `said`.
    fn start(&self, said: &str, arguments: &str) -> Running {
        let mut command = self.fixture.command("sh");
        command.args(["-c", "f=$1; shift; exec \"$@\" 2>>$f </dev/null", "sh"]);
        command.arg(self.path(said)).arg(binary::path());
        command
            .args(arguments.split_whitespace())
            .current_dir(self.path(""));
        Running::start(&mut command).unwrap()
    }

    fn collector(&self, more: &str) -> Running {
        let arguments = format!("collect --listen {} {more}", self.listen());
        let running = self.start("collector", &arguments);
        wait_for_listener(&self.path("socket"));
        running
    }

    fn streamer(&self, more: &str) -> Running {
        let arguments = format!(
            "stream --all --to {} --open-every 100ms {more}",
            self.listen()
        );
        self.start("streamer", &arguments)
    }

    fn wait_to_hear(&self, of: &str, expected: &str) {
        wait_until(SOON, expected, || {
            let said = fs::read_to_string(self.path(of)).ok()?;
            said.contains(expected).then_some(())
        });
    }

    /// Signs a policy with these lines.
    fn sign(&self, key: &str, more: &str, text: &str) {
        fs::write(self.path("fleet.toml"), text).unwrap();
        let arguments =
            format!("policy sign fleet.toml --key {key}/policy.key -o fleet.policy {more}");
        let _ = self.ringmark(&arguments, 0);
    }

    /// A program of a service that emits events and waits to be ended.
    fn program(&self, service: &str) -> (Running, Counters) {
        let counters = Counters::new(self.path(service));
        let mut command = self
            .fixture
            .program(EMIT, "mode=discard,ring=16M,page=4K,session=64M");
        let arguments = format!("1 {EVENTS} bulk=64 {}", counters.argument());
        command
            .env("OTEL_SERVICE_NAME", service)
            .args(arguments.split_whitespace());
        (Running::start(&mut command).unwrap(), counters)
    }

    fn verified(&self, service: &str) -> (Verification, u64) {
        let of = format!("/{service}/");
        let files = segments(&self.path("store"));
        let its: Vec<_> = files
            .into_iter()
            .filter(|file| file.to_string_lossy().contains(&of))
            .collect();
        let dump = decode(&its);
        (dump.verify(), Delivery::of(&dump).delivered())
    }
}

fn end(running: Running) {
    running.signal(Signal::TERM).unwrap();
    let _ = running.finish(SOON);
}

/// What came of two services, of which one has a budget.
fn expect_one_bounded(scene: &Scene) {
    for service in ["shop", "bank"] {
        let (program, counters) = scene.program(service);
        let _ = program.finish(SOON).expect_code(0);
        assert_eq!(counters.read(1), [EVENTS]);
    }
    wait_until(SOON, "both are sent", || {
        let is_whole = |service| scene.verified(service).0.complete;
        (is_whole("shop") && is_whole("bank")).then_some(())
    });
    let (bank, delivered) = scene.verified("bank");
    assert_eq!((bank.events, bank.over_budget, bank.lost), (EVENTS, 0, 0));
    assert_eq!((delivered, bank.complete), (EVENTS, true));
    let (shop, delivered) = scene.verified("shop");
    assert!(shop.over_budget > EVENTS / 2 && shop.events > 0, "{shop:?}");
    assert_eq!(shop.events + shop.over_budget, EVENTS, "{shop:?}");
    assert_eq!(
        (shop.lost, shop.missing, shop.late, shop.is_clean()),
        (0, 0, 0, true),
        "{shop:?}"
    );
    assert_eq!((delivered, shop.complete), (shop.events, true));
    let left_out = shop.over_budget;
    let told = scene.ringmark("verify store", 0);
    assert!(
        told.contains(&format!("over_budget: {left_out}: left out by budget")),
        "{told}"
    );
    let told = scene.ringmark("verify store --json", 0);
    assert!(
        told.contains(&format!("\"over_budget\":{left_out}")),
        "{told}"
    );
    let told = scene.ringmark("store hosts store --json", 0);
    let _ = checked(&told);
    assert!(
        told.contains(&format!("\"over_budget\":{left_out}")),
        "{told}"
    );
    let told = scene.ringmark("cat store", 0);
    assert!(told.contains("left out by budget"), "no such line of cat");
}

#[test]
fn a_hosts_own_budget_bounds_one_service_exactly_and_no_other() {
    let scene = Scene::new("budget-own");
    fs::write(
        scene.path("own.toml"),
        "[service.shop]\nbudget = '400K'\nburst = '200K'\n",
    )
    .unwrap();
    let collector = scene.collector("--store store");
    let streamer = scene.streamer("--policy-max own.toml --status-file status");
    expect_one_bounded(&scene);
    end(streamer);
    end(collector);
    let status = fs::read_to_string(scene.path("status")).unwrap();
    let (shop, _) = scene.verified("shop");
    assert!(
        status.contains(&format!("\"over_budget\":{}", shop.over_budget)),
        "{status}"
    );
}

#[test]
fn a_policys_budget_bounds_what_comes_from_the_spill_too() {
    let scene = Scene::new("budget-spill");
    let _ = scene.ringmark("policy key keys", 0);
    scene.sign(
        "keys",
        "",
        "[service.shop]\nbudget = '400K'\nburst = '200K'\n",
    );
    // The policy is known from before: now there is no collector, and all of it waits on disk.
    let collector = scene.collector("--store store --policy fleet.policy");
    let options = "--policy-key keys/policy.pub --spill spill";
    let first = scene.streamer(options);
    scene.wait_to_hear("streamer", "holds");
    end(collector);
    end(first);
    let streamer = scene.streamer(options);
    let (program, _) = scene.program("warm");
    let _ = program.finish(SOON).expect_code(0);
    wait_until(SOON, "a spill", || {
        let mut files = fs::read_dir(scene.path("spill")).ok()?.flatten();
        let is_part = |file: fs::DirEntry| file.file_name().to_string_lossy().ends_with(".rmk");
        files.any(is_part).then_some(())
    });
    let collector = scene.collector("--store store");
    expect_one_bounded(&scene);
    end(streamer);
    end(collector);
}

/// A program whose event types a policy switches, with a collector that has the policy and a streamer that takes it.
struct Switched {
    scene: Scene,
    program: Running,
    collector: Running,
    streamer: Running,
}

/// What takes the streamer's key for its own.
const TAKES: &str = "--policy-key keys/policy.pub";
const INFO_ALONE: &str = "[service.knobs]\nevents = ['disable *', 'enable * level=info']\n";

impl Switched {
    fn new(label: &str) -> Self {
        let scene = Scene::new(label);
        for keys in ["keys", "others"] {
            let _ = scene.ringmark(&format!("policy key {keys}"), 0);
        }
        scene.sign("keys", "--serial 5", INFO_ALONE);
        let program = scene
            .fixture
            .start(KNOBS, "mode=discard,ring=1M", "1000000000 500");
        let collector = scene.collector("--store store --policy fleet.policy");
        scene.wait_to_hear("collector", "sends policy, serial 5, until 20");
        let streamer = scene.streamer(TAKES);
        Self {
            scene,
            program,
            collector,
            streamer,
        }
    }

    /// Whether an event type is on.
    fn is_on(&self, name: &str) -> Option<bool> {
        let arguments = format!("events -p {} --json", self.program.id());
        let told = self.scene.ringmark(&arguments, 0);
        let line = told
            .lines()
            .find(|line| line.contains(&format!("\"{name}\"")));
        line.map(|line| line.contains("\"on\":true"))
    }

    fn wait_for(&self, name: &str, on: bool) {
        wait_until(SOON, name, || (self.is_on(name) == Some(on)).then_some(()));
    }

    fn reload(&self) {
        self.collector.signal(Signal::HUP).unwrap();
    }

    fn end(self) {
        drop(self.program.kill().unwrap());
        end(self.streamer);
        end(self.collector);
    }
}

#[test]
fn a_policy_reaches_a_host_and_ends_by_itself() {
    let on = Switched::new("policy-events");
    on.wait_for("knobs.debug", false);
    on.wait_for("knobs.info", true);
    let pid = on.program.id();
    let told = on
        .scene
        .ringmark(&format!("events --enable knobs.* -p {pid}"), 0);
    assert!(
        told.contains(" of them not before policy 5 ends, 20"),
        "{told}"
    );
    let told = on
        .scene
        .ringmark(&format!("events --enable knobs.info -p {pid}"), 0);
    assert!(!told.contains("policy"), "{told}");
    on.scene.sign(
        "keys",
        "--serial 6",
        "[service.knobs]\nevents = ['disable knobs.info']\n",
    );
    on.reload();
    on.scene
        .wait_to_hear("collector", "sends policy, serial 6, until 20");
    on.wait_for("knobs.info", false);
    on.wait_for("knobs.debug", true);
    let told = on
        .scene
        .ringmark(&format!("list -v -p {}", on.program.id()), 0);
    assert!(told.contains("policy 6 until "), "{told}");
    on.scene.sign(
        "keys",
        "--serial 8 --valid 3s",
        "[default]\nevents = ['disable *']\n",
    );
    on.reload();
    on.wait_for("knobs.warn", false);
    on.wait_for("knobs.warn", true);
    on.wait_for("knobs.info", true);
    on.scene.wait_to_hear("streamer", "policy 8 has ended");
    on.end();
}

#[test]
fn an_older_policy_another_key_and_damage_change_nothing() {
    let mut on = Switched::new("policy-refused");
    let old = fs::read(on.scene.path("fleet.policy")).unwrap();
    on.scene.sign(
        "keys",
        "--serial 6",
        "[service.knobs]\nevents = ['disable knobs.info']\n",
    );
    on.reload();
    on.wait_for("knobs.info", false);
    fs::write(on.scene.path("fleet.policy"), &old).unwrap();
    on.reload();
    let is_older = "serial 5 is older than 6, which was taken before";
    on.scene.wait_to_hear("streamer", is_older);
    on.scene.sign(
        "others",
        "--serial 7",
        "[default]\nevents = ['disable *']\n",
    );
    on.reload();
    on.scene
        .wait_to_hear("streamer", "its signature is not that of --policy-key");
    assert_eq!(
        (on.is_on("knobs.info"), on.is_on("knobs.warn")),
        (Some(false), Some(true))
    );
    let told = on
        .scene
        .ringmark("policy show fleet.policy --policy-key keys/policy.pub", 3);
    assert!(told.contains("its signature"), "{told}");
    fs::write(on.scene.path("fleet.policy"), "ringmark-policy 1\n").unwrap();
    on.reload();
    on.scene.wait_to_hear("collector", "expected 'signature'");
    // A streamer that starts again knows the newest serial.
    on.streamer.signal(Signal::TERM).unwrap();
    fs::write(on.scene.path("fleet.policy"), &old).unwrap();
    on.reload();
    wait_until(SOON, "the end of the first", || {
        let said = fs::read_to_string(on.scene.path("streamer")).ok()?;
        said.contains(" done, ").then_some(())
    });
    let list = format!("list -v -p {} --interval 10ms", on.program.id());
    wait_until(SOON, "a policy without a streamer", || {
        let told = on.scene.ringmark(&list, 0);
        let is_said = told.contains(": 1 event type off, without a streamer");
        (is_said && told.contains("policy 6 until 20")).then_some(())
    });
    fs::remove_file(on.scene.path("streamer")).unwrap();
    on.streamer = on.scene.streamer(TAKES);
    on.scene.wait_to_hear("streamer", is_older);
    assert_eq!(on.is_on("knobs.info"), Some(false));
    on.end();
}

#[test]
fn what_takes_nothing_away_or_cannot_be_replaced_is_not_signed() {
    let scene = Scene::new("policy-unsigned");
    let _ = scene.ringmark("policy key keys", 0);
    fs::write(scene.path("empty.toml"), "# nothing yet\n[service]\n").unwrap();
    fs::write(scene.path("fleet.toml"), "[default]\nbudget = '1G'\n").unwrap();
    for (file, more, expected) in [
        ("empty", "", "found no section, expected [default]"),
        (
            "fleet",
            "--serial 18446744073709551615",
            "expected 1 to 100000000000000",
        ),
        ("fleet", "--serial 0", "expected 1 to "),
        ("fleet", "--valid 9999999d", "expected at most 366d"),
    ] {
        let sign = "--key keys/policy.key -o fleet.policy";
        let told = scene.ringmark(&format!("policy sign {file}.toml {sign} {more}"), 2);
        assert!(told.contains(expected), "{told}");
        assert!(!scene.path("fleet.policy").exists(), "{more}");
    }
    scene.sign(
        "keys",
        "--serial 100000000000000 --valid 366d",
        "[default]\n",
    );
}

#[test]
fn without_a_key_a_policy_is_ignored_and_that_is_said_once() {
    let scene = Scene::new("policy-ignored");
    let _ = scene.ringmark("policy key keys", 0);
    scene.sign("keys", "", "[default]\nbudget = 0\n");
    let collector = scene.collector("--store store --policy fleet.policy");
    let streamer = scene.streamer("");
    let (program, _) = scene.program("shop");
    let _ = program.finish(SOON).expect_code(0);
    wait_until(SOON, "all is sent", || {
        scene.fixture.ring_files().is_empty().then_some(())
    });
    assert_eq!(scene.verified("shop").1, EVENTS);
    end(streamer);
    end(collector);
    let said = fs::read_to_string(scene.path("streamer")).unwrap();
    let ignored = said
        .matches("which is ignored without --policy-key")
        .count();
    assert_eq!(ignored, 1, "{said}");
}
