//! A real trace: a program that reads source files and says how long each line is, one u64 event
//! a line, in the rings of this process.

use std::fs;
use std::path::{Path, PathBuf};

use ringmark::{Mode, Session, event};
use ringmark_reader::{Access, Codec, Dump, Durability, Output};

/// Reads every file under `dir` and emits one event a line; returns the number of events.
pub fn read_lines(dir: &Path) -> u64 {
    let mut events = 0;
    for path in files(dir) {
        let Ok(bytes) = fs::read(&path) else { continue };
        for line in bytes.split(|b| *b == b'\n') {
            let spaces = line.iter().take_while(|b| **b == b' ').count();
            event!("line.read", bytes = (line.len() - spaces) as u64);
            events += 1;
        }
    }
    events
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() && entry.file_name() != "target" {
            found.extend(files(&entry.path()));
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    found
}

/// The sources of this repository and of the standard crates it was built from.
#[must_use]
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Starts an overwrite session with one large ring for this thread.
#[must_use]
pub fn start(ring_bytes: u32) -> Session {
    let session = Session::builder()
        .mode(Mode::Overwrite)
        .ring_bytes(ring_bytes);
    session
        .session_bytes(4 * u64::from(ring_bytes))
        .warm(1)
        .start()
        .expect("a session")
}

/// What is in the rings, as a dump under this codec; also how long that took in seconds.
#[must_use]
pub fn snapshot(session: &Session, codec: Codec, path: &Path) -> (Vec<u8>, f64) {
    let reader =
        ringmark_reader::Session::open(session.path(), Access::Observe).expect("the session");
    let mut dump = Dump::over(Output::create(path, Durability::System).expect("the dump's file"));
    dump.set_codec(codec);
    let figures = ringmark_reader::snapshot(reader, None, &mut dump).expect("a snapshot");
    dump.finish().expect("the dump is written");
    let bytes = fs::read(path).expect("the dump");
    let _ = fs::remove_file(path);
    (bytes, figures.took.as_secs_f64())
}
