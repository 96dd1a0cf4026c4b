//! A traced program that writes nonsense into its own ring file: `scribbler` goes on until it is
//! killed; `scribbler PID START UUID` claims once to be another process, and to hold its session.
//!
//! It emits `scribble.tick` before, and nothing after: it may not die of what it does to itself.

use std::fs::{self, File, OpenOptions};
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::Duration;

use ringmark::event;
use ringmark_format::session::{SessionHeader, SessionState};
use ringmark_format::slot::Slot;
use ringmark_test_programs::random::Random;
use zerocopy::FromBytes;

/// The ring file of this process, for writing.
fn own_file() -> File {
    let dir = std::env::var_os("RINGMARK_DIR").expect("RINGMARK_DIR");
    let stem = format!("{}-", std::process::id());
    let mut entries = fs::read_dir(dir).expect("the session directory").flatten();
    let is_own = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with(&stem) && name.ends_with(".ring")
    };
    let found = entries.find(is_own).expect("a ring file");
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .open(found.path())
        .expect("our own file")
}

fn header(file: &File) -> SessionHeader {
    let mut bytes = [0; SessionHeader::BYTES];
    file.read_exact_at(&mut bytes, 0).expect("a header");
    SessionHeader::read_from_bytes(&bytes).expect("a whole header")
}

/// A word as attackers choose it.
fn word(random: &mut Random, header: &SessionHeader) -> u64 {
    match random.below(8) {
        0 => random.below(u64::MAX),
        1 => u64::MAX - random.below(3),
        2 => random.below(40),
        3 => 1 << random.below(64),
        // A place in the file, a geometry, a length of a record.
        4 => random.below(header.file_bytes) & !4095,
        5 => (4096 << random.below(9)) | (random.below(300) << 32),
        6 => random.below(1 << 32) | (random.below(1 << 16) << 32),
        _ => random.below(header.file_bytes),
    }
}

/// Where a word matters: header, state with lengths of the schema, slots, consumed, mailbox, pages
/// with their records, and anywhere.
fn place(random: &mut Random, header: &SessionHeader) -> u64 {
    let slots = u64::from(header.slots).min(8);
    let pages = header.enabled_offset + header.enabled_bytes;
    let regions = [
        (0, SessionHeader::BYTES as u64),
        (header.state_offset, SessionState::BYTES as u64),
        (header.directory_offset, slots * Slot::BYTES as u64),
        (header.directory_offset, slots * Slot::BYTES as u64),
        (header.consumed_offset, slots * 8),
        (header.mailbox_offset, header.mailbox_bytes.max(8)),
        (pages, 256 << 10),
        (0, header.file_bytes - 8),
    ];
    let (from, bytes) = regions[random.below(regions.len() as u64) as usize];
    let at = from + (random.below(bytes) & !7);
    // Page headers and the first records lie at the starts of pages.
    if from == pages && random.below(2) == 0 {
        return (at & !4095) | (random.below(256) & !7);
    }
    at.min(header.file_bytes - 8)
}

fn scribble(file: &File) -> ! {
    let header = header(file);
    let mut good = vec![0; header.file_bytes as usize];
    file.read_exact_at(&mut good, 0).expect("the whole file");
    let mut random = Random::seeded();
    loop {
        let places: Vec<_> = (0..=random.below(6))
            .map(|_| place(&mut random, &header))
            .collect();
        for at in &places {
            let word = word(&mut random, &header).to_le_bytes();
            file.write_all_at(&word, *at).expect("a write");
        }
        if random.below(4) == 0 {
            thread::sleep(Duration::from_micros(random.below(3000)));
        }
        // Back, so that readers come far.
        for at in places {
            let back = &good[at as usize..at as usize + 8];
            file.write_all_at(back, at).expect("a write");
        }
    }
}

/// Writes another process's identity into the header.
fn claim(file: &File, pid: u32, start_time: u64, uuid: u128) {
    let uuid_at = offset_of!(SessionHeader, session) as u64;
    file.write_all_at(&uuid.to_be_bytes(), uuid_at)
        .expect("a write");
    let pid_at = offset_of!(SessionHeader, pid) as u64;
    file.write_all_at(&pid.to_le_bytes(), pid_at)
        .expect("a write");
    let start_at = offset_of!(SessionHeader, start_time) as u64;
    file.write_all_at(&start_time.to_le_bytes(), start_at)
        .expect("a write");
}

fn main() {
    ringmark::start_from_env();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..2000_u64).for_each(|seq| event!("scribble.tick", scribbled = seq)));
        }
    });
    event!("scribble.tick", scribbled = 0_u64);
    // Never closed: that would give the lock back that says "alive".
    let file = Box::leak(Box::new(own_file()));
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [pid, start_time, uuid] = arguments.as_slice() {
        let uuid = u128::from_str_radix(&uuid.replace('-', ""), 16).expect("a uuid");
        claim(
            file,
            pid.parse().expect("a pid"),
            start_time.parse().expect("a time"),
            uuid,
        );
        println!("claimed");
        loop {
            thread::sleep(Duration::from_secs(1));
        }
    }
    scribble(file)
}
