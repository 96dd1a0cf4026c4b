//! Promise: a process that writes nonsense into a ring file does little harm: a hostile consumer costs the
//! program events and nothing else; a hostile producer, or a file that was cut or punched, never
//! makes the reader crash, hang or take memory without end.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ringmark_decoder::{DumpBuilder, JsonWriter};
use ringmark_reader::{
    Access, Destination, Dump, Durability, ReaderError, RecordOptions, Recorder, Selection, Session,
};
use ringmark_tests::fixture::{Counters, Fixture, SOON};
use ringmark_tests::wait::thread_time;
use ringmark_tests::{is_long, require_tools, run};

const EMIT: &str = ringmark_tests::program!("emit");

/// A generator of numbers, good enough to hit everything and the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A word as attackers choose it: large, small, or off by one.
    fn word(&mut self) -> u64 {
        match self.below(5) {
            0 => self.next(),
            1 => u64::MAX - self.below(3),
            2 => self.below(40),
            3 => 1 << self.below(64),
            _ => self.next() as u32 as u64,
        }
    }
}

#[test]
fn a_hostile_consumer_costs_events_and_nothing_else() {
    let fixture = Fixture::new("consumer");
    let ringmark = "mode=discard,ring=32K,page=4K,session=4M,keep=always";
    let counters = Counters::new(fixture.path("counters"));
    let arguments = format!("4 1000000000 burst=1000 pause=500 {}", counters.argument());
    let program = fixture.start(EMIT, ringmark, &arguments);
    let ring_file = fixture.ring_file();
    counters.wait_for(4);
    let header = *Session::open(&ring_file, Access::Observe).unwrap().header();
    let file = OpenOptions::new().write(true).open(&ring_file).unwrap();
    let mut numbers = Numbers(42);
    for _ in 0..100_000 {
        let slot = numbers.below(8);
        let word = numbers.word().to_le_bytes();
        file.write_all_at(&word, header.consumed_offset + 8 * slot)
            .unwrap();
    }
    counters.stop();
    let done = program.finish(3 * SOON).expect_code(0);
    assert_eq!(done.stderr_text(), "");
    let _ = record_and_decode(&ring_file, &fixture.path("a.rmk"));
}

/// Reads a ring file out and decodes what came, whatever it holds. The error is the reader's.
fn record_and_decode(ring_file: &Path, dump: &Path) -> Result<usize, ReaderError> {
    let output = Dump::create(&Destination::File(dump.to_owned()), Durability::System)?;
    let options = RecordOptions {
        remove_drained: false,
        ..RecordOptions::default()
    };
    Recorder::new(Selection::Path(ring_file.to_owned()), output, options)?.finish()?;
    let mut builder = DumpBuilder::new();
    let _ = builder.read("dump", File::open(dump).unwrap());
    let decoded = builder.finish();
    let (mut writer, mut text) = (JsonWriter::new(), Vec::new());
    let mut items = 0;
    for item in decoded.events() {
        writer.write(&item, &mut text);
        text.clear();
        items += 1;
    }
    Ok(items)
}

/// A dead session of a few rings and pages.
fn dead_session(fixture: &Fixture, mode: &str) -> PathBuf {
    let ringmark = format!("mode={mode},ring=16K,page=4K,session=256K,warm=1,keep=always");
    let _ = fixture
        .start(EMIT, &ringmark, "3 700")
        .finish(SOON)
        .expect_code(0);
    fixture.ring_file()
}

/// Places where a word matters: anywhere in the regions in front of the rings, or in page headers
/// and records.
fn place(numbers: &mut Numbers, header: &ringmark_format::session::SessionHeader) -> u64 {
    let regions = [
        (0, 320),
        (header.state_offset, 512),
        (header.consumed_offset, 64),
        (header.directory_offset, 1024),
        (header.directory_offset, 1024),
        (0, header.file_bytes - 8),
    ];
    let (from, bytes) = regions[numbers.below(regions.len() as u64) as usize];
    from + (numbers.below(bytes) & !7)
}

#[test]
fn damaged_ring_files_end_in_events_or_an_error() {
    let images = if is_long() { 20_000 } else { 1_500 };
    for mode in ["discard", "overwrite"] {
        let fixture = Fixture::new("image");
        let ring_file = dead_session(&fixture, mode);
        let good = fs::read(&ring_file).unwrap();
        let header = *Session::open(&ring_file, Access::Observe).unwrap().header();
        let (image, dump) = (fixture.path("image.ring"), fixture.path("a.rmk"));
        let mut numbers = Numbers(7);
        let mut readable = 0;
        let (control, mut longest) = (time_of(&ring_file, &dump).0, Duration::ZERO);
        for number in 0..images {
            fs::write(&image, &good).unwrap();
            let file = OpenOptions::new().write(true).open(&image).unwrap();
            for _ in 0..=numbers.below(6) {
                let at = place(&mut numbers, &header);
                file.write_all_at(&numbers.word().to_le_bytes(), at)
                    .unwrap();
            }
            let (took, ended) = time_of(&image, &dump);
            longest = longest.max(took);
            let ended = ended.unwrap_or_else(|_| panic!("{mode}: image {number} panics"));
            readable += u64::from(ended.is_ok());
            let bytes = fs::metadata(&dump).map_or(0, |m| m.len());
            assert!(
                bytes < 16 << 20,
                "{mode}: image {number} became {bytes} bytes"
            );
        }
        println!(
            "{mode}: {readable} of {images} readable, longest {longest:?}, good one {control:?}"
        );
        assert!(readable > images / 4 && readable < images);
        // No damage makes a file much dearer than it is.
        assert!(
            longest < 500 * control,
            "{longest:?}, the good one {control:?}"
        );
    }
}

/// What comes of an image, and the processor time that this takes.
fn time_of(image: &Path, dump: &Path) -> (Duration, thread::Result<Result<usize, ReaderError>>) {
    let begun = thread_time();
    let ended = catch_unwind(|| record_and_decode(image, dump));
    (thread_time() - begun, ended)
}

#[test]
fn a_file_that_changes_while_it_is_read() {
    let fixture = Fixture::new("changing");
    let ring_file = dead_session(&fixture, "overwrite");
    let header = *Session::open(&ring_file, Access::Observe).unwrap().header();
    let good = fs::read(&ring_file).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let file = OpenOptions::new().write(true).open(&ring_file).unwrap();
            let mut numbers = Numbers(99);
            while !stop.load(Ordering::Relaxed) {
                let at = place(&mut numbers, &header);
                let word = numbers.word().to_le_bytes();
                file.write_all_at(&word, at).unwrap();
                let at = at as usize;
                let back = good.get(at..at + 8).unwrap_or(&[]);
                file.write_all_at(back, at as u64).unwrap();
            }
        });
        let end = Instant::now() + Duration::from_secs(if is_long() { 60 } else { 3 });
        let mut reads = 0;
        while Instant::now() < end {
            let dump = fixture.path("a.rmk");
            let read = catch_unwind(|| record_and_decode(&ring_file, &dump));
            reads += 1;
            if read.is_err() {
                stop.store(true, Ordering::Relaxed);
                panic!("read {reads} panics");
            }
        }
        stop.store(true, Ordering::Relaxed);
        println!("{reads} reads");
    });
}

#[test]
fn a_cut_file_is_an_error_and_a_punched_one_is_damage() {
    if !require_tools(&["fallocate"]) {
        return;
    }
    let fixture = Fixture::new("cut");
    let ring_file = dead_session(&fixture, "discard");
    let dump = fixture.path("a.rmk");
    let bytes = fs::metadata(&ring_file).unwrap().len();
    let rings = bytes - (256 << 10);
    let mut punch = Command::new("fallocate");
    punch.args([
        "--punch-hole",
        "--offset",
        &rings.to_string(),
        "--length",
        "8192",
    ]);
    let _ = run(punch.arg(&ring_file), SOON).unwrap().expect_code(0);
    let items = record_and_decode(&ring_file, &dump).unwrap();
    assert!(items > 100, "{items}");
    for left in [0, 100, 4096, 8191, bytes / 2, bytes - 1] {
        let file = OpenOptions::new().write(true).open(&ring_file).unwrap();
        file.set_len(bytes).unwrap();
        file.set_len(left).unwrap();
        let error = record_and_decode(&ring_file, &dump)
            .unwrap_err()
            .to_string();
        assert!(error.contains(&*ring_file.to_string_lossy()), "{error}");
    }
}

#[test]
fn a_program_whose_file_is_deleted_or_punched_goes_on() {
    if !require_tools(&["fallocate"]) {
        return;
    }
    for is_punched in [false, true] {
        let fixture = Fixture::new("gone");
        let ringmark = "mode=overwrite,ring=64K,page=4K,session=4M";
        let counters = Counters::new(fixture.path("counters"));
        let arguments = format!("3 1000000000 burst=1000 pause=1000 {}", counters.argument());
        let program = fixture.start(EMIT, ringmark, &arguments);
        let ring_file = fixture.ring_file();
        counters.wait_for(3);
        let bytes = fs::metadata(&ring_file).unwrap().len().to_string();
        if is_punched {
            for _ in 0..20 {
                let mut punch = Command::new("fallocate");
                punch.args(["--punch-hole", "--offset", "0", "--length", &bytes]);
                let _ = run(punch.arg(&ring_file), SOON).unwrap().expect_code(0);
            }
        } else {
            fs::remove_file(&ring_file).unwrap();
        }
        // Several times around its rings.
        let sofar = counters.read(3).into_iter().max().unwrap();
        counters.wait_for_each(3, sofar + 20_000);
        counters.stop();
        let done = program.finish(SOON).expect_code(0);
        assert_eq!(
            (done.stdout_text(), done.stderr_text()),
            (String::new(), String::new())
        );
    }
}
