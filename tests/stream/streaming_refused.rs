//! Promise: no peer streams to a collector without proof of its name, or under another name; a
//! refusal is reported with its reason on both sides.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use ringmark_collector::certs::{self, Validity};
use ringmark_reader::stream::{Address, Credentials};
use ringmark_tests::ca::{Ca, as_host, load, past, tls, tls_options};
use ringmark_tests::collecting::{Collecting, first_notice, options, segments};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::{ringmark, run};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};

/// What a streamer is told, and what the collector tells its people.
fn refusal(
    collector: Credentials,
    name: &str,
    streamer: Credentials,
    (fixture, label): (&Fixture, &str),
) -> (String, String) {
    let root = fixture.path(&format!("refused-{label}"));
    let mut collecting = Collecting::with(tls_options(collector, &root));
    let told = first_notice(tls(collecting.place()), as_host(name, streamer));
    // A collector whose certificate has ended says that, too, of itself.
    let is_warning = |notice: &String| notice.starts_with("the certificate ");
    let notice = std::iter::repeat_with(|| collecting.notice()).find(|n| !is_warning(n));
    let notice = notice.expect("a notice of the refusal");
    assert!(segments(&root).is_empty());
    println!("{label}:\n  streamer: {told}\n  collector: {notice}");
    (told, notice)
}

#[track_caller]
fn expect((told, noticed): (String, String), streamer: &str, collector: &str) {
    assert!(told.contains(streamer), "{told:?}, expected {streamer:?}");
    assert!(
        noticed.contains(collector),
        "{noticed:?}, expected {collector:?}"
    );
}

#[test]
fn strangers_are_told_why() {
    let fixture = Fixture::new("tls_refused");
    let (ours, theirs) = (
        Ca::new(fixture.path("ours")),
        Ca::new(fixture.path("theirs")),
    );
    let at =
        |ca: &Ca, place: &str, trust: &Ca| load(&ca.dir.join(place), &trust.dir.join("ca.pem"));
    expect(
        refusal(
            ours.collector(),
            "web-2",
            ours.host("web-1"),
            (&fixture, "host"),
        ),
        "refused: the certificate is for host web-1, the streamer says it is web-2",
        "the certificate is for host web-1, the streamer says it is web-2",
    );
    let host = at(&theirs, "hosts/web-1", &ours);
    expect(
        refusal(ours.collector(), "web-1", host, (&fixture, "foreign host")),
        "the collector says that our certificate is not from its CA",
        "the streamer's certificate is not from our CA",
    );
    let collector = at(&theirs, "collector", &ours);
    expect(
        refusal(
            collector,
            "web-1",
            ours.host("web-1"),
            (&fixture, "foreign collector"),
        ),
        "the collector's certificate is not from our CA",
        "the streamer says that our certificate is not from its CA",
    );
    let collector = at(&ours, "hosts/web-2", &ours);
    expect(
        refusal(
            collector,
            "web-1",
            ours.host("web-1"),
            (&fixture, "host as collector"),
        ),
        "the certificate that the collector shows is not one for a collector",
        "the streamer does not accept our certificate",
    );
    let host = at(&ours, "collector", &ours);
    expect(
        refusal(
            ours.collector(),
            "127.0.0.1",
            host,
            (&fixture, "collector as host"),
        ),
        "the collector does not accept our certificate",
        "the certificate that the streamer shows is not one for a streamer",
    );
}

#[test]
fn certificates_of_another_time_or_place() {
    let fixture = Fixture::new("tls_expired");
    let ca = Ca::new(fixture.path("ca"));
    let at = |place: &str| load(&ca.dir.join(place), &ca.dir.join("ca.pem"));
    let _ = certs::host(&ca.dir, "old", past()).unwrap();
    expect(
        refusal(
            ca.collector(),
            "old",
            ca.host("old"),
            (&fixture, "expired host"),
        ),
        "the collector says that our certificate has expired",
        "the streamer's certificate expired 0 days ago",
    );
    let names = |name: &str| [name.to_owned()];
    let remove = || fs::remove_dir_all(ca.dir.join("collector")).unwrap();
    remove();
    let _ = certs::collector(&ca.dir, &names("127.0.0.1"), past()).unwrap();
    expect(
        refusal(
            at("collector"),
            "web-1",
            ca.host("web-1"),
            (&fixture, "expired collector"),
        ),
        "the collector's certificate expired 0 days ago",
        "the streamer says that our certificate has expired",
    );
    remove();
    let _ = certs::collector(&ca.dir, &names("traces.example"), Validity::days(1)).unwrap();
    expect(
        refusal(
            at("collector"),
            "web-1",
            ca.host("web-1"),
            (&fixture, "another name"),
        ),
        "the collector's certificate is for traces.example, expected 127.0.0.1",
        "the streamer does not accept our certificate",
    );
}

#[test]
fn tls_meets_no_tls() {
    let fixture = Fixture::new("tls_plain");
    let ca = Ca::new(fixture.path("ca"));
    let mut collecting = Collecting::with(tls_options(ca.collector(), &fixture.path("a")));
    let told = first_notice(Address::Tcp(collecting.place()), |_| {});
    expect(
        (told, collecting.notice()),
        "refused: this port wants TLS, expected tls:// and not tcp://",
        "not TLS",
    );
    let mut stranger = TcpStream::connect(collecting.place()).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let heard = collecting.notice();
    assert!(
        heard.contains("the streamer does not speak TLS here"),
        "{heard}"
    );

    let plain = options(Address::Tcp("127.0.0.1:0".to_owned()), &fixture.path("b"));
    let mut collecting = Collecting::with(plain);
    let told = first_notice(tls(collecting.place()), as_host("web-1", ca.host("web-1")));
    expect(
        (told, collecting.notice()),
        "the collector does not speak TLS here",
        "TLS came, expected tcp:// and not tls:// for this port",
    );
}

/// Who believes the collector and shows no certificate.
#[test]
fn no_certificate() {
    let fixture = Fixture::new("tls_none");
    let ca = Ca::new(fixture.path("ca"));
    let mut collecting = Collecting::with(tls_options(ca.collector(), &fixture.path("store")));
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(ca.dir.join("ca.pem")).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let tcp = TcpStream::connect(collecting.place()).unwrap();
    let mut stream = rustls::StreamOwned::new(client, tcp);
    let error = stream.read(&mut [0]).unwrap_err().to_string();
    let heard = collecting.notice();
    println!("{error}\n{heard}");
    assert!(error.contains("CertificateRequired"), "{error}");
    assert!(
        heard.contains("the streamer shows no certificate"),
        "{heard}"
    );
}

#[test]
fn tokens() {
    let fixture = Fixture::new("token");
    let socket = fixture.path("socket");
    let mut options = options(Address::Unix(socket.clone()), &fixture.path("store"));
    options.token = Some("a word between us".to_owned());
    let mut collecting = Collecting::with(options);
    let told = |token: Option<&str>| {
        let token = token.map(str::to_owned);
        first_notice(Address::Unix(socket.clone()), |o| {
            o.introduction.token = token
        })
    };
    assert!(told(Some("a word between us")).ends_with(": connected"));
    for wrong in [
        "a word between u",
        "a word between us.",
        "b word between us",
    ] {
        let told = (told(Some(wrong)), collecting.notice());
        expect(
            told,
            "refused: the token is not ours",
            "the token is not ours",
        );
    }
    let told = (told(None), collecting.notice());
    expect(told, "refused: a token is wanted", "a token is wanted");
}

/// What a person does for a first deployment, and what is refused to him.
#[test]
fn certificates_by_hand() {
    let fixture = Fixture::new("certs");
    let at = |path: &str| fixture.path(path).display().to_string();
    let call = |arguments: &[&str], code: i32| {
        let mut command = ringmark();
        let finished = run(command.args(arguments), SOON)
            .unwrap()
            .expect_code(code);
        let text = finished.stdout_text() + &finished.stderr_text();
        println!("{text}");
        text
    };
    let ca = at("ca");
    assert!(call(&["certs", "ca", &ca], 0).contains("good until 20"));
    assert!(call(&["certs", "collector", &ca, "localhost", "127.0.0.1"], 0).contains("Next: "));
    let _ = call(&["certs", "host", &ca, "web-1", "web-2"], 0);
    for path in [
        "ca.key",
        "ca.pem",
        "collector/key.pem",
        "hosts/web-2/key.pem",
    ] {
        let about = fs::metadata(fixture.path("ca").join(path)).unwrap();
        assert_eq!(about.permissions().mode() & 0o7777, 0o600, "{path}");
    }
    let before = fs::read(at("ca/ca.key")).unwrap();
    for again in [&["certs", "ca", &ca][..], &["certs", "host", &ca, "web-1"]] {
        assert!(call(again, 2).contains("is there already, and nothing is overwritten"));
    }
    assert_eq!(fs::read(at("ca/ca.key")).unwrap(), before);
    for name in ["..", "a/b", "", "a b", "192.0.2.1", "-a"] {
        assert!(
            call(&["certs", "host", "--", &ca, name], 2).contains("expected the name"),
            "{name}"
        );
    }
    let late = call(&["certs", "host", &ca, "web-3", "--days", "4000"], 2);
    assert!(late.contains("expected fewer --days"), "{late}");
    assert!(!Path::new(&at("ca/hosts/web-3")).exists());
    let _ = call(&["certs", "ca", &at("other")], 0);
    let _ = fs::copy(at("other/ca.pem"), at("ca/ca.pem")).unwrap();
    assert!(call(&["certs", "host", &ca, "web-4"], 2).contains("not made by 'ringmark certs ca'"));
    // A name that no machine has makes no certificate of those before it.
    for bad in ["web-6.", "a-", "a..b", "192.0.2.1", "a/b"] {
        let told = call(&["certs", "host", &ca, "web-5", bad], 2);
        assert!(told.contains(bad), "{told}");
    }
    assert!(!Path::new(&at("ca/hosts/web-5")).exists());
    // Nor does a second CA leave its key next to the first one's certificate.
    fs::remove_file(at("ca/ca.key")).unwrap();
    assert!(call(&["certs", "ca", &ca], 2).contains("is there already"));
    assert!(!Path::new(&at("ca/ca.key")).exists());
}

/// A key that never leaves its machine.
#[test]
fn a_certificate_for_the_key_of_a_request() {
    let fixture = Fixture::new("request");
    let at = |path: &str| fixture.path(path).display().to_string();
    let call = |arguments: &[&str], code: i32| {
        let mut command = ringmark();
        let done = run(command.arg("certs").args(arguments), SOON).unwrap();
        let done = done.expect_code(code);
        done.stdout_text() + &done.stderr_text()
    };
    let (ca, there) = (at("ca"), at("there"));
    let _ = call(&["ca", &ca], 0);
    assert!(call(&["request", &there], 0).contains("request.pem"));
    assert!(call(&["request", &there], 2).contains("is there already"));
    let request = at("there/request.pem");
    let signed = ["host", &ca, "web-1", "--request", &request];
    assert!(call(&signed, 0).contains("for host web-1"));
    assert!(!Path::new(&at("ca/hosts/web-1/key.pem")).exists());
    let cert = at("ca/hosts/web-1/cert.pem");
    let load = |key: &str| {
        let (ca, key) = (at("ca/ca.pem"), at(key));
        Credentials::load(Path::new(&ca), Path::new(&cert), Path::new(&key))
    };
    assert_eq!(load("there/key.pem").unwrap().hosts(), ["web-1"]);
    assert!(
        load("ca/ca.key").is_err(),
        "it is the certificate of that key"
    );
    fs::write(at("bad.pem"), fs::read_to_string(&cert).unwrap()).unwrap();
    let bad = call(&["host", &ca, "web-2", "--request", &at("bad.pem")], 2);
    assert!(bad.contains("expected the request.pem of"), "{bad}");
    let two = call(&["host", &ca, "a", "b", "--request", &request], 2);
    assert!(two.contains("expected one host"), "{two}");
}

/// Options that do not fit, and files that others may read.
#[test]
fn the_command_line_refuses() {
    let fixture = Fixture::new("tls_options");
    let ca = Ca::new(fixture.path("ca"));
    let mut arguments = Vec::new();
    for file in ["ca", "cert", "key"] {
        arguments.push(format!("--{file}"));
        arguments.push(
            ca.dir
                .join(format!("hosts/web-1/{file}.pem"))
                .display()
                .to_string(),
        );
    }
    let token = fixture.path("token");
    fs::write(&token, "word\n").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o640)).unwrap();
    let token = ["--token-file".to_owned(), token.display().to_string()];
    let refused = |to: &str, more: &[String], expected: &str| {
        let mut command = fixture.command(ringmark().get_program());
        command.args(["stream", "--all", "--to", to]).args(more);
        let told = run(&mut command, SOON)
            .unwrap()
            .expect_code(2)
            .stderr_text();
        assert!(told.contains(expected), "{told}, expected {expected}");
    };
    let key = ca.dir.join("hosts/web-1/key.pem");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let expected = format!(
        "{}: mode 0644: others may read it, expected 0600",
        key.display()
    );
    refused("tls://127.0.0.1:1", &arguments, &expected);
    fs::copy(ca.dir.join("hosts/web-2/key.pem"), &key).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    refused("tls://127.0.0.1:1", &arguments, "not the key of");
    fs::write(&key, "nothing").unwrap();
    refused("tls://127.0.0.1:1", &arguments, "no private key in PEM");
    refused("tls://127.0.0.1:1", &[], "expected --ca, --cert and --key");
    refused("tls://127.0.0.1:1", &arguments[..4], "--key");
    refused("tcp://127.0.0.1:1", &arguments, "expected a tls:// address");
    refused(
        "tcp://127.0.0.1:1",
        &token,
        "mode 0640: others may read it, expected 0600",
    );
    refused(
        "tcp://192.0.2.1:1",
        &[],
        "others can read and send, expected tls://",
    );
    let both = [&arguments[..], &token].concat();
    refused(
        "tls://127.0.0.1:1",
        &both,
        "--token-file: over tls:// certificates prove who speaks",
    );
}
