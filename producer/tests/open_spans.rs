//! A span is in the ring file while it is open: its type, its start, the arguments that fit. It
//! is gone when it ends, however it ends.

use std::path::Path;

use ringmark::{
    Encoder, Keep, Kind, Mode, Session, SpanGuard, Value, async_span, event, redact, span,
};
use ringmark_format::open_span::{FRAMES, Head};
use ringmark_format::slot::state;
use ringmark_ring::{RingFile, StackCopy};

/// An open span: start tick, then its payload words as far as they are kept.
type Open = (u64, Vec<u64>);

fn start() -> Session {
    let builder = Session::builder().mode(Mode::Overwrite).keep(Keep::Never);
    builder.start().expect("a session")
}

/// The open spans of all threads, and how many are beyond the frames.
fn open(path: &Path) -> (Vec<Open>, u64) {
    let file = std::fs::File::open(path).expect("the ring file");
    let file = RingFile::observe(file, path).expect("a ring file");
    let slots = (0..file.slots_used()).filter_map(|index| file.slot(index));
    let mut found = (Vec::new(), 0);
    for slot in slots.filter(|slot| slot.state() == state::ACTIVE) {
        let copy = StackCopy::of(file.span_stack(slot).expect("a stack"));
        assert!(!copy.moving, "no thread is between two steps");
        found.1 += copy.over;
        found.0.extend(copy.frames().iter().map(|frame| {
            let head = Head::unpack(frame[0]).expect("a filled frame");
            (frame[1], frame[2..2 + head.words as usize].to_vec())
        }));
    }
    found
}

fn words(path: &Path) -> Vec<Vec<u64>> {
    open(path).0.into_iter().map(|(_, words)| words).collect()
}

/// One session in this process, one test after the other.
#[test]
fn open_spans() {
    let session = start();
    let path = session.path();
    first_of_a_thread(path);
    arguments(path);
    ends(path);
    values_that_panic(path);
    beyond_the_frames(path);
    other_threads(path);
    futures(path);
    assert_eq!(open(path), (vec![], 0));
}

/// A span that is the first thing a thread records gets a ring for it.
fn first_of_a_thread(path: &Path) {
    let before = ringmark::ticks();
    let outer = span!("outer", value = 7_u64);
    let inner = span!("inner");
    let (spans, over) = open(path);
    assert_eq!(over, 0);
    let [(start, words), (inner_start, none)] = &spans[..] else {
        panic!("{spans:?}");
    };
    assert_eq!((&words[..], &none[..]), (&[7][..], &[][..]));
    assert!(before <= *start && start <= inner_start && *inner_start <= ringmark::ticks());
    drop(inner);
    drop(outer);
}

/// Panics when it is encoded, which is for a span's frame first.
#[derive(Clone, Copy)]
struct Panics;

impl Value for Panics {
    const KIND: Kind = Kind::U64;

    fn encode(&self, _to: &mut Encoder<'_, '_>, _offset: usize) {
        panic!("a value that panics");
    }
}

/// Such a span does not begin, and nothing of it is left, however many there were.
fn values_that_panic(path: &Path) {
    std::panic::set_hook(Box::new(|_| ()));
    for _ in 0..1000 {
        let caught = std::panic::catch_unwind(|| drop(span!("panics", value = Panics)));
        assert!(caught.is_err());
    }
    let _ = std::panic::take_hook();
    let after = span!("after");
    assert_eq!((words(path), open(path).1), (vec![vec![]], 0));
    drop(after);
}

fn arguments(path: &Path) {
    let short = span!("text", name = "nightly import", n = 3_u8);
    // Place and length of the text, then the number, then the text.
    let expected = [
        24 | 14 << 32,
        3,
        u64::from_le_bytes(*b"nightly "),
        0x7472_6F70_6D69,
    ];
    assert_eq!(words(path), [expected]);
    drop(short);
    let long = "0123456789abcdef".repeat(100);
    let long_text = span!("text", name = long.as_str());
    let kept = words(path).remove(0);
    assert_eq!(kept[0], 16 | 1600 << 32, "the place says how long it is");
    assert_eq!(kept.len(), 6);
    assert_eq!(kept[1], u64::from_le_bytes(*b"01234567"));
    drop(long_text);
    let many = span!("many", a = [1_u64; 40], z = 9_u64);
    assert_eq!(words(path), [[1; 6]]);
    drop(many);
    let secret = span!("login", password = redact("hunter2hunter2"));
    let file = std::fs::read(path).expect("the ring file");
    assert!(!file.windows(7).any(|bytes| bytes == b"hunter2"));
    assert_eq!(words(path)[0][0] >> 32, "[redacted]".len() as u64);
    drop(secret);
    // What is set later is in the record; the begin is what is shown.
    let mut set = span!("set", rows = 1_u64);
    set.set((2,));
    assert_eq!(words(path), [[1]]);
}

/// Cancelled, out of order, forgotten, by a panic.
fn ends(path: &Path) {
    let values = |path| words(path).concat();
    let (a, b) = (span!("a", n = 1_u64), span!("b", n = 2_u64));
    drop(a);
    assert_eq!(values(path), [2]);
    b.cancel();
    assert!(values(path).is_empty());
    let caught = std::panic::catch_unwind(|| {
        let _span = span!("c", n = 3_u64);
        std::panic::resume_unwind(Box::new(()));
    });
    assert!(caught.is_err() && values(path).is_empty());
    let forgotten = std::thread::spawn({
        let path = path.to_owned();
        move || {
            std::mem::forget(span!("d", n = 4_u64));
            drop(span!("e", n = 5_u64));
            assert_eq!(
                words(&path).concat(),
                [4],
                "it is open, for all that is known"
            );
        }
    });
    forgotten.join().expect("the thread");
    assert!(values(path).is_empty(), "its thread has ended");
}

fn beyond_the_frames(path: &Path) {
    let many: Vec<SpanGuard<_>> = (0..100_u64).map(|n| span!("deep", n = n)).collect();
    let (spans, over) = open(path);
    assert_eq!(
        (spans.len(), over),
        (FRAMES as usize, 100 - u64::from(FRAMES))
    );
    drop(many);
}

fn other_threads(path: &Path) {
    let here = span!("here", n = 1_u64);
    let path = path.to_owned();
    let there = std::thread::spawn(move || {
        event!("there");
        let _span = span!("there", n = 2_u64);
        let mut both = words(&path).concat();
        both.sort_unstable(); // Which thread has the lower slot is not promised.
        assert_eq!(both, [1, 2]);
    });
    there.join().expect("the thread");
    drop(here);
}

/// A span that may change threads is on the stack while a thread is in it.
fn futures(path: &Path) {
    let request = async_span!("request", n = 7_u64);
    let id = request.id().expect("its type is enabled");
    assert!(words(path).is_empty());
    let entered = request.enter();
    assert_eq!(words(path), [[id]]);
    drop(entered);
    assert!(words(path).is_empty());
}
