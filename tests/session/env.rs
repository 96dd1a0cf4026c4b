//! Promise: `RINGMARK` says whether and how a program is traced; what it cannot say means off, with
//! the reason in the session directory, and nothing printed unless asked.

use std::collections::BTreeMap;
use std::fs;

use ringmark_format::attribute::tag;
use ringmark_format::session::{Clock, Mode, SessionHeader};
use ringmark_reader::{Access, Session};
use ringmark_tests::Finished;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::recording::read;
use ringmark_tests::{Running, run, wait_until};

const EMIT: &str = ringmark_tests::program!("emit");
const FORKS: &str = ringmark_tests::program!("forks");
const KNOBS: &str = ringmark_tests::program!("knobs");

fn knobs(fixture: &Fixture, variables: &[(&str, &str)]) -> Finished {
    let mut command = fixture.command(KNOBS);
    command.args(["10", "0"]).envs(variables.iter().copied());
    run(&mut command, SOON).unwrap().expect_code(0)
}

/// What the program left beside its ring files: the reason why it is not traced.
fn note(fixture: &Fixture) -> Option<String> {
    let entries = fs::read_dir(fixture.sessions()).ok()?;
    let mut paths = entries.flatten().map(|e| e.path());
    let path = paths.find(|p| p.extension().is_some_and(|e| e == "off"))?;
    fs::read_to_string(path).ok()
}

/// How many events of each name are there; together with a session that stays.
fn counts(fixture: &Fixture) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for item in read(&fixture.ring_files()).events() {
        if let ringmark_decoder::Output::Event(event) = item {
            let name = String::from_utf8_lossy(event.name()).into_owned();
            *found.entry(name).or_default() += 1;
        }
    }
    found
}

fn names(fixture: &Fixture) -> Vec<String> {
    counts(fixture).into_keys().collect()
}

#[test]
fn a_relative_directory_is_that_of_the_start() {
    let fixture = Fixture::new("relative");
    let elsewhere = fixture.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    for keep in ["crash", "always"] {
        let mut command = fixture.program(FORKS, &format!("mode=overwrite,keep={keep}"));
        command.arg("moved").current_dir(fixture.path(""));
        command.env("RINGMARK_DIR", "relative");
        let _ = run(&mut command, SOON).unwrap().expect_code(0);
        let kept = fs::read_dir(fixture.path("relative")).unwrap().flatten();
        let rings = kept.filter(|entry| entry.path().extension().is_some_and(|e| e == "ring"));
        let wanted = if keep == "always" { 2 } else { 0 };
        assert_eq!(rings.count(), wanted, "{keep}");
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "{keep}");
    }
}

#[test]
fn what_is_no_text_is_refused_with_the_reason() {
    use std::os::unix::ffi::OsStrExt;
    for (name, value) in [
        ("RINGMARK", &b"mode=\xff"[..]),
        ("RINGMARK_FILTER", b"off\xff"),
    ] {
        let fixture = Fixture::new("no-text");
        let mut command = fixture.program(KNOBS, "1");
        command.args(["10", "0"]);
        command.env(name, std::ffi::OsStr::from_bytes(value));
        let _ = run(&mut command, SOON).unwrap().expect_code(0);
        let note = note(&fixture).unwrap_or_default();
        assert!(note.contains('\u{fffd}'), "{name}: {note:?}");
        assert_eq!(fixture.ring_files().len(), 0, "{name}");
    }
}

#[test]
fn off_unless_asked() {
    for variables in [&[][..], &[("RINGMARK", "0")], &[("RINGMARK", "")]] {
        let fixture = Fixture::new("off");
        let done = knobs(&fixture, variables);
        assert_eq!(
            (done.stdout_text(), done.stderr_text()),
            (String::new(), String::new())
        );
        assert!(!fixture.sessions().exists(), "{variables:?}");
    }
}

#[test]
fn a_bad_value_means_off_and_says_why() {
    for (value, expected) in [
        ("yes", "1, 0, or key=value"),
        (
            "mode=lossy",
            "mode: found \"lossy\", expected discard or overwrite",
        ),
        ("ring=12", "ring: found \"12\""),
        ("ring=0", "ring: found \"0\""),
        (
            "ring=8X",
            "ring: found \"8X\", expected bytes, with K, M, G or T",
        ),
        ("ring=99999999999999G", "ring: found"),
        (
            "ring=1M,session=64K",
            "session: found \"65536\", expected at least one ring",
        ),
        ("page=3000", "page: found \"3000\", expected a power of two"),
        ("page=2M", "page: found"),
        ("clock=sun", "clock: found \"sun\""),
        ("keep=maybe", "keep: found \"maybe\""),
        ("control=2", "control: found \"2\", expected on or off"),
        ("warm=-1", "warm: found \"-1\", expected a number"),
        ("colour=red", "found \"colour\""),
        ("mode", "found \"mode\""),
    ] {
        let fixture = Fixture::new("bad");
        let done = knobs(&fixture, &[("RINGMARK", value)]);
        assert_eq!(
            (done.stdout_text(), done.stderr_text()),
            (String::new(), String::new())
        );
        assert_eq!(fixture.ring_files().len(), 0, "{value}");
        let said = note(&fixture).unwrap_or_default();
        assert!(said.contains(expected), "{value}: {said}");
        let done = knobs(&fixture, &[("RINGMARK", value), ("RINGMARK_VERBOSE", "1")]);
        let said = done.stderr_text();
        assert!(
            said.starts_with("ringmark: tracing is off: "),
            "{value}: {said}"
        );
        assert!(
            said.contains(expected) && said.lines().count() == 1,
            "{value}: {said}"
        );
    }
}

#[test]
fn each_option_reaches_the_session() {
    let header = |ringmark: &str| -> SessionHeader {
        let fixture = Fixture::new("options");
        let program = fixture.start(EMIT, ringmark, "0 10 hold=600000");
        let header = *Session::open(&fixture.ring_file(), Access::Observe)
            .unwrap()
            .header();
        drop(program);
        header
    };
    let default = header("1");
    assert_eq!(
        (default.mode, default.page_bytes),
        (Mode::Overwrite as u32, 64 << 10)
    );
    assert_eq!(default.ring_bytes, 256 << 10);
    assert_ne!(default.mailbox_offset, 0);
    assert_eq!(header("mode=discard").mode, Mode::Discard as u32);
    assert_eq!(header("page=8K").page_bytes, 8 << 10);
    assert_eq!(header("ring=1M").ring_bytes, 1 << 20);
    let (small, large) = (
        header("session=1M").file_bytes,
        header("session=32M").file_bytes,
    );
    assert!(small < 2 << 20 && large >= 32 << 20, "{small} {large}");
    // A session that is not said has room for four rings of the wanted size.
    assert!(header("ring=32M,warm=1").file_bytes >= 256 << 20);
    assert_eq!(header("control=off").mailbox_offset, 0);
    assert_eq!(header(" mode=discard , control=off ").mailbox_offset, 0);
    for clock in [Clock::Monotonic, Clock::Coarse, Clock::None] {
        assert_eq!(
            header(&format!("clock={}", clock.name())).clock,
            clock as u32
        );
    }
    assert_eq!(header("keep=never").keep, 2);
}

#[test]
fn rings_are_as_large_as_said_in_half_of_a_session() {
    for ringmark in ["ring=32M,warm=1", "ring=32M,session=64M,warm=1"] {
        let fixture = Fixture::new("large");
        let program = fixture.start(EMIT, ringmark, "0 10 hold=600000");
        let session = Session::open(&fixture.ring_file(), Access::Observe).unwrap();
        let ring = wait_until(SOON, "its ring", || {
            let bytes = session.ring().slot(0)?.geometry().ring_bytes();
            (bytes > 0).then_some(bytes)
        });
        assert_eq!(ring, 32 << 20, "{ringmark}");
        drop(program);
    }
}

#[test]
fn the_filter_speaks_of_levels_and_targets() {
    let all = [
        "knobs.debug",
        "knobs.error",
        "knobs.info",
        "knobs.trace",
        "knobs.warn",
    ];
    for (filter, expected) in [
        ("", &all[..]),
        ("trace", &all),
        ("warn", &["knobs.error", "knobs.warn"]),
        ("off", &[]),
        ("knobs::db=warn", &["knobs.error", "knobs.warn"]),
        ("error,knobs::net=info", &["knobs.error", "knobs.info"]),
        ("info,knobs::db=off", &["knobs.info"]),
    ] {
        let fixture = Fixture::new("filter");
        let ringmark = ("RINGMARK", "mode=overwrite,keep=always");
        // The variable of other libraries changes nothing.
        let variables = [ringmark, ("RINGMARK_FILTER", filter), ("RUST_LOG", "off")];
        let _ = knobs(&fixture, &variables);
        assert_eq!(names(&fixture), expected, "{filter}");
        assert!(counts(&fixture).values().all(|n| *n == 10));
    }
    let fixture = Fixture::new("badfilter");
    let _ = knobs(
        &fixture,
        &[("RINGMARK", "1"), ("RINGMARK_FILTER", "knobs=loud")],
    );
    let said = note(&fixture).unwrap_or_default();
    assert!(
        said.contains("filter: found \"knobs=loud\", expected LEVEL, TARGET=LEVEL"),
        "{said}"
    );
}

#[test]
fn tags_and_the_service_are_attributes() {
    let fixture = Fixture::new("tags");
    let mut command = fixture.program(EMIT, "mode=overwrite");
    command.args(["0", "10", "hold=600000"]).envs([
        ("RINGMARK_TAGS", "env=prod, zone=b ,,team=core"),
        ("OTEL_SERVICE_NAME", "shop"),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.name=other,service.version=1.2.3,x=y",
        ),
    ]);
    let program = Running::start(&mut command).unwrap();
    let session = Session::open(&fixture.ring_file(), Access::Observe).unwrap();
    for tag in ["env=prod", "zone=b", "team=core"] {
        assert!(session.has_tag(tag), "{tag}");
    }
    assert!(!session.has_tag(""));
    let attribute = |tag| session.attribute(tag).unwrap_or_default();
    assert_eq!(session.name(), "shop");
    assert_eq!(attribute(tag::SERVICE_VERSION), "1.2.3");
    assert_eq!(attribute(tag::PROCESS_NAME), "emit");
    assert_eq!(attribute(tag::EXECUTABLE), EMIT);
    assert_eq!(
        attribute(tag::COMMAND_LINE),
        format!("{EMIT}\0{}\0{}\0{}\0", 0, 10, "hold=600000")
    );
    assert!(!attribute(tag::HOST).is_empty() && !attribute(tag::KERNEL).is_empty());
    drop(program);
}
