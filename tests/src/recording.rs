//! Reading sessions out and decoding them, with the libraries that users have.

use std::fs::File;
use std::path::{Path, PathBuf};

use ringmark_decoder::{Dump, DumpBuilder};
use ringmark_reader::{
    Access, Destination, Durability, RecordOptions, Recorder, Selection, Session,
};

/// Writes all that a session holds now to a dump; the ring file stays.
///
/// # Panics
/// When the session cannot be opened, or the dump cannot be written.
pub fn record(ring_file: &Path, dump: &Path) {
    let destination = Destination::File(dump.to_owned());
    let output = ringmark_reader::Dump::create(&destination, Durability::System).expect("a dump");
    let options = RecordOptions {
        remove_drained: false,
        ..RecordOptions::default()
    };
    let selection = Selection::Path(ring_file.to_owned());
    let mut recorder = Recorder::new(selection, output, options).expect("a session");
    recorder.finish().expect("a written dump");
}

/// A snapshot of a living session, decoded.
///
/// # Panics
/// As [`record`] and [`decode`].
#[must_use]
pub fn snapshot(ring_file: &Path, dump: &Path) -> Dump {
    let destination = Destination::File(dump.to_owned());
    let mut output =
        ringmark_reader::Dump::create(&destination, Durability::EachWrite).expect("a dump");
    let session = Session::open(ring_file, Access::Observe).expect("a session");
    ringmark_reader::snapshot(session, None, &mut output).expect("a snapshot");
    output.finish().expect("a written dump");
    decode(&[dump.to_owned()])
}

/// All that these sessions hold now, decoded as one dump.
///
/// # Panics
/// As [`record`] and [`decode`].
#[must_use]
pub fn read(ring_files: &[PathBuf]) -> Dump {
    let dumps: Vec<_> = ring_files
        .iter()
        .map(|path| path.with_extension("rmk"))
        .collect();
    for (ring_file, dump) in ring_files.iter().zip(&dumps) {
        record(ring_file, dump);
    }
    decode(&dumps)
}

/// These dumps put together. What a killed recorder left may end inside a block.
///
/// # Panics
/// When one cannot be read, or is damaged in any other way.
#[must_use]
pub fn decode(dumps: &[PathBuf]) -> Dump {
    decode_damaged(dumps, "truncated block")
}

/// These dumps put together, all of whose damage is of one kind.
///
/// # Panics
/// When one cannot be read, or has damage without `expected` in its text.
#[must_use]
pub fn decode_damaged(dumps: &[PathBuf], expected: &str) -> Dump {
    let mut builder = DumpBuilder::new();
    for path in dumps {
        let file = File::open(path).expect("a dump to read");
        if file.metadata().is_ok_and(|m| m.len() == 0) {
            continue;
        }
        let read = builder.read(&path.to_string_lossy(), file);
        if let Err(damage) = read {
            panic!("{damage}");
        }
    }
    let dump = builder.finish();
    for damage in &dump.damage {
        let text = damage.to_string();
        assert!(text.contains(expected), "{text}");
    }
    dump
}
