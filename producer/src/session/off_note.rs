//! The note of a copy of the library that was configured to trace and has no session: why.

use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use ringmark_ring::{environment, room, session_dir};

use super::create;
use crate::setup::StartError;

/// No note is longer. (Beyond its limit on file sizes a process is killed.)
const NOTE_BYTES_MAX: u64 = 64 << 10;

/// Tells the copies of the library in one process apart, which must not write over each other's
/// notes. 0: not chosen yet.
static COPY: AtomicU32 = AtomicU32::new(0);

/// The number of this copy, the same for all of its notes.
fn copy() -> u32 {
    let [a, b, c, d, ..] = create::random_uuid();
    let fresh = u32::from_le_bytes([a, b, c, d]) | 1;
    match COPY.compare_exchange(0, fresh, Relaxed, Relaxed) {
        Ok(_) => fresh,
        Err(chosen) => chosen,
    }
}

/// Leaves a note next to the ring files, where `ringmark list` finds it, in place of the last one of
/// this copy. Prints it only where the environment asks for that.
pub(super) fn leave(error: &StartError) {
    let dir = session_dir::path();
    // Not into a directory that was refused.
    if room::file_size_limit() > NOTE_BYTES_MAX && session_dir::ensure(&dir).is_ok() {
        let note = dir.join(format!("{}-{:08x}.off", std::process::id(), copy()));
        let _ = fs::remove_file(&note);
        let _ = session_dir::create(&note)
            .and_then(|mut file| file.write_all(format!("{error}\n").as_bytes()));
    }
    if environment::is_verbose() {
        let line = format!("ringmark: tracing is off: {error}\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}
