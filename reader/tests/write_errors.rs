//! A failing output: what lies before the failure is a valid dump, nothing else was released.

use crate::common;

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use common::{Decoded, Dir, Layout, Producer, emit};
use ringmark_format::session::Mode;
use ringmark_reader::output::Target;
use ringmark_reader::{Dump, Durability, Output, ReaderError, RecordOptions, Recorder, Selection};

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// Writes at most 700 bytes at a time, is interrupted now and then, and fails from call
/// `fails_from` up to `works_from`.
struct Faulty {
    bytes: Arc<Mutex<Vec<u8>>>,
    calls: usize,
    fails_from: usize,
    works_from: usize,
    error: i32,
    can_cut: bool,
}

impl Target for Faulty {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.calls += 1;
        if (self.fails_from..self.works_from).contains(&self.calls) {
            return Err(io::Error::from_raw_os_error(self.error));
        }
        if self.calls.is_multiple_of(7) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let part = bytes.len().min(700);
        self.bytes.lock().unwrap().extend_from_slice(&bytes[..part]);
        Ok(part)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        if !self.can_cut {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.bytes.lock().unwrap().truncate(bytes as usize);
        Ok(())
    }
}

struct Run {
    result: Result<(), ReaderError>,
    bytes: Vec<u8>,
    calls_needed: bool,
}

fn run(producer: &Producer, faults: (usize, usize, i32), can_cut: bool, wait: bool) -> Run {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let target = Faulty {
        bytes: bytes.clone(),
        calls: 0,
        fails_from: faults.0,
        works_from: faults.1,
        error: faults.2,
        can_cut,
    };
    let dump = Dump::over(Output::new(Box::new(target), "faulty", Durability::System));
    let options = RecordOptions {
        wait_for_space: wait,
        remove_drained: false,
        ..RecordOptions::default()
    };
    let selection = Selection::Path(producer.path.clone());
    let result = Recorder::new(selection, dump, options)
        .and_then(|mut recorder| recorder.run(&AtomicBool::new(false)))
        .map(drop);
    let bytes = bytes.lock().unwrap().clone();
    let calls_needed = result.is_err();
    Run {
        result,
        bytes,
        calls_needed,
    }
}

fn dead_producer(dir: &Dir, name: &str) -> (Producer, BTreeSet<(u64, u64)>) {
    let producer = Producer::new(dir, name, Layout::new(Mode::Discard).dead());
    let writer = producer.writer(0);
    (0..900).for_each(|n| assert!(emit(writer, 0, n)));
    (producer, (0..900).map(|n| (0, n)).collect())
}

#[test]
fn a_write_that_fails_at_any_call_leaves_a_valid_prefix_and_releases_nothing_unwritten() {
    let dir = Dir::new("faulty");
    let mut failures = 0;
    for call in 1.. {
        let (producer, all) = dead_producer(&dir, &format!("p{call}"));
        let error = if call % 2 == 0 { ENOSPC } else { EIO };
        let failed = run(&producer, (call, usize::MAX, error), true, false);
        let mut decoded = Decoded::of(&failed.bytes);
        if !failed.calls_needed {
            assert_eq!(decoded.events(), all);
            break;
        }
        failures += 1;
        let Err(ReaderError::Output { offset, source, .. }) = failed.result else {
            panic!("{:?}", failed.result);
        };
        assert_eq!(offset, failed.bytes.len() as u64);
        assert_eq!(source.raw_os_error(), Some(error));
        let rest = run(&producer, (usize::MAX, usize::MAX, 0), true, false);
        rest.result.unwrap();
        decoded.add(&rest.bytes);
        assert_eq!(decoded.events(), all, "failed at call {call}");
    }
    assert!(failures > 20, "{failures}");
}

#[test]
fn a_pipe_that_breaks_mid_block_still_carried_a_valid_prefix() {
    let dir = Dir::new("pipe");
    let (producer, all) = dead_producer(&dir, "p");
    let failed = run(&producer, (10, usize::MAX, EIO), false, false);
    let Err(ReaderError::Output { offset, .. }) = failed.result else {
        panic!("{:?}", failed.result);
    };
    let mut decoded = Decoded::default();
    let valid = decoded.add(&failed.bytes);
    assert!((offset as usize..failed.bytes.len()).contains(&valid));
    let rest = run(&producer, (usize::MAX, usize::MAX, 0), true, false);
    decoded.add(&rest.bytes);
    assert_eq!(decoded.events(), all);
}

#[test]
fn pages_that_were_gone_before_a_failed_write_are_counted_once() {
    let dir = Dir::new("again");
    let producer = Producer::new(&dir, "p", Layout::new(Mode::Overwrite));
    let writer = producer.writer(0);
    (0..300).for_each(|n| assert!(emit(writer, 0, n)));
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let target = Faulty {
        bytes: bytes.clone(),
        calls: 0,
        fails_from: 40,
        works_from: 41,
        error: ENOSPC,
        can_cut: true,
    };
    let dump = Dump::over(Output::new(Box::new(target), "faulty", Durability::System));
    let options = RecordOptions {
        wait_for_space: true,
        ..RecordOptions::default()
    };
    let selection = Selection::Path(producer.path.clone());
    let mut recorder = Recorder::new(selection, dump, options).unwrap();
    recorder.step().unwrap();
    assert_eq!(recorder.progress().pages_skipped, 0);
    // Round the ring several times: what is left behind is gone for good.
    (300..9000).for_each(|n| assert!(emit(writer, 0, n)));
    recorder.step().unwrap();
    assert!(!recorder.take_notices().is_empty(), "no write failed");
    // The disk is tried again after a while.
    let before = bytes.lock().unwrap().len();
    while bytes.lock().unwrap().len() == before {
        recorder.step().unwrap();
    }
    recorder.finish().unwrap();
    let there = Decoded::of(&bytes.lock().unwrap()).pages.len() as u64;
    let produced = producer.ring.slot(0).unwrap().produced();
    assert_eq!(recorder.progress().pages_skipped, produced - there);
}

#[test]
fn a_disk_that_gets_space_again_is_waited_for() {
    let dir = Dir::new("space");
    let (producer, all) = dead_producer(&dir, "p");
    let waited = run(&producer, (10, 12, ENOSPC), true, true);
    waited.result.unwrap();
    assert_eq!(Decoded::of(&waited.bytes).events(), all);
    let (producer, _) = dead_producer(&dir, "q");
    let other_error = run(&producer, (10, 12, EIO), true, true);
    assert!(
        other_error.result.is_err(),
        "only a full disk is waited for"
    );
}
