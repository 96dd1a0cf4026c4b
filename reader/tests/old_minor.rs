//! Ring files of an earlier minor version: the stack of open spans as version 1.1 wrote it.

mod common;

use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use common::{Decoded, Dir, Layout, Producer, emit};
use ringmark_format::TypeId;
use ringmark_format::open_span::{ENDED, ENDED_SESSION, FREE, Frame, Head};
use ringmark_format::session::{Mode, SessionHeader};
use ringmark_reader::{Destination, Dump, Durability, Ended, RecordOptions, Recorder, Selection};
use ringmark_ring::span_stack::{FRAME_WORDS, FRAMES, OVER};
use ringmark_ring::{SpanStack, StackCopy};

/// Both threads get a processor within it.
const SOON: Duration = Duration::from_secs(30);
/// Word of the header that counted frames in use, and spans that had begun, until version 1.1.
const DEPTH: usize = 0;

/// The head of an open span. Version 1.1 counted the spans of the whole stack.
fn filled(serial: u32) -> u64 {
    let head = Head {
        type_id: TypeId(16),
        words: 1,
        serial,
        lexical: false,
    };
    head.pack()
}

fn set_frame(stack: &SpanStack, frame: usize, words: [u64; 3]) {
    let at = frame * FRAME_WORDS;
    for (to, word) in stack[at..].iter().zip(words) {
        to.store(word, Relaxed);
    }
}

/// Four frames in use of 41 spans: one open; one that ended below it, whose words are still there;
/// one open; one that a begin is about to fill, with words of an earlier span.
fn write_as_1_1(stack: &SpanStack) {
    stack[DEPTH].store(41 << 32 | 4, Relaxed);
    stack[OVER].store(2, Relaxed);
    set_frame(stack, 1, [filled(7), 100, 1]);
    set_frame(stack, 2, [ENDED, 200, 2]);
    set_frame(stack, 3, [filled(39), 300, 3]);
    set_frame(stack, 4, [FREE, 400, 4]);
}

/// What a frame says: its head, the tick of the begin, and the first word.
fn said(frame: &Frame) -> [u64; 3] {
    [frame.head, frame.tick, frame.payload[0]]
}

fn record(producer: &Producer, dir: &Dir) -> Decoded {
    let path = dir.join("out.rmk");
    let dump = Dump::create(&Destination::File(path.clone()), Durability::System).unwrap();
    let selection = Selection::Path(producer.path.clone());
    let mut recorder = Recorder::new(selection, dump, RecordOptions::default()).unwrap();
    let ended = recorder.run(&AtomicBool::new(false)).unwrap();
    assert_eq!(ended, Ended::SessionsEnded);
    Decoded::of_file(&path)
}

#[test]
fn the_open_spans_of_a_dead_process_of_version_1_1() {
    let dir = Dir::new("old-minor");
    let producer = Producer::new(&dir, "a", Layout::new(Mode::Discard).dead());
    let file = std::fs::OpenOptions::new().write(true).open(&producer.path);
    let minor = offset_of!(SessionHeader, version_minor) as u64;
    file.unwrap().write_all_at(&[1, 0], minor).unwrap();
    assert!(emit(producer.writer(0), 0, 1));
    write_as_1_1(producer.stack(0));
    let decoded = record(&producer, &dir);
    let [(stack, frames)] = &decoded.open[..] else {
        panic!("{:?}", decoded.open)
    };
    let open: Vec<_> = frames.iter().map(said).collect();
    assert_eq!(open, [[filled(7), 100, 1], [filled(39), 300, 3]]);
    assert_eq!((stack.over, stack.flags, stack.tid), (2, 0, 100));
    assert_eq!(stack.tick, ENDED_SESSION);
    assert_eq!(decoded.events(), [(0, 1)].into());
}

/// Version 1.1 changed `depth` with every begin and end, and then the head: a copy during which it
/// changes is not of one moment.
#[test]
fn a_copy_of_a_stack_of_version_1_1_that_changes_says_so() {
    let dir = Dir::new("old-minor-live");
    let producer = Producer::new(&dir, "a", Layout::new(Mode::Overwrite));
    assert!(emit(producer.writer(0), 0, 1));
    let stack = producer.stack(0);
    for frame in 1..=FRAMES {
        set_frame(stack, frame as usize, [filled(frame - 1), frame.into(), 0]);
    }
    let is_whole = |copy: &StackCopy| copy.frames().len() == FRAMES as usize;
    let copy = StackCopy::of(stack);
    assert!(is_whole(&copy) && !copy.moving);
    let (done, deadline) = (AtomicBool::new(false), Instant::now() + SOON);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                stack[DEPTH].fetch_add(1 << 32, Relaxed);
            }
        });
        let is_moving = || {
            let copy = StackCopy::of(stack);
            assert!(is_whole(&copy), "no head changes");
            copy.moving
        };
        let found = std::iter::repeat_with(is_moving)
            .take_while(|_| Instant::now() < deadline)
            .any(|moving| moving);
        done.store(true, Relaxed);
        assert!(found, "no copy was moving");
    });
}
