//! Living and dying processes: snapshots, death watch, control, sessions by pid.

use crate::common;

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use common::child::{Child, live_as_child, start_child};
use common::{Decoded, Dir, Layout, Producer, emit, emit_at};
use ringmark_format::TypeId;
use ringmark_format::session::Mode;
use ringmark_reader::on_death::WatchReport;
use ringmark_reader::{
    Access, Batch, Codec, DeathWatch, Destination, Dump, Durability, Ended, Fill, RecordOptions,
    Recorder, Selection, Session, SessionDrain, control, find, snapshot,
};
use ringmark_ring::mailbox::Answer;

#[test]
fn child() {
    live_as_child();
}

fn child_ring(dir: &Dir) -> std::path::PathBuf {
    dir.join("child.ring")
}

#[test]
fn death_is_noticed_and_everything_is_read() {
    let dir = Dir::new("death");
    let mut process: Child = start_child(&dir, Mode::Discard);
    let selection = Selection::Path(child_ring(&dir));
    let dump = Dump::create(&Destination::File(dir.join("out.rmk")), Durability::System).unwrap();
    let mut recorder = Recorder::new(selection, dump, RecordOptions::default()).unwrap();
    let mut passes = 0;
    let ended = recorder.run_with(&AtomicBool::new(false), |_| {
        if passes == 0 {
            process.kill();
        }
        passes += 1;
    });
    assert_eq!(ended.unwrap(), Ended::SessionsEnded);
    // By the wait for its end, not by looking around now and then: that comes after twenty passes.
    assert!(passes <= 5, "{passes} passes");
    assert_eq!(Decoded::of_file(&dir.join("out.rmk")).events().len(), 300);
    assert!(!child_ring(&dir).exists());
}

#[test]
fn a_process_is_found_by_pid_even_outside_the_directory() {
    let dir = Dir::new("by-pid");
    let process = start_child(&dir, Mode::Discard);
    let found = find::in_process(process.0.id()).unwrap();
    assert_eq!(found.len(), 1);
    // A path through the process ends with it, and the file could not be removed then.
    assert_eq!(found[0].path, child_ring(&dir));
    let session = Session::open_found(&found[0], Access::Observe).unwrap();
    assert_eq!(session.pid(), process.0.id());
    std::fs::remove_file(child_ring(&dir)).unwrap();
    let found = find::by_pid(process.0.id()).unwrap();
    let session = Session::open_found(&found[0], Access::Observe).unwrap();
    assert!(!session.ended(), "unlinked, but alive");
}

#[test]
fn a_dead_process_is_dumped_even_if_its_file_is_gone() {
    let dir = Dir::new("watch");
    let dumps = Dir::new("dumps");
    // SAFETY: the only test of this binary that sets or depends on this variable.
    unsafe { std::env::set_var("RINGMARK_DIR", &dir.0) };
    let mut process = start_child(&dir, Mode::Overwrite);
    let mut watch = DeathWatch::new(&dumps.0, Codec::Lz4);
    let reports = watch.poll();
    assert!(
        matches!(&reports[..], [WatchReport::Holding(_), ..]),
        "{reports:?}"
    );
    std::fs::remove_file(child_ring(&dir)).unwrap();
    process.kill();
    let dump = loop {
        if let Some(WatchReport::Dumped { dump, .. }) = watch
            .poll()
            .into_iter()
            .find(|e| matches!(e, WatchReport::Dumped { .. }))
        {
            break dump;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let name = dump.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(
        name.starts_with("synthetic-") && name.ends_with(".rmk"),
        "{name}"
    );
    assert_eq!(Decoded::of_file(&dump).events().len(), 300);
}

#[test]
fn a_snapshot_during_writing_holds_whole_pages_without_gaps() {
    let dir = Dir::new("snapshot");
    let mut layout = Layout::new(Mode::Overwrite);
    layout.pages = 64;
    let producer = Producer::new(&dir, "a", layout);
    let (stop, mut torn) = (AtomicBool::new(false), Vec::new());
    std::thread::scope(|scope| {
        for slot in 0..2 {
            let (producer, stop) = (&producer, &stop);
            scope.spawn(move || {
                let writer = producer.writer(slot);
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    assert!(emit(writer, u64::from(slot), number));
                    number += 1;
                }
            });
        }
        for round in 0..20 {
            let produced = || producer.ring.slot(0).unwrap().produced();
            let before = produced();
            while produced() < before + 2 {
                std::thread::yield_now();
            }
            let path = dir.join(&format!("{round}.rmk"));
            let mut dump =
                Dump::create(&Destination::File(path.clone()), Durability::System).unwrap();
            let session = Session::open(&producer.path, Access::Observe).unwrap();
            snapshot(session, None, &mut dump).unwrap();
            let decoded = Decoded::of_file(&path);
            for (page, records) in &decoded.pages {
                let (thread, first) = records.first().copied().unwrap_or_default();
                let expected = (first..).map(|n| (thread, n)).take(records.len());
                if !records.iter().copied().eq(expected) {
                    torn.push((round, *page, records.clone()));
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(torn.is_empty(), "{torn:?}");
    assert_eq!(producer.lost(), 0);
}

#[test]
fn only_the_last_moments_are_kept_if_asked() {
    let dir = Dir::new("last");
    let producer = Producer::new(&dir, "a", Layout::new(Mode::Overwrite));
    let writer = producer.writer(0);
    // As long ago as a clock can tell that began when the machine started.
    let now = ringmark_ring::clock::monotonic_ns();
    let age = now / 2;
    (0..600).for_each(|n| assert!(emit_at(writer, 0, n, now - age)));
    (600..900).for_each(|n| assert!(emit_at(writer, 0, n, now)));
    let path = dir.join("out.rmk");
    let mut dump = Dump::create(&Destination::File(path.clone()), Durability::System).unwrap();
    let session = Session::open(&producer.path, Access::Observe).unwrap();
    snapshot(session, Some(Duration::from_nanos(age / 2)), &mut dump).unwrap();
    let events = Decoded::of_file(&path).events();
    assert!((600..900).all(|n| events.contains(&(0, n))));
    assert!(events.first().unwrap().1 > 300, "{:?}", events.first());
}

#[test]
fn requests_are_answered_or_refused_with_the_reason() {
    let dir = Dir::new("control");
    let producer = Producer::new(&dir, "a", Layout::new(Mode::Discard));
    // The process must look alive: it is this one.
    let session = Session::open(&producer.path, Access::Control).unwrap();
    let mailbox = producer.ring.mailbox().unwrap();
    let short = Duration::from_millis(30);
    let refused = |text| {
        let error = control::request(&session, text, short).unwrap_err();
        error
            .to_string()
            .replace(&std::process::id().to_string(), "PID")
    };
    // One that is stopped: each request is taken back, none comes between.
    for _ in 0..2 {
        let said = refused("status");
        assert!(said.starts_with("pid PID: no answer"), "{said}");
        assert!(said.contains("nothing of it is done"), "{said}");
    }
    assert!(!mailbox.take(mailbox.requested()), "it goes on too late");
    mailbox.pass_over(mailbox.requested());
    let served = |work: &(dyn Fn() + Sync)| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let seen = mailbox.answered();
                while mailbox.requested() == seen {
                    std::thread::yield_now();
                }
                assert!(mailbox.take(mailbox.requested()));
                work();
                let text = mailbox.request_text();
                mailbox.answer(mailbox.requested(), &answer(&format!("did {text}")));
            });
            control::request(&session, "enable all", Duration::from_secs(2)).unwrap()
        })
    };
    assert_eq!(served(&|| ()), answer("did enable all"));
    // One that takes longer than the limit, and says so.
    let slow = || {
        let begin = std::time::Instant::now();
        while begin.elapsed() < Duration::from_secs(3) {
            mailbox.work();
            std::thread::yield_now();
        }
    };
    assert_eq!(served(&slow), answer("did enable all"));
}

#[test]
fn of_a_request_that_was_begun_nothing_is_promised() {
    let dir = Dir::new("begun");
    let producer = Producer::new(&dir, "a", Layout::new(Mode::Discard));
    let session = Session::open(&producer.path, Access::Control).unwrap();
    let mailbox = producer.ring.mailbox().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while mailbox.requested() == 0 {
                std::thread::yield_now();
            }
            assert!(mailbox.take(1));
        });
        let error = control::request(&session, "status", Duration::from_secs(2)).unwrap_err();
        assert!(error.to_string().contains("it may still do so"), "{error}");
    });
}

fn answer(text: &str) -> Answer {
    Answer {
        status: 0,
        text: text.to_owned(),
    }
}

#[test]
fn cleaning_removes_dead_sessions_oldest_first_and_never_live_ones() {
    use ringmark_reader::clean::{Removal, remove_dead_in};
    let dir = Dir::new("clean");
    let alive = Producer::new(&dir, "alive", Layout::new(Mode::Discard));
    let dead: Vec<_> = (0..3_u32)
        .map(|i| {
            let mut layout = Layout::new(Mode::Discard).dead();
            layout.start_time += u64::from(i);
            let producer = Producer::new(&dir, &format!("dead{i}"), layout);
            let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1000 + u64::from(i));
            let file = File::options().write(true).open(&producer.path).unwrap();
            file.set_modified(changed).unwrap();
            producer
        })
        .collect();
    let one = std::fs::metadata(&dead[2].path).unwrap().len();
    let Removal { removed, .. } = remove_dead_in(std::slice::from_ref(&dir.0), 2 * one);
    assert_eq!(removed.len(), 1, "{removed:?}");
    assert_eq!(removed[0].path, dead[0].path);
    let Removal { removed, refused } = remove_dead_in(&[dir.0.clone(), dir.join("nowhere")], 0);
    assert_eq!((removed.len(), refused.len()), (2, 0));
    assert!(alive.path.exists());
}

/// Pages that a look finds something new in.
fn news(drain: &mut SessionDrain, batch: &mut Batch) -> u64 {
    batch.clear(u64::MAX);
    assert_eq!(drain.fill(batch).unwrap(), Fill::PassDone);
    assert_eq!(drain.fill_news(batch).unwrap(), Fill::PassDone);
    batch.pages()
}

#[test]
fn an_open_page_is_looked_through_again_only_for_something_new() {
    let dir = Dir::new("news");
    let producer = Producer::new(&dir, "a", Layout::new(Mode::Overwrite));
    let writer = producer.writer(0);
    let session = Session::open(&producer.path, Access::Observe).unwrap();
    let (mut drain, mut batch) = (SessionDrain::observing(session), Batch::new());
    for number in 0..3 {
        assert!(emit(writer, 0, number));
        assert_eq!(news(&mut drain, &mut batch), 1, "event {number}");
        assert_eq!(news(&mut drain, &mut batch), 0, "event {number}");
    }
    let now = ringmark_ring::clock::monotonic_ns();
    let mut open = writer.reserve(TypeId(16), 2, now).unwrap();
    for _ in 0..2 {
        assert_eq!(news(&mut drain, &mut batch), 1, "it may be committed");
    }
    (0..2).for_each(|word| open.set_word(word, 3));
    open.commit();
    assert_eq!(news(&mut drain, &mut batch), 1);
    assert_eq!(news(&mut drain, &mut batch), 0);
}
