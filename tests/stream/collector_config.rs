//! Promise: a collector takes its options from a file, and takes over a changed one and changed certificates while it
//! runs; a file with a mistake changes nothing, and is reported.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ringmark_collector::certs::{self, Validity};
use ringmark_format::Uuid;
use ringmark_reader::stream::{Credentials, PeerCertificate};
use ringmark_tests::ca::{Ca, load};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::scripted_streamer::{ScriptedStreamer, page};
use ringmark_tests::{ReservedPlace, Running, binary, run, wait_until};
use rustix::process::Signal;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::runtime::Runtime;
use tokio::time::timeout;

struct Scene {
    fixture: Fixture,
    config: PathBuf,
    to: ReservedPlace,
}

impl Scene {
    fn new(label: &str) -> Self {
        let fixture = Fixture::new(label);
        Self {
            config: fixture.path("collector.toml"),
            to: ReservedPlace::new(),
            fixture,
        }
    }

    /// Writes the file; `${KEYS}` stands for where the certificates are.
    fn write(&self, more: &str) {
        let text = format!(
            "listen = ['tls://{}']\nstore = '{}'\nkeep-age = '2w'\n\
             ca = '${{KEYS}}/ca.pem'\ncert = '${{KEYS}}/cert.pem'\nkey = '${{KEYS}}/key.pem'\n{more}\n",
            self.to,
            self.fixture.path("store").display()
        );
        fs::write(&self.config, text).unwrap();
    }

    fn start(&self, keys: &Path) -> Running {
        let mut command = self.fixture.command("sh");
        command.args(["-c", "f=$1; shift; exec \"$@\" 2>$f", "sh"]);
        command.arg(self.fixture.path("said")).arg(binary::path());
        command.args(["collect", "--config"]).arg(&self.config);
        let running = Running::start(command.env("KEYS", keys)).unwrap();
        self.wait_to_hear("listening at");
        running
    }

    fn wait_to_hear(&self, expected: &str) {
        wait_until(SOON, expected, || {
            let said = fs::read_to_string(self.fixture.path("said")).ok()?;
            said.contains(expected).then_some(())
        });
    }

    async fn connect(
        &self,
        credentials: &Credentials,
        host: &str,
    ) -> std::io::Result<ScriptedStreamer> {
        let from = Ipv4Addr::LOCALHOST;
        ScriptedStreamer::greeted_over_tls(self.to.address(), from, credentials, host).await
    }

    /// What '--check' prints about a file with these lines.
    fn checked(&self, keys: &Path, more: &str, code: i32) -> String {
        self.write(more);
        let mut command = self.fixture.command(binary::path());
        command.args(["collect", "--check", "--config"]);
        let done = run(command.arg(&self.config).env("KEYS", keys), SOON);
        done.unwrap().expect_code(code).stderr_text()
    }
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

async fn stream(peer: &mut ScriptedStreamer, pages: std::ops::Range<u64>) {
    for number in pages {
        peer.send(&page(Uuid([1; 16]), number)).await.expect("sent");
        timeout(SOON, peer.settle())
            .await
            .expect("in time")
            .expect("durable");
    }
}

#[test]
fn a_file_is_checked_and_what_is_wrong_is_named() {
    let scene = Scene::new("config-check");
    let ca = Ca::new(scene.fixture.path("ca"));
    let keys = ca.dir.join("collector");
    assert!(
        scene
            .checked(&keys, "", 0)
            .contains("the options are valid")
    );
    for (more, expected) in [
        (
            "keep_size = '1G'",
            "keep_size: expected a long option of 'ringmark collect'",
        ),
        ("keep-size = 'much'", "--keep-size"),
        (
            "token-file = '${RINGMARK_NO_SUCH}'",
            "RINGMARK_NO_SUCH is not set",
        ),
        ("keep-size = ", "line 7"),
    ] {
        let told = scene.checked(&keys, more, 2);
        assert!(
            told.contains(expected) && told.contains("collector.toml"),
            "{told}"
        );
    }
    let told = scene.checked(&keys, "flush = '1s'", 2);
    let expected = "--flush: found with --store, expected with --objects only";
    assert!(told.contains(expected), "{told}");
    assert!(!scene.fixture.path("store").exists(), "nothing was started");
}

/// Certificates that the other side would refuse, and why.
fn unfit_certificates(
    scene: &Scene,
    ca: &Ca,
    right: &Path,
    wrong: &Path,
) -> [(PathBuf, &'static str); 3] {
    let place = |name: &str, from: &Path| {
        let place = scene.fixture.path(name);
        fs::create_dir_all(&place).unwrap();
        for file in ["ca.pem", "cert.pem", "key.pem"] {
            let _ = fs::copy(from.join(file), place.join(file)).unwrap();
        }
        place
    };
    let use_of_other = place("use", wrong);
    let other_ca = place("other", right);
    let stranger = Ca::new(scene.fixture.path("stranger"));
    let _ = fs::copy(stranger.dir.join("ca.pem"), other_ca.join("ca.pem")).unwrap();
    let late = ringmark_tests::ca::past();
    let old = scene.fixture.path("old-ca");
    let year = Validity::days(365);
    certs::ca(&old, year).unwrap();
    let made = match right.ends_with("collector") {
        true => certs::collector(&old, &["127.0.0.1".to_owned()], late),
        false => certs::host(&old, "web-1", late),
    };
    let _ = made.unwrap();
    let ended = old.join(right.strip_prefix(&ca.dir).unwrap());
    [
        (use_of_other, "found one for another use"),
        (other_ca, "this CA did not sign it"),
        (ended, "it has ended"),
    ]
}

/// What '--check' finds, a start finds, too: neither leaves anything.
#[test]
fn a_check_finds_what_a_start_would_meet() {
    let scene = Scene::new("config-places");
    let ca = Ca::new(scene.fixture.path("ca"));
    let keys = ca.dir.join("collector");
    let tried = |keys: &Path, more: &[&str]| {
        scene.write("");
        let told = [&["--check"][..], &[]].map(|check| {
            let mut command = scene.fixture.command(binary::path());
            command.args(["collect", "--config"]).arg(&scene.config);
            let done = run(command.args(check).args(more).env("KEYS", keys), SOON);
            done.unwrap().expect_code(2).stderr_text()
        });
        told.join("and at the start: ")
    };
    let web = ca.dir.join("hosts/web-1");
    for (keys, expected) in unfit_certificates(&scene, &ca, &keys, &web) {
        let told = tried(&keys, &[]);
        assert_eq!(told.matches(expected).count(), 2, "{told}");
    }
    for (more, expected) in [
        (
            ["--store", "/nonexistent/deep/store"],
            "is a disk not mounted?",
        ),
        (["--store", "/proc"], "/proc"),
        (["--metrics", "127.0.0.1:99999"], "127.0.0.1:99999"),
        (["--metrics", "nosuch.invalid:1"], "nosuch.invalid:1"),
        (["--listen", "tls://203.0.113.9:8111"], "203.0.113.9"),
    ] {
        let told = tried(&keys, &more);
        assert!(told.matches(expected).count() >= 2, "{more:?}: {told}");
    }
}

/// A streamer takes its options from a file, too, and '--check' finds what is wrong with it.
#[test]
fn a_streamers_file_is_checked() {
    let scene = Scene::new("config-streamer");
    let ca = Ca::new(scene.fixture.path("ca"));
    let keys = ca.dir.join("hosts/web-1");
    let spill = scene.fixture.path("spill");
    let checked = |keys: &Path, more: &str, code: i32| {
        let text = format!(
            "to = 'tls://127.0.0.1:1'\nspill = '{}'\nca = '${{KEYS}}/ca.pem'\n\
             cert = '${{KEYS}}/cert.pem'\nkey = '${{KEYS}}/key.pem'\n{more}\n",
            spill.display()
        );
        fs::write(&scene.config, text).unwrap();
        let mut command = scene.fixture.command(binary::path());
        command.args(["stream", "--check", "--config"]);
        let done = run(command.arg(&scene.config).env("KEYS", keys), SOON);
        done.unwrap().expect_code(code).stderr_text()
    };
    let told = checked(&keys, "all = true", 0);
    assert!(
        told.contains("the options are valid") && !spill.exists(),
        "{told}"
    );
    for (more, expected) in [
        ("", "expected one of --all, --pid, --service"),
        ("all = true\nservice = 'shop'", "cannot be used with"),
        ("al = true", "did you mean all?"),
        (
            "all = true\nmetrics-file = '/nonexistent/x'",
            "/nonexistent",
        ),
        ("all = true\nzero-copy = true", "cannot be used with"),
    ] {
        let told = checked(&keys, more, 2);
        assert!(told.contains(expected), "{more}: {told}");
    }
    let collector = ca.dir.join("collector");
    for (keys, expected) in unfit_certificates(&scene, &ca, &keys, &collector) {
        let told = checked(&keys, "all = true", 2);
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn certificates_and_denied_hosts_change_under_load() {
    let scene = Scene::new("config-reload");
    let (old, new) = (
        Ca::new(scene.fixture.path("old")),
        Ca::new(scene.fixture.path("new")),
    );
    let keys = scene.fixture.path("keys");
    let _ = certs::host(&old.dir, "web-3", Validity::days(2)).unwrap();
    let put = |ca: &Ca| {
        let _ = fs::create_dir(&keys);
        for file in ["ca.pem", "cert.pem", "key.pem"] {
            fs::copy(ca.dir.join("collector").join(file), keys.join(file)).unwrap();
        }
    };
    put(&old);
    scene.write("");
    let collector = scene.start(&keys);
    let of = |ca: &Ca, host: &str| load(&ca.dir.join("hosts").join(host), &ca.dir.join("ca.pem"));
    runtime().block_on(async {
        let mut peer = scene.connect(&of(&old, "web-1"), "web-1").await.unwrap();
        let mut denied = scene.connect(&of(&old, "web-3"), "web-3").await.unwrap();
        peer.announce(Uuid([1; 16])).await.unwrap();
        stream(&mut peer, 0..20).await;
        // A mistake changes nothing.
        put(&new);
        scene.write("keep-size = 'much'");
        collector.signal(Signal::HUP).unwrap();
        scene.wait_to_hear("nothing was changed");
        stream(&mut peer, 20..40).await;
        assert!(scene.connect(&of(&old, "web-1"), "web-1").await.is_ok());
        assert!(scene.connect(&of(&new, "web-1"), "web-1").await.is_err());
        // Nor does an option that needs a restart.
        scene.write("segment-size = '7M'");
        collector.signal(Signal::HUP).unwrap();
        scene.wait_to_hear("segment-size: found another value than at the start");
        assert!(scene.connect(&of(&new, "web-1"), "web-1").await.is_err());
        // Without a mistake it is taken over; who is connected goes on.
        scene.write("deny = ['WEB-3']");
        collector.signal(Signal::HUP).unwrap();
        scene.wait_to_hear("options and certificates were read again");
        stream(&mut peer, 40..60).await;
        assert!(scene.connect(&of(&new, "web-1"), "web-1").await.is_ok());
        assert!(scene.connect(&of(&old, "web-1"), "web-1").await.is_err());
        let told = timeout(Duration::from_secs(60), denied.end())
            .await
            .unwrap();
        assert!(told.contains("host web-3 is denied"), "{told}");
        assert_eq!(peer.durable, peer.sent, "nothing was lost");
    });
    collector.signal(Signal::TERM).unwrap();
    let _ = collector.finish(SOON).expect_code(0);
}

/// The serial number of a certificate.
fn serial(cert: &Path) -> String {
    let der = CertificateDer::from_pem_file(cert).unwrap();
    PeerCertificate::of(&[der]).serial
}

#[test]
fn a_stolen_certificate_is_refused_and_its_host_is_not() {
    let scene = Scene::new("config-serial");
    let ca = Ca::new(scene.fixture.path("ca"));
    let of = |name: &str| load(&ca.dir.join("hosts").join(name), &ca.dir.join("ca.pem"));
    let (its, stolen) = (ca.dir.join("hosts/web-1"), ca.dir.join("hosts/stolen"));
    fs::rename(&its, &stolen).unwrap();
    let _ = certs::host(&ca.dir, "web-1", Validity::days(2)).unwrap();
    scene.write("");
    let collector = scene.start(&ca.dir.join("collector"));
    runtime().block_on(async {
        let mut thief = scene.connect(&of("stolen"), "web-1").await.unwrap();
        let mut peer = scene.connect(&of("web-1"), "web-1").await.unwrap();
        peer.announce(Uuid([1; 16])).await.unwrap();
        stream(&mut peer, 0..5).await;
        let number = serial(&stolen.join("cert.pem"));
        scene.write(&format!("deny = ['serial:{}']", number.to_uppercase()));
        collector.signal(Signal::HUP).unwrap();
        scene.wait_to_hear("options and certificates were read again");
        let told = timeout(SOON, thief.end()).await.unwrap();
        assert!(told.contains("the certificate is denied"), "{told}");
        assert!(scene.connect(&of("stolen"), "web-1").await.is_err());
        stream(&mut peer, 5..10).await;
        assert_eq!(peer.durable, peer.sent);
    });
    collector.signal(Signal::TERM).unwrap();
    let _ = collector.finish(SOON).expect_code(0);
}

#[test]
fn a_connection_ends_with_its_certificate() {
    let scene = Scene::new("config-ends");
    let ca = Ca::new(scene.fixture.path("ca"));
    scene.write("");
    let collector = scene.start(&ca.dir.join("collector"));
    let told = runtime().block_on(async {
        // On a loaded machine the first ones may end before they are used.
        for seconds in [3, 12, 48] {
            let (host, now) = (format!("short-{seconds}"), SystemTime::now());
            let validity = Validity {
                from: now - Duration::from_secs(3600),
                until: now + Duration::from_secs(seconds),
            };
            let at = certs::host(&ca.dir, &host, validity).unwrap();
            let credentials = load(&at, &ca.dir.join("ca.pem"));
            if let Ok(mut peer) = scene.connect(&credentials, &host).await {
                return timeout(SOON, peer.end()).await.unwrap();
            }
        }
        panic!("no connection in time");
    });
    assert!(told.contains("the certificate has ended"), "{told}");
    collector.signal(Signal::TERM).unwrap();
    let _ = collector.finish(SOON).expect_code(0);
}

/// A service that waits without a word is taken for one that hangs.
#[test]
fn a_collector_that_waits_for_another_ones_store_says_so() {
    let fixture = Fixture::new("waits");
    let start = |name: &str| {
        let mut command = fixture.command("sh");
        command.args(["-c", "f=$1; shift; exec \"$@\" 2>$f", "sh"]);
        command.arg(fixture.path(name)).arg(binary::path());
        let socket = format!("unix://{}", fixture.path(&format!("{name}.sock")).display());
        command.args(["collect", "--listen", &socket, "--store"]);
        Running::start(command.arg(fixture.path("store"))).unwrap()
    };
    let hear = |name: &str, expected: &str| {
        wait_until(SOON, expected, || {
            let said = fs::read_to_string(fixture.path(name)).ok()?;
            said.contains(expected).then_some(())
        });
    };
    let first = start("first");
    hear("first", "listening at");
    let second = start("second");
    hear("second", "another collector has the store; waiting");
    first.signal(Signal::TERM).unwrap();
    let _ = first.finish(SOON).expect_code(0);
    hear("second", "listening at");
    second.signal(Signal::TERM).unwrap();
    let _ = second.finish(SOON).expect_code(0);
}
