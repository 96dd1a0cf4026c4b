//! The ring file of a session: opened, described, copied as a snapshot, drained. In one mode a
//! second thread changes it at the same time.
//!
//! An input is a byte of mode, a byte of file size in units of 4 KiB, then pieces of the file
//! without the zeros between them: u16 place in words, u8 number of words, the words.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ringmark_reader::output::Stream;
use ringmark_reader::{
    Access, Batch, Dump, Durability, Fill, Finality, Output, SchemaPiece, Session, SessionDrain,
    SessionInfo, snapshot,
};

use crate::dump_blocks;

const UNIT: usize = 4096;
/// Largest file in units.
const UNITS_MAX: u8 = 32;
/// Bit of the mode: a second thread changes the file.
const CHANGES: u8 = 1;

/// Reads the input as a ring file.
pub fn run(input: &[u8]) {
    let Some((&mode, rest)) = input.split_first() else {
        return;
    };
    let image = image(rest);
    let ring_file = RingFile::new(&image);
    if mode & CHANGES == 0 {
        read(&ring_file.0);
    } else {
        read_changing(&ring_file.0, &image);
    }
}

/// The file that an input stands for, after the byte of its mode.
pub fn image(input: &[u8]) -> Vec<u8> {
    let (units, mut rest) = input.split_first().unwrap_or((&0, &[]));
    let mut image = vec![0; UNIT * usize::from(*units).clamp(1, UNITS_MAX.into())];
    while let Some(([low, high, words], behind)) = rest.split_first_chunk() {
        let at = 8 * usize::from(u16::from_le_bytes([*low, *high]));
        let bytes = (8 * usize::from(*words)).min(behind.len());
        if let Some(place) = image.get_mut(at..at + bytes) {
            place.copy_from_slice(&behind[..bytes]);
        }
        rest = &behind[bytes..];
    }
    image
}

/// The input, without the byte of its mode, that stands for a file of whole units; `None` for one that is too
/// large.
pub fn input_for(image: &[u8]) -> Option<Vec<u8>> {
    let units = u8::try_from(image.len() / UNIT).ok()?;
    let mut input = vec![units];
    let words: Vec<&[u8]> = image.chunks(8).collect();
    let mut at = 0;
    while let Some(first) = (at..words.len()).find(|i| !is_zero(words[*i])) {
        let end = (first + 255).min(words.len());
        let piece = &words[first..end];
        let zeros = piece
            .windows(2)
            .position(|two| two.iter().all(|w| is_zero(w)));
        let piece = &piece[..zeros.unwrap_or(piece.len())];
        input.extend_from_slice(&u16::try_from(first).ok()?.to_le_bytes());
        input.push(piece.len() as u8);
        piece.iter().for_each(|word| input.extend_from_slice(word));
        at = first + piece.len();
    }
    (units <= UNITS_MAX).then_some(input)
}

fn is_zero(word: &[u8]) -> bool {
    word.iter().all(|b| *b == 0)
}

/// A file in memory, removed when dropped.
struct RingFile(PathBuf);

impl RingFile {
    fn new(image: &[u8]) -> Self {
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        let thread = std::thread::current().id();
        let path = dir.join(format!("ringmark-fuzz-{}-{thread:?}", std::process::id()));
        std::fs::write(&path, image).expect("a file in memory");
        Self(path)
    }
}

impl Drop for RingFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Where a dump goes to be decoded.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.0.lock().map_err(|_| io::ErrorKind::Other)?;
        written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn read(ring_file: &Path) {
    if let Ok(session) = Session::open(ring_file, Access::Observe) {
        let info = SessionInfo::of(&session);
        assert!(info.rings.len() <= session.header().slots as usize);
        let written = Written::default();
        let output = Output::new(
            Box::new(Stream(written.clone())),
            "memory",
            Durability::System,
        );
        let mut dump = Dump::over(output);
        let _ = snapshot(session, None, &mut dump);
        drop(dump);
        let bytes = std::mem::take(&mut *written.0.lock().expect("no thread panicked"));
        dump_blocks::decode(&bytes);
    }
    if let Ok(session) = Session::open(ring_file, Access::Consume) {
        drain(session);
    }
}

fn drain(session: Session) {
    let mut drain = SessionDrain::new(session);
    let mut batch = Batch::new();
    for fill in [
        SessionDrain::fill,
        SessionDrain::fill_lingering,
        SessionDrain::fill_lingering,
        SessionDrain::fill_open,
    ] {
        let mut batches = 0;
        loop {
            batch.clear(u64::MAX);
            let filled = fill(&mut drain, &mut batch);
            drain.release();
            batches += 1;
            assert!(batches < 10_000, "a pass without end");
            if !matches!(filled, Ok(Fill::BatchFull)) {
                break;
            }
        }
    }
    while let Some(SchemaPiece { bytes, .. }) = drain.peek_schema() {
        drain.schema_written(bytes.len());
    }
    let _ = drain.counters(Finality::Interim, Some(&mut batch));
}

/// Reads a file whose words change to others of its words, or to numbers near their limits.
fn read_changing(ring_file: &Path, image: &[u8]) {
    let file = File::options()
        .write(true)
        .open(ring_file)
        .expect("our file");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| scramble(&file, image, &done));
        let _ended = Ended(&done);
        read(ring_file);
    });
}

/// Ends what goes on beside a reader, also where that one panics.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn scramble(file: &File, image: &[u8], done: &AtomicBool) {
    let words = image.len() as u64 / 8;
    let mut state = 0x9E37_79B9_7F4A_7C15 ^ words;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    while !done.load(Ordering::Relaxed) {
        // Most strokes hit what steers the reader, which stands in front.
        let at = next()
            % if next() % 4 == 0 {
                words
            } else {
                words.min(3 * 512)
            };
        let word = match next() % 4 {
            0 => u64::MAX - next() % 3,
            1 => next() % 64,
            2 => next(),
            _ => {
                let from = 8 * (next() % words) as usize;
                image[from..]
                    .first_chunk()
                    .map_or(0, |w| u64::from_le_bytes(*w))
            }
        };
        let _ = file.write_all_at(&word.to_le_bytes(), 8 * at);
    }
}
