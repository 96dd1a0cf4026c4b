//! Shared memory that changes at random while it is read: no crash, no hang, bounded memory.

use crate::common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::{Dir, Layout, Producer, emit};
use ringmark_format::session::Mode;
use ringmark_reader::{
    Access, Batch, Dump, Durability, Fill, Finality, Output, RecordOptions, Recorder, SchemaPiece,
    Selection, Session, SessionDrain, SessionInfo, output::Stream, snapshot,
};

/// Times that a session is read while it changes.
const PASSES: u32 = 300;

/// A small generator of numbers that differ from run to run of it, not from run to run of a test.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Numbers that programs get wrong: small, huge, near powers of two, or anything.
    fn nasty(&mut self) -> u64 {
        match self.next() % 6 {
            0 => self.next() % 16,
            1 => u64::MAX - self.next() % 16,
            2 => 1 << (self.next() % 64),
            3 => (1_u64 << (self.next() % 64)).wrapping_sub(1 + self.next() % 2),
            4 => self.next() % (1 << 20),
            _ => self.next(),
        }
    }
}

/// Everything behind the header: state, consumed words, directory, schema, pages.
fn words(producer: &Producer) -> &'static [AtomicU64] {
    let map = producer.ring.map();
    map.words(4096, map.bytes() - 4096).unwrap()
}

fn scramble(words: &[AtomicU64], numbers: &mut Numbers) {
    // Most strokes hit what steers the reader: state, consumed words, directory.
    let steering = 8192 / 8 + 4096 * 3 / 8;
    let among = if numbers.next().is_multiple_of(4) {
        words.len()
    } else {
        steering
    };
    let at = numbers.next() as usize % among;
    words[at].store(numbers.nasty(), Ordering::Relaxed);
}

fn producer(dir: &Dir, mode: Mode) -> Producer {
    let producer = Producer::new(dir, "hostile", Layout::new(mode));
    producer.schema(b"16 bytes of text");
    for slot in 0..4 {
        let writer = producer.writer(slot);
        (0..500).for_each(|n| _ = emit(writer, u64::from(slot), n));
    }
    producer
}

/// Calls `read` under attack; it says whether the session could be opened.
fn attack(mode: Mode, seed: u64, mut read: impl FnMut(&Producer) -> bool) {
    let dir = Dir::new("hostile");
    let producer = producer(&dir, mode);
    let words = words(&producer);
    let before: Vec<u64> = words.iter().map(|w| w.load(Ordering::Relaxed)).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut numbers = Numbers(seed);
            while !done.load(Ordering::Relaxed) {
                (0..200).for_each(|_| scramble(words, &mut numbers));
                for (word, value) in words.iter().zip(&before) {
                    word.store(*value, Ordering::Relaxed);
                }
            }
        });
        let mut opened = 0;
        while opened < PASSES {
            opened += u32::from(read(&producer));
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn drains_survive() {
    let mut batch = Batch::new();
    attack(Mode::Discard, 11, |producer| {
        let Ok(session) = Session::open(&producer.path, Access::Consume) else {
            return false;
        };
        let mut drain = SessionDrain::new(session);
        for fill in [
            SessionDrain::fill,
            SessionDrain::fill_lingering,
            SessionDrain::fill_lingering,
            SessionDrain::fill_open,
        ] {
            let mut batches = 0;
            loop {
                batch.clear(u64::MAX);
                let filled = fill(&mut drain, &mut batch).unwrap();
                drain.release();
                batches += 1;
                assert!(batches < 1000, "a pass without end");
                if filled == Fill::PassDone {
                    break;
                }
            }
        }
        while let Some(SchemaPiece { bytes, .. }) = drain.peek_schema() {
            assert!(bytes.len() <= 1 << 20);
            drain.schema_written(bytes.len());
        }
        let _ = drain.counters(Finality::Interim, Some(&mut batch));
        true
    });
}

#[test]
fn snapshots_and_figures_survive() {
    attack(Mode::Overwrite, 22, |producer| {
        let Ok(session) = Session::open(&producer.path, Access::Observe) else {
            return false;
        };
        let info = SessionInfo::of(&session);
        assert!(info.rings.len() <= 16);
        let output = Output::new(
            Box::new(Stream(std::io::sink())),
            "sink",
            Durability::System,
        );
        let mut dump = Dump::over(output);
        snapshot(session, Some(Duration::from_secs(1)), &mut dump).unwrap();
        true
    });
}

#[test]
fn recorders_survive() {
    attack(Mode::Discard, 33, |producer| {
        let output = Output::new(
            Box::new(Stream(std::io::sink())),
            "sink",
            Durability::System,
        );
        let options = RecordOptions {
            remove_drained: false,
            ..RecordOptions::default()
        };
        let selection = Selection::Path(producer.path.clone());
        let Ok(mut recorder) = Recorder::new(selection, Dump::over(output), options) else {
            return false;
        };
        (0..5).for_each(|_| recorder.step().unwrap());
        recorder.finish().unwrap();
        true
    });
}
