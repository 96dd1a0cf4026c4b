//! Promise: when the power goes during `record --sync`, everything that was released to the program is in the
//! dump; what was not synced yet is damaged or not there, and never shown wrong.
//!
//! The calls of a real recorder on its dump are logged with what it wrote and what it had released by then. From
//! them come the files that a disk may hold after a loss of power at any of these moments.

use std::collections::{BTreeSet, HashMap};
use std::process::Command;

use ringmark_decoder::{Dump, DumpBuilder, Output};
use ringmark_format::block::BlockHeader;
use ringmark_format::codec::write::seal_header;
use ringmark_reader::{Access, Session, SessionInfo};
use ringmark_tests::delivery::number;
use ringmark_tests::disk::{Disk, Fate, Moment, behind, image, unsafe_sectors};
use ringmark_tests::fixture::{Counters, Fixture, SOON, wait_until_mapped};
use ringmark_tests::preload_shim::{self, Call};
use ringmark_tests::random::Random;
use ringmark_tests::{Running, binary, is_long, require_tools, run, wait_until};
use zerocopy::{FromBytes, IntoBytes};

const EMIT: &str = ringmark_tests::program!("emit");

/// Slot, page number in it, number in the page, thread, number of the event.
type Shown = (u32, u64, u64, u64, u64);

/// A moment of a recording, and the pages of each slot that were released by then.
struct Released {
    moment: Moment,
    pages: [u64; 8],
}

fn moments(calls: &[Call]) -> Vec<Released> {
    let (mut moment, mut moments) = (Moment::default(), Vec::new());
    for (index, call) in calls.iter().enumerate() {
        moment.apply(call);
        // What is released before the next call was released after this one.
        let next = calls.get(index + 1).unwrap_or(call);
        moments.push(Released {
            moment: moment.clone(),
            pages: next.consumed,
        });
    }
    moments
}

/// A recording of a program that emits when the recorder has released all that there is: a batch for
/// each turn of a page.
fn recorded(options: &str) -> Vec<Call> {
    let fixture = Fixture::new("power");
    let shim = preload_shim::build(&fixture, "disk_shim");
    let ringmark = "mode=discard,ring=64K,page=4K,session=1M,control=off,keep=always";
    let counters = Counters::new(fixture.path("counters"));
    let arguments = format!("2 1200 gate=60 {}", counters.argument());
    let program = fixture.start(EMIT, ringmark, &arguments);
    let ring_file = fixture.ring_file();
    let session = Session::open(&ring_file, Access::Observe).unwrap();
    let consumed = session.header().consumed_offset.to_string();
    let (log, dump) = (fixture.path("log"), fixture.path("out/a.rmk"));
    std::fs::create_dir(fixture.path("out")).unwrap();
    let mut command: Command = fixture.command(binary::path());
    command.args(["record", "-p", &program.id().to_string(), "-o"]);
    command
        .arg(&dump)
        .arg("--sync")
        .args(options.split_ascii_whitespace());
    command.env("LD_PRELOAD", shim).env("SHIM_DUMP", &dump);
    command.env("SHIM_LOG", &log).env("SHIM_RING", &ring_file);
    command.env("SHIM_CONSUMED", consumed);
    let recorder = Running::start(&mut command).unwrap();
    wait_until_mapped(&recorder, &ring_file);
    for allowed in (60..=1200).step_by(60) {
        counters.allow(allowed);
        counters.wait_for_each(2, allowed);
        wait_until(SOON, "the release of all pages", || {
            let rings = SessionInfo::of(&session).rings;
            rings
                .iter()
                .all(|ring| ring.produced <= ring.consumed + 1)
                .then_some(())
        });
    }
    let _ = program.finish(SOON).expect_code(0);
    let _ = recorder.finish(SOON).expect_code(0);
    preload_shim::read_log(&log)
}

/// The files as one dump, and whether one was refused because it is no dump at all.
fn read<'a>(files: impl IntoIterator<Item = &'a Vec<u8>>) -> (Dump, bool) {
    let mut builder = DumpBuilder::new();
    let mut refused = false;
    for bytes in files {
        refused |= builder.read("image", bytes.as_slice()).is_err();
    }
    (builder.finish(), refused)
}

fn decode<'a>(files: impl IntoIterator<Item = &'a Vec<u8>>) -> Dump {
    read(files).0
}

/// What is shown of a dump, ring by ring in the order of time.
fn shown(dump: &Dump) -> Result<BTreeSet<Shown>, String> {
    let mut all = BTreeSet::new();
    let mut last = HashMap::new();
    for item in dump.events() {
        let Output::Event(event) = item else {
            continue;
        };
        let (Some(thread), Some(seq)) = (number(&event, "thread"), number(&event, "seq")) else {
            // Its type is not there: then only its number and bytes are shown.
            if event.name() == b"emit.tick" {
                return Err("an event without its fields".into());
            }
            continue;
        };
        let slot = event.slot().0;
        if last.insert(slot, seq).is_some_and(|before| before >= seq) {
            return Err(format!("slot {slot}: event {seq} in the wrong place"));
        }
        let page = event.page.header.generation - 1;
        all.insert((slot, page, event.seq, thread, seq));
    }
    Ok(all)
}

/// What a recording must hold to at every moment, and which of it was shown.
struct Truth {
    all: BTreeSet<Shown>,
    files: Vec<Vec<u8>>,
}

impl Truth {
    fn of(calls: &[Call]) -> Self {
        let end = moments(calls).pop().expect("a recording").moment.now;
        let dump = decode(end.files.values());
        assert!(dump.damage.is_empty() && dump.verify().complete);
        let all = shown(&dump).unwrap();
        assert_eq!(all.len(), 2400);
        let files = end.files.into_values().collect();
        Self { all, files }
    }

    /// Whether a file holds whole blocks as they were written, and nothing else. What pads a block
    /// says nothing, and no checksum covers it.
    fn is_whole(&self, bytes: &[u8]) -> bool {
        let matches = |file: &Vec<u8>| {
            let blocks = blocks(file);
            let here = blocks.iter().filter(|block| block.to <= bytes.len());
            let ends_well = here
                .clone()
                .next_back()
                .is_some_and(|last| last.padded >= bytes.len());
            ends_well
                && here
                    .clone()
                    .all(|b| file[b.from..b.to] == bytes[b.from..b.to])
        };
        bytes.is_empty() || self.files.iter().any(matches)
    }

    /// What is safe at a moment holds everything that was released by then.
    fn check_released(&self, at: &Released) -> Result<BTreeSet<Shown>, String> {
        let files: Vec<_> = at
            .moment
            .safe
            .reachable()
            .map(|(_, file)| file.to_vec())
            .collect();
        let found = shown(&decode(&files))?;
        let released = |e: &&Shown| e.1 < at.pages[e.0 as usize];
        match self
            .all
            .iter()
            .filter(released)
            .find(|e| !found.contains(e))
        {
            Some(event) => Err(format!("{event:?} is released and not on the disk")),
            None => Ok(found),
        }
    }

    /// An image shows nothing that is not true, and all that is safe.
    fn check_image(&self, image: &[Vec<u8>], safe: &BTreeSet<Shown>) -> Result<(), String> {
        let (dump, refused) = read(image);
        let found = shown(&dump)?;
        if let Some(wrong) = found.difference(&self.all).next() {
            return Err(format!("{wrong:?} was never emitted"));
        }
        if let Some(gone) = safe.difference(&found).next() {
            return Err(format!("{gone:?} was synced and is not there"));
        }
        let whole = image.iter().all(|bytes| self.is_whole(bytes));
        if !whole && !refused && dump.damage.is_empty() {
            return Err("damage is not told".into());
        }
        Ok(())
    }
}

/// Where a block begins, where its content ends, and where its padding does.
struct Place {
    from: usize,
    to: usize,
    padded: usize,
}

/// The blocks, as far as their lengths make sense.
fn blocks(bytes: &[u8]) -> Vec<Place> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Ok((header, _)) = BlockHeader::read_from_prefix(&bytes[from..]) {
        let to = from + BlockHeader::BYTES + header.stored_bytes as usize;
        let padded = to.next_multiple_of(8);
        if &header.magic != b"RMKB" || padded > bytes.len() {
            break;
        }
        found.push(Place { from, to, padded });
        from = padded;
    }
    found
}

/// Gives every block the checksums of what is in it, as if none were checked.
fn seal_again(bytes: &mut [u8]) {
    for Place { from, to, .. } in blocks(bytes) {
        let (mut header, _) = BlockHeader::read_from_prefix(&bytes[from..]).expect("a header");
        let content_at = from + BlockHeader::BYTES;
        if seal_header(&mut header, &bytes[content_at..to]).is_ok() {
            bytes[from..content_at].copy_from_slice(header.as_bytes());
        }
    }
}

/// The images of one moment: one sector at a time, all lengths, then by chance.
fn images(moment: &Moment, random: &mut Random, by_chance: usize) -> Vec<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for names in [&moment.safe.names, &moment.now.names] {
        let files: Vec<u32> = names.values().copied().collect();
        let empty = Vec::new();
        let of = |disk: &'_ Disk, file: u32| disk.files.get(&file).unwrap_or(&empty).clone();
        let torn: Vec<_> = files
            .iter()
            .filter(|f| of(&moment.safe, **f) != of(&moment.now, **f))
            .collect();
        let whole = |file: &u32| of(&moment.now, *file);
        found.push(files.iter().map(whole).collect());
        for file in torn {
            let (safe, now) = (of(&moment.safe, *file), of(&moment.now, *file));
            let mut add = |torn: Vec<u8>| {
                let pick = |f: &u32| {
                    if f == file {
                        torn.clone()
                    } else {
                        of(&moment.now, *f)
                    }
                };
                found.push(files.iter().map(pick).collect());
            };
            let sectors = unsafe_sectors(&safe, &now);
            for sector in 0..sectors {
                for bad in [Fate::Zero, Fate::Old] {
                    add(image(&safe, &now, now.len(), |s| {
                        if s == sector { bad } else { Fate::New }
                    }));
                    add(image(&safe, &now, now.len(), |s| {
                        if s == sector { Fate::New } else { bad }
                    }));
                }
                add(image(&safe, &now, behind(&safe, &now, sector), |_| {
                    Fate::New
                }));
            }
            for _ in 0..by_chance {
                let more = now.len() - safe.len() + 1;
                let bytes = safe.len() + random.below(more as u64) as usize;
                let bytes = if random.below(2) == 0 {
                    now.len()
                } else {
                    bytes
                };
                add(image(&safe, &now, bytes, |_| {
                    [Fate::New, Fate::Zero, Fate::Old][random.below(3) as usize]
                }));
            }
        }
    }
    found
}

/// Goes through all images of a recording; returns how many there were.
fn check(
    calls: &[Call],
    truth: &Truth,
    by_chance: usize,
    spoil: impl Fn(&mut Vec<u8>),
) -> Result<usize, String> {
    let mut random = Random::seeded();
    let mut count = 0;
    for (index, at) in moments(calls).iter().enumerate() {
        let place = |error| format!("after call {index}: {error}");
        let safe = truth.check_released(at).map_err(place)?;
        for mut files in images(&at.moment, &mut random, by_chance) {
            files.iter_mut().for_each(&spoil);
            truth.check_image(&files, &safe).map_err(place)?;
            count += 1;
        }
    }
    println!("{count} images of {} moments", calls.len());
    Ok(count)
}

#[test]
fn what_is_released_is_on_the_disk_and_nothing_is_shown_wrong() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let by_chance = if is_long() { 1500 } else { 100 };
    let mut count = 0;
    for options in ["", "--rotate 12K --keep 50", "--compress delta"] {
        let calls = recorded(options);
        let truth = Truth::of(&calls);
        let released = calls.last().map_or(0, |call| call.consumed.iter().sum());
        println!(
            "{options:?}: {} calls, {released} pages released",
            calls.len()
        );
        assert!(released > 10, "{released}");
        count += check(&calls, &truth, by_chance, |_| {}).unwrap();
    }
    println!("{count} images: nothing wrong, nothing lost");
    assert!(count >= 10_000, "{count}");
}

#[test]
fn planted_mistakes_are_found() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let calls = recorded("--rotate 12K --keep 50");
    let truth = Truth::of(&calls);
    // Released before it was synced: the sync comes one call later than it came.
    let late_by_one = |name: &str| {
        let mut late = calls.clone();
        late.retain(|call| call.call() != name);
        check(&late, &truth, 0, |_| {}).unwrap_err()
    };
    for name in ["fdatasync", "fsync"] {
        let error = late_by_one(name);
        assert!(error.contains("is released and not on the disk"), "{error}");
    }
    // Checksums that are not looked at.
    let error = check(&calls, &truth, 30, |bytes| seal_again(bytes)).unwrap_err();
    println!("without checksums: {error}");
}

#[test]
fn standard_output_cannot_be_synced_and_says_so() {
    let fixture = Fixture::new("stdout");
    let mut command = fixture.command(binary::path());
    let done = run(command.args(["record", "--all", "--sync", "-o", "-"]), SOON).unwrap();
    assert!(
        done.expect_code(2)
            .stderr_text()
            .contains("expected -o FILE")
    );
}
