//! Promise: what `examples/deploy` starts, starts: the units are ones that systemd understands, and their command lines
//! stream from a host to a collector, as does the container's.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use ringmark_collector::certs::{self, Validity};
use ringmark_reader::stream::Introduction;
use ringmark_tests::collecting::segments;
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::decode;
use ringmark_tests::tools::log_skip;
use ringmark_tests::{Running, binary, run, wait_until, workspace_root};
use rustix::process::Signal;

use crate::alerts::served;

const EMIT: &str = ringmark_tests::program!("emit");

fn example(name: &str) -> String {
    fs::read_to_string(workspace_root().join("examples/deploy").join(name)).unwrap()
}

/// The words behind `ExecStart=` or `CMD`, whose lines go on behind a backslash.
fn words(text: &str, begin: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let line = text.lines().find_map(|line| line.strip_prefix(begin));
    let line = line.unwrap_or_else(|| panic!("no {begin}"));
    let words = line.split_whitespace();
    let plain = words.map(|word| word.trim_matches(['[', ']', ',', '"']).to_owned());
    plain.collect()
}

/// Its own directories and ports in place of those of a real host.
struct Host {
    fixture: Fixture,
    keys: PathBuf,
    store: PathBuf,
}

impl Host {
    fn new(label: &str) -> Self {
        let fixture = Fixture::new(label);
        let keys = fixture.path("keys");
        certs::ca(&keys, Validity::days(2)).unwrap();
        let name = ["127.0.0.1".to_owned()];
        let _ = certs::collector(&keys, &name, Validity::days(1)).unwrap();
        let host = Introduction::of_this_host().host;
        let _ = certs::host(&keys, &host, Validity::days(1)).unwrap();
        fs::rename(keys.join("hosts").join(host), keys.join("host")).unwrap();
        Self {
            keys,
            store: fixture.path("store"),
            fixture,
        }
    }

    /// Starts `ringmark` with these arguments; what it says goes to a file.
    fn start(&self, arguments: &[String], keys: &str, to: &str, said: &str) -> Running {
        let keys = self.keys.join(keys).display().to_string();
        let (store, spill) = (self.store.display().to_string(), self.fixture.path("spill"));
        let config = self.fixture.path("streamer.toml").display().to_string();
        let text = example("streamer.toml")
            .replace("/etc/ringmark", &keys)
            .replace("/var/lib/ringmark-spill", &spill.display().to_string())
            .replace("tls://traces.example:7117", to);
        fs::write(&config, text).unwrap();
        let here = |word: &String| {
            word.replace("/etc/ringmark/streamer.toml", &config)
                .replace("/etc/ringmark", &keys)
                .replace("/var/lib/ringmark-spill", &spill.display().to_string())
                .replace("/var/lib/ringmark", &store)
                .replace("0.0.0.0:7117", "127.0.0.1:0")
                .replace("127.0.0.1:9117", "127.0.0.1:0")
                .replace("0.0.0.0:9117", "127.0.0.1:0")
                .replace("tls://traces.example:7117", to)
        };
        let mut command = self.fixture.command("sh");
        command.args(["-c", "f=$1; shift; exec \"$@\" 2>$f", "sh"]);
        command.arg(self.fixture.path(said)).arg(binary::path());
        Running::start(command.args(arguments.iter().map(here))).unwrap()
    }

    fn collector(&self, arguments: &[String]) -> (Running, String) {
        let running = self.start(arguments, "collector", "", "collector");
        let to = wait_until(SOON, "the collector listens", || {
            let said = fs::read_to_string(self.fixture.path("collector")).ok()?;
            let (_, rest) = said.split_once("listening at ")?;
            rest.split_once('\n').map(|(to, _)| to.to_owned())
        });
        (running, to)
    }
}

/// As systemd and a container's engine end it.
fn end(running: Running) {
    running.signal(Signal::TERM).unwrap();
    let _ = running.finish(SOON).expect_code(0);
}

fn expect_streamed(label: &str, collect: &[String]) {
    let stream = words(&example("ringmark-streamer.service"), "ExecStart=");
    assert_eq!(stream[0], "/usr/local/bin/ringmark");
    let host = Host::new(label);
    let (collector, to) = host.collector(collect);
    let ringmark = "mode=discard,ring=64K,page=4K,session=4M";
    let program = host.fixture.start(EMIT, ringmark, "1 1000 hold=60000");
    let streamer = host.start(&stream[1..], "host", &to, "streamer");
    let there = || Delivery::of(&decode(&segments(&host.store))).delivered();
    wait_until(SOON, "sealed pages are stored", || {
        let is_there = segments(&host.store).iter().any(|path| path.exists());
        (is_there && there() > 0).then_some(())
    });
    // What is there is sent first, then its streamer is asked to go.
    end(streamer);
    end(collector);
    assert_eq!(there(), 1000);
    drop(program);
}

#[test]
fn the_units_stream() {
    let collect = words(&example("ringmark-collector.service"), "ExecStart=");
    assert_eq!(collect[0], "/usr/local/bin/ringmark");
    expect_streamed("units", &collect[1..]);
}

#[test]
fn the_container_collects() {
    let file = example("Containerfile");
    assert_eq!(words(&file, "ENTRYPOINT "), ["ringmark"]);
    expect_streamed("container", &words(&file, "CMD "));
}

/// Names of figures in a text.
fn figures_in(text: &str) -> Vec<&str> {
    let ends = |c: char| !(c.is_ascii_lowercase() || c == '_');
    let starts = ["ringmark_collector_", "ringmark_streamer_"];
    let found = starts
        .into_iter()
        .flat_map(|start| text.match_indices(start));
    let rests = found.map(|(at, _)| &text[at..]);
    let names = rests.map(|rest| &rest[..rest.find(ends).unwrap_or(rest.len())]);
    names.collect()
}

#[test]
fn dashboard_and_alerts_show_figures_that_are_served() {
    let served = served();
    let helped = served
        .lines()
        .filter_map(|line| line.strip_prefix("# HELP "));
    let served: Vec<&str> = helped.filter_map(|line| line.split(' ').next()).collect();
    let is_served = |name: &str| {
        served.contains(&name.strip_suffix("_bucket").unwrap_or(name)) || served.contains(&name)
    };
    for (name, least) in [
        ("grafana-dashboard.json", 25),
        ("prometheus-alerts.yaml", 7),
    ] {
        let text = example(name);
        let shown = figures_in(&text);
        assert!(shown.len() >= least, "{name}: {shown:?}");
        for figure in shown {
            assert!(is_served(figure), "{name}: {figure} is not served");
        }
    }
    let board = serde_json::from_str(&example("grafana-dashboard.json"));
    let board: serde_json::Value = board.unwrap();
    let panels = board["panels"].as_array().unwrap();
    assert!(
        panels
            .iter()
            .all(|panel| panel["targets"][0]["expr"].is_string())
    );
}

#[test]
fn the_units_are_understood() {
    let fixture = Fixture::new("verify");
    let mut command = Command::new("systemd-analyze");
    command.args(["verify", "--man=no"]);
    for name in [
        "ringmark-collector.service",
        "ringmark-crashes.service",
        "ringmark-streamer.service",
    ] {
        let program = binary::path().display().to_string();
        let unit = example(name).replace("/usr/local/bin/ringmark", &program);
        fs::write(fixture.path(name), unit).unwrap();
        command.arg(fixture.path(name));
    }
    match run(&mut command, SOON) {
        Ok(verified) => {
            let verified = verified.expect_code(0);
            // A key that it does not know is told, and no error. Other units are not ours.
            let told = verified.stderr_text() + &verified.stdout_text();
            assert!(!told.contains("ringmark"), "{told}");
        }
        Err(error) => log_skip(&format!("the units: systemd-analyze: {error}")),
    }
}
