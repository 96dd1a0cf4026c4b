//! Promise: an operator of a streamer chooses what it sends, sees how it does, and renews its certificate while it runs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use ringmark_collector::Figures;
use ringmark_collector::certs::{self, Validity};
use ringmark_reader::stream::StreamFigures;
use ringmark_tests::ca::Ca;
use ringmark_tests::collecting::{segments, served_page, wait_for_listener};
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Counters, Fixture, SOON};
use ringmark_tests::recording::decode;
use ringmark_tests::{ReservedPlace, Running, binary, wait_until};
use rustix::process::Signal;

const EMIT: &str = ringmark_tests::program!("emit");
const RINGMARK: &str = "mode=discard,ring=1M,page=16K,session=8M";
const EVENTS: u64 = 1500;

fn end(running: Running) -> String {
    running.signal(Signal::TERM).unwrap();
    running.finish(SOON).expect_code(0).stderr_text()
}

/// Events in the store by now; 0 while it cannot be read.
fn stored(store: &Path) -> u64 {
    let files = segments(store);
    match files.is_empty() {
        true => 0,
        false => Delivery::of(&decode(&files)).delivered(),
    }
}

#[test]
fn only_the_chosen_services_are_sent() {
    let fixture = Fixture::new("services");
    let (socket, store) = (fixture.path("socket"), fixture.path("store"));
    let listen = format!("unix://{}", socket.display());
    let mut command = fixture.command(binary::path());
    command.args(["collect", "--listen", &listen, "--store"]);
    let collector = Running::start(command.arg(&store)).unwrap();
    wait_for_listener(&socket);
    for service in ["shop", "other", "bank"] {
        let mut command = fixture.program(EMIT, RINGMARK);
        command.env("OTEL_SERVICE_NAME", service).args(["1", "100"]);
        let _ = Running::start(&mut command)
            .unwrap()
            .finish(SOON)
            .expect_code(0);
    }
    let mut command = fixture.command(binary::path());
    command.args([
        "stream",
        "--service",
        "shop",
        "--service",
        "bank",
        "--to",
        &listen,
    ]);
    let streamer = Running::start(&mut command).unwrap();
    wait_until(SOON, "two services", || {
        (fixture.ring_files().len() == 1).then_some(())
    });
    let _ = end(streamer);
    let files = segments(&store);
    let has = |service: &str| {
        let of = format!("/{service}/");
        files
            .iter()
            .any(|file| file.to_string_lossy().contains(&of))
    };
    assert!(has("shop") && has("bank") && !has("other"), "{files:?}");
    let _ = end(collector);
}

/// Files of a collector and of a host, which are renewed.
struct Keys {
    fixture: Fixture,
}

impl Keys {
    /// Has both sides use the certificates of this CA.
    fn put(&self, ca: &Ca) {
        for (from, to) in [("collector", "collector"), ("hosts/web-1", "host")] {
            let to = self.fixture.path(to);
            let _ = fs::create_dir(&to);
            for file in ["ca.pem", "cert.pem", "key.pem"] {
                let new = to.join("new");
                let _ = fs::copy(ca.dir.join(from).join(file), &new).unwrap();
                fs::rename(new, to.join(file)).unwrap();
            }
        }
    }

    /// A command with the files of a side.
    fn command(&self, side: &str, arguments: &[&str]) -> Command {
        let mut command = self.fixture.command(binary::path());
        command.args(arguments);
        for file in ["ca", "cert", "key"] {
            command.arg(format!("--{file}"));
            command.arg(self.fixture.path(side).join(format!("{file}.pem")));
        }
        command
    }

    fn collector(&self, place: &str, more: &[&str]) -> Running {
        let mut command = self.command("collector", &["collect", "--listen", place]);
        command.arg("--store").arg(self.fixture.path("store"));
        let running = Running::start(command.args(more)).unwrap();
        wait_until(SOON, "a listener", || {
            let place = place.strip_prefix("tls://")?;
            std::net::TcpStream::connect(place).ok().map(drop)
        });
        running
    }

    /// A streamer of all sessions that writes its figures to a file.
    fn streamer(&self, place: &str) -> Running {
        let arguments = ["stream", "--all", "--to", place, "--open-every", "200ms"];
        let mut command = self.command("host", &arguments);
        let file = self.fixture.path("streamer.prom");
        Running::start(command.arg("--metrics-file").arg(file)).unwrap()
    }

    /// The file of the streamer; empty: it has not written any yet.
    fn figures(&self) -> String {
        fs::read_to_string(self.fixture.path("streamer.prom")).unwrap_or_default()
    }

    /// A figure in the file of the streamer.
    fn figure(&self, name: &str) -> Option<u64> {
        let text = self.figures();
        let mut lines = text.lines();
        let start = format!("ringmark_streamer_{name} ");
        lines.find_map(|line| line.strip_prefix(&start)?.parse().ok())
    }
}

/// A CA whose host has a certificate that ends soon.
fn ending(dir: std::path::PathBuf) -> Ca {
    let ca = Ca::new(dir);
    fs::remove_dir_all(ca.dir.join("hosts/web-1")).unwrap();
    let now = SystemTime::now();
    let hour = Duration::from_secs(3600);
    let soon = Validity {
        from: now - 20 * hour,
        until: now + hour / 2,
    };
    let _ = certs::host(&ca.dir, "web-1", soon).unwrap();
    ca
}

#[test]
fn a_certificate_is_renewed_while_a_program_is_streamed() {
    let keys = Keys {
        fixture: Fixture::new("renewed"),
    };
    let fixture = &keys.fixture;
    let (old, new) = (ending(fixture.path("old")), Ca::new(fixture.path("new")));
    let reserved = ReservedPlace::new();
    let place = format!("tls://{reserved}");
    keys.put(&old);
    let first = keys.collector(&place, &[]);
    let counters = Counters::new(fixture.path("counters"));
    let arguments = format!("1 {EVENTS} burst=10 pause=20000 {}", counters.argument());
    let program = fixture.start(EMIT, RINGMARK, &arguments);
    let streamer = keys.streamer(&place);
    wait_until(SOON, "some events", || {
        (stored(&fixture.path("store")) > 0).then_some(())
    });
    keys.put(&new);
    let _ = end(first);
    let second = keys.collector(&place, &[]);
    let _ = program.finish(SOON).expect_code(0);
    wait_until(SOON, "all events", || {
        fixture.ring_files().is_empty().then_some(())
    });
    let told = end(streamer);
    let _ = end(second);
    assert_eq!(counters.read(1), [EVENTS]);
    assert_eq!(stored(&fixture.path("store")), EVENTS, "none was lost");
    assert!(told.contains("the certificate ends in"), "{told}");
    let year = 300 * 24 * 3600;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let left =
        keys.figure("certificate_expiry_timestamp_seconds").unwrap() - now.unwrap().as_secs();
    assert!(
        (20 * 24 * 3600..year).contains(&left),
        "the new one: {left} s"
    );
    assert_eq!(keys.figure("connections_total"), Some(2));
    assert_eq!(keys.figure("lost_events_total"), Some(0));
}

/// Names and meanings of the figures in Prometheus' text.
fn told(text: &str) -> BTreeSet<(String, String)> {
    let lines = text.lines().filter_map(|l| l.strip_prefix("# HELP "));
    let pairs = lines.filter_map(|line| line.split_once(' '));
    pairs
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect()
}

/// Names and meanings of the figures from which the guide's page is made.
fn described() -> BTreeSet<(String, String)> {
    let streamer = StreamFigures {
        certificate_until: Some(0),
        certificate_renewal: Some(0),
        ..StreamFigures::default()
    };
    let collector = Figures::default().text();
    &told(&collector) | &told(&streamer.text())
}

#[test]
fn each_figure_that_is_served_is_described_and_the_other_way_round() {
    let keys = Keys {
        fixture: Fixture::new("figures"),
    };
    keys.put(&Ca::new(keys.fixture.path("ca")));
    let (reserved, metrics) = (ReservedPlace::new(), ReservedPlace::new());
    let place = format!("tls://{reserved}");
    let collector = keys.collector(&place, &["--metrics", &metrics.to_string()]);
    let streamer = keys.streamer(&place);
    wait_until(SOON, "figures of the streamer", || {
        (!keys.figures().is_empty()).then_some(())
    });
    let mut served = told(&served_page(metrics.address()));
    served.extend(told(&keys.figures()));
    let described = described();
    assert!(served.len() > 40, "{served:?}");
    assert_eq!(served, described);
    let _ = end(streamer);
    let _ = end(collector);
}
