//! What is on: `RINGMARK_FILTER`, changed at run time, asked for by tools; records of `log`.
#![cfg(feature = "tracing")]
#![forbid(unsafe_code)]

mod common;

use std::process::Command;
use std::time::Duration;

use common::{Record, Recorded};
use ringmark::Session;
use ringmark_format::mailbox::MAILBOX_BYTES;
use ringmark_ring::Mapping;
use ringmark_ring::mailbox::Mailbox;

/// Runs the test `name` of this file in a process of its own, where `environment` is set.
fn in_child(name: &str, environment: &[(&str, &str)]) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "--ignored", name])
        .env("RINGMARK", "memfd=on,warm=0");
    let output = command.envs(environment.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
}

/// Bridges `tracing` and `log` to the session that the environment asks for.
fn bridged() -> Option<Session> {
    match ringmark::tracing::init() {
        Ok(session) => session,
        Err(error) => panic!("events are not recorded by Ringmark: {error}"),
    }
}

fn with_target<'a>(all: &'a Recorded, target: &str) -> Vec<&'a Record> {
    let ids: Vec<u32> = all
        .types
        .iter()
        .filter(|t| t.target == target)
        .map(|t| t.id)
        .collect();
    all.records
        .iter()
        .filter(|r| ids.contains(&r.type_id))
        .collect()
}

fn emit() {
    tracing::info!(target: "app", n = 1);
    tracing::debug!(target: "app", n = 2);
    tracing::debug!(target: "chatty", n = 3);
    drop(tracing::debug_span!(target: "app", "span", n = 4).entered());
}

fn count(session: &Session) -> [usize; 2] {
    let all = common::read(session);
    ["app", "chatty"].map(|target| with_target(&all, target).len())
}

#[test]
fn filter() {
    in_child("filter_child", &[("RINGMARK_FILTER", "info,chatty=debug")]);
}

#[test]
#[ignore = "started by `filter`"]
fn filter_child() {
    let session = bridged().expect("a session");
    assert_eq!(
        tracing::level_filters::LevelFilter::current(),
        tracing::Level::DEBUG
    );
    emit();
    assert_eq!(count(&session), [1, 1]);
    session.set_filter("app=debug").unwrap();
    emit();
    assert_eq!(count(&session), [4, 1], "event, event, span");
    session.set_filter("off").unwrap();
    assert!(!tracing::enabled!(target: "app", tracing::Level::ERROR));
    assert_eq!(
        tracing::level_filters::LevelFilter::current(),
        tracing::level_filters::LevelFilter::OFF
    );
    emit();
    assert_eq!(count(&session), [4, 1]);
    session.set_filter("trace").unwrap();
    emit();
    assert_eq!(count(&session), [7, 2]);
    session.close();
    emit();
    assert!(!tracing::enabled!(target: "app", tracing::Level::ERROR));
    assert_eq!(count(&session), [7, 2]);
}

#[test]
fn request() {
    in_child("request_child", &[("RINGMARK_FILTER", "off")]);
}

#[test]
#[ignore = "started by `request`"]
fn request_child() {
    let session = bridged().expect("a session");
    emit();
    assert_eq!(count(&session), [0, 0]);
    ask(&session, "filter app=info");
    emit();
    assert_eq!(count(&session), [1, 0]);
    ask(&session, "enable * level=debug");
    emit();
    assert_eq!(count(&session), [4, 1]);
    ask(&session, "disable *");
    emit();
    assert_eq!(count(&session), [4, 1]);
}

/// Leaves a request for the helper thread, as a tool does, and waits until it is answered.
fn ask(session: &Session, text: &str) {
    let shared = session.file();
    let file = shared.try_clone().unwrap();
    let file = ringmark_ring::RingFile::observe(file, std::path::Path::new("memfd")).unwrap();
    let offset = file.geometry().header.mailbox_offset;
    let within = offset % 4096;
    let bytes = within as usize + MAILBOX_BYTES;
    let page = Mapping::writable(shared, offset - within, bytes).unwrap();
    let mailbox = page
        .words(within, MAILBOX_BYTES as u64)
        .and_then(Mailbox::over)
        .unwrap();
    let number = mailbox.request(text).expect("a free mailbox");
    while mailbox.answered() != number {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The records of the spans that live now, `shape id`.
fn lives(session: &Session) -> Vec<(String, u64)> {
    let all = common::read(session);
    let shape = |record: &Record| {
        let found = all.types.iter().find(|t| t.id == record.type_id);
        found.expect("its type").shape.name().to_owned()
    };
    let part = |record: &Record| (shape(record), all.number(record, "span_id"));
    let records = all.records.iter();
    records
        .filter(|record| shape(record).starts_with("span_"))
        .map(part)
        .collect()
}

#[test]
fn what_was_begun_ends() {
    in_child("begun_child", &[]);
}

/// Whatever switches it off meanwhile: a pattern, the filter; of `tracing` and of our own.
#[test]
#[ignore = "started by `what_was_begun_ends`"]
fn begun_child() {
    let session = bridged().expect("a session");
    for (off, on) in [
        ("disable *", "enable *"),
        ("disable span.*", "enable *"),
        ("filter off", "filter trace"),
    ] {
        let before = lives(&session).len();
        let (mine, other) = (
            ringmark::async_span!("mine"),
            tracing::info_span!("other", late = tracing::field::Empty),
        );
        let in_mine = mine.enter();
        let in_other = other.enter();
        ask(&session, off);
        let never = (ringmark::async_span!("never"), tracing::info_span!("never"));
        let in_never = (never.0.enter(), never.1.enter());
        other.record("late", 1);
        drop(in_never);
        drop((in_other, in_mine));
        drop((never, other, mine));
        ask(&session, on);
        let is_left_alone = off == "disable span.*";
        let now = &lives(&session)[before..];
        let id = |at: usize| now[at].1;
        let shapes: Vec<&str> = now.iter().map(|(shape, _)| shape.as_str()).collect();
        let begun = ["span_new", "span_new", "span_enter", "span_enter"];
        let ended = [
            "span_record",
            "span_exit",
            "span_exit",
            "span_close",
            "span_close",
        ];
        if is_left_alone {
            let count = |shape| shapes.iter().filter(|one| **one == shape).count();
            assert_eq!(
                ["span_new", "span_exit", "span_close"].map(count),
                [4, 4, 4],
                "{off}"
            );
        } else {
            assert_eq!(shapes, [&begun[..], &ended[..]].concat(), "{off}");
            assert_eq!(
                [id(5), id(6), id(7), id(8)],
                [id(1), id(0), id(1), id(0)],
                "{off}"
            );
        }
    }
}

#[test]
fn rings_wait_for_threads_that_run() {
    in_child("threads_child", &[]);
}

/// Before a tool's request is carried out: no thread waits for its ring then.
#[test]
#[ignore = "started by `rings_wait_for_threads_that_run`"]
fn threads_child() {
    use ringmark_format::slot::state;
    let session = bridged().expect("a session");
    let rings = |wanted: u64| {
        let file = session.file().try_clone().unwrap();
        let file = ringmark_ring::RingFile::observe(file, std::path::Path::new("memfd")).unwrap();
        let slots = (0..file.slots_used()).filter_map(|index| file.slot(index));
        slots.filter(|slot| slot.state() == wanted).count()
    };
    let ended = std::sync::Barrier::new(6);
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| ended.wait());
        }
        tracing::info!(target: "app", "this thread has a ring");
        assert_eq!((rings(state::ACTIVE), rings(state::WARM)), (1, 0));
        ask(&session, "library does something");
        // Those five, and the two of the test harness, one of which has a ring.
        assert!(rings(state::WARM) >= 5, "{}", rings(state::WARM));
        ended.wait();
    });
}

#[test]
fn beside_another_subscriber() {
    in_child("beside_child", &[("RINGMARK_FILTER", "info")]);
}

/// Another one that lives has every call site on; here those that are off stay off.
#[test]
#[ignore = "started by `beside_another_subscriber`"]
fn beside_child() {
    let session = bridged().expect("a session");
    let work = || {
        let off = tracing::debug_span!("off", late = tracing::field::Empty);
        off.record("late", 1);
        off.in_scope(|| {
            tracing::info!(target: "app", "in off");
            tracing::debug!(target: "app", "off");
        });
        tracing::info_span!("on").in_scope(|| tracing::info!(target: "app", "in on"));
    };
    work();
    let alone = session.records();
    assert_eq!(alone, 1 + 1 + 4, "two events and a span");
    let other = tracing::Dispatch::new(tracing_subscriber::registry());
    tracing::dispatcher::with_default(&other, work);
    work();
    assert_eq!(session.records(), 2 * alone);
}

#[test]
fn no_session() {
    in_child("no_session_child", &[("RINGMARK", "0")]);
}

#[test]
#[ignore = "started by `no_session`"]
fn no_session_child() {
    assert!(bridged().is_none());
    assert!(!tracing::enabled!(tracing::Level::ERROR));
    emit();
    let session = common::start(|builder| builder.filter("info"));
    emit();
    assert_eq!(
        count(&session),
        [1, 0],
        "a session that starts later switches it on"
    );
    let second = ringmark::tracing::init();
    assert_eq!(
        second.unwrap_err(),
        ringmark::tracing::InitError::SubscriberIsSet
    );
}

#[test]
fn log_records() {
    in_child("log_child", &[("RINGMARK_FILTER", "info,quiet=warn")]);
}

#[test]
#[ignore = "started by `log_records`"]
fn log_child() {
    let session = bridged().expect("a session");
    for n in 0..2 {
        log::info!(target: "net", "connected {n}");
        log::info!(target: "quiet", "nothing {n}");
        log::error!(target: "quiet", "failed {n}");
        log::debug!(target: "net", "details {n}");
    }
    let all = common::read(&session);
    let text = |target| -> Vec<String> {
        let records = with_target(&all, target);
        records.iter().map(|r| all.text(r, "message")).collect()
    };
    assert_eq!(text("net"), ["connected 0", "connected 1"]);
    assert_eq!(text("quiet"), ["failed 0", "failed 1"]);
    let info = all.types.iter().find(|t| t.target == "net").unwrap();
    assert_eq!(info.level, ringmark::Level::Info);
    assert!(info.file.ends_with("tracing_filter.rs") && info.line > 0);
    assert_eq!(info.fields.len(), 1);
}

#[test]
fn layer() {
    in_child("layer_child", &[("RINGMARK_FILTER", "info")]);
}

#[test]
#[ignore = "started by `layer`"]
fn layer_child() {
    use tracing_subscriber::layer::SubscriberExt;
    let session = ringmark::start_from_env().expect("a session");
    let all = tracing_subscriber::registry().with(ringmark::tracing::layer());
    tracing::subscriber::set_global_default(all).unwrap();
    emit();
    let span = tracing::info_span!(target: "app", "outer", late = tracing::field::Empty);
    span.in_scope(|| {
        span.record("late", 5_u64);
        drop(tracing::info_span!(target: "chatty", "inner").entered());
    });
    drop(span);
    let all = common::read(&session);
    let names: Vec<_> = all.records.iter().map(|record| all.name(record)).collect();
    let event = names[0];
    assert!(event.starts_with("event "), "{event}");
    assert_eq!(
        names[1..],
        [
            "outer",
            "span.enter",
            "outer",
            "inner",
            "span.enter",
            "span.exit",
            "span.close",
            "span.exit",
            "span.close"
        ]
    );
    let id = |at: usize| all.number(&all.records[at], "span_id");
    assert_eq!(all.number(&all.records[4], "parent_id"), id(1));
    session.set_filter("trace").unwrap();
    emit();
    assert_eq!(count(&session), [1 + 2 + 3, 1 + 1]);
}
