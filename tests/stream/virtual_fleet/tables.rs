//! Readers of the store: one that reads it as a whole, and one that makes tables of new segments, as `compact`
//! does. A batch counts once its commit is in the log; only one writer can create the next version.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ringmark_decoder::store::{SegmentFooter, is_raw, schema_owner, schema_session};
use ringmark_decoder::{
    Chosen, Column, CoveredSession, CsvWriter, Dump, DumpBuilder, HostProgress, Part, Row, Settled,
    Value, Verification,
};
use ringmark_format::Uuid;
use ringmark_format::block::kind;
use ringmark_format::block_at::Blocks;
use ringmark_format::page::PageHeader;
use ringmark_tests::random::Random;
use zerocopy::FromBytes;

use super::Planted;

pub(crate) type Objects = BTreeMap<String, Vec<u8>>;

/// The last page of each slot in a segment: host, session, slot.
type LastPages = BTreeMap<(Vec<u8>, Uuid, u32), u64>;

/// A table of rows with its log.
#[derive(Default)]
pub(crate) struct Tables {
    log: Vec<Commit>,
    /// All files that were written, those of runs that were killed or too slow included.
    files: BTreeMap<u64, Vec<String>>,
    next_file: u64,
    /// Runs that another one was faster than, or that were killed.
    pub(crate) in_vain: u64,
}

#[derive(Clone, Default)]
struct Commit {
    file: u64,
    covered: Vec<CoveredSession>,
    done: BTreeSet<String>,
}

/// A run that has written its file, and not committed.
pub(crate) struct Batch {
    after: usize,
    commit: Commit,
}

impl Tables {
    /// Reads new segments and writes their rows; `None`: there is nothing new.
    pub(crate) fn batch(
        &mut self,
        objects: &Objects,
        random: &mut Random,
        planted: Planted,
    ) -> Option<Batch> {
        let before = self.log.last().cloned().unwrap_or_default();
        let new = objects
            .keys()
            .filter(|name| is_raw(name) && !before.done.contains(*name));
        let mut new: Vec<&String> = new.collect();
        if new.is_empty() {
            return None;
        }
        let all = new.len();
        if random.below(3) == 0 {
            new.truncate(1 + random.below(all as u64) as usize);
        }
        let settled = Settled {
            is_all: new.len() == all,
            silent_ns: if planted == Planted::OverGaps {
                u64::MAX
            } else {
                0
            },
        };
        let mut builder = DumpBuilder::new().bare();
        builder.resume(&before.covered).expect("a sound state");
        let mut met = BTreeMap::new();
        read_schema(objects, &mut builder);
        for name in &new {
            read_segment(&objects[*name], &mut builder, &mut Seen::of(planted));
            met.insert((*name).clone(), builder.take_met());
        }
        let part = Part::new(builder.finish(), before.covered, settled);
        let (rows, covered) = rows_of(part);
        let mut done = before.done;
        done.extend(whole(&met, &covered));
        let file = self.next_file;
        self.next_file += 1;
        self.files.insert(file, rows);
        Some(Batch {
            after: self.log.len(),
            commit: Commit {
                file,
                covered,
                done,
            },
        })
    }

    /// Creates the next version of the log, if no other run has.
    pub(crate) fn commit(&mut self, batch: Batch) {
        match batch.after == self.log.len() {
            true => self.log.push(batch.commit),
            false => self.in_vain += 1,
        }
    }

    /// The rows, sorted.
    pub(crate) fn rows(&self, planted: Planted) -> Vec<String> {
        let mut rows: Vec<String> = match planted {
            Planted::Glob => self.files.values().flatten().cloned().collect(),
            _ => {
                let files = self.log.iter().flat_map(|commit| &self.files[&commit.file]);
                files.cloned().collect()
            }
        };
        rows.sort();
        rows
    }
}

/// The rows of a part, but for those without an end, and what is covered then.
fn rows_of(part: Part) -> (Vec<String>, Vec<CoveredSession>) {
    let mut rows = Vec::new();
    let done = part.each_row(
        |row| {
            rows.push(line(row));
            Ok::<(), ()>(())
        },
        |_| (),
    );
    let (end, covered) = done.expect("rows");
    rows.truncate(rows.len() - end.unended as usize);
    (rows, covered)
}

/// The segments whose pages are all covered.
fn whole(met: &BTreeMap<String, LastPages>, covered: &[CoveredSession]) -> BTreeSet<String> {
    let is_covered = |((host, session, slot), page): (&(Vec<u8>, Uuid, u32), &u64)| {
        let known = covered
            .iter()
            .find(|of| of.session == *session && of.host == *host);
        known.is_some_and(|known| {
            let slot = known.slots.get(slot);
            known.is_over || slot.is_some_and(|slot| *page < slot.next_page)
        })
    };
    let whole = met.iter().filter(|(_, pages)| pages.iter().all(is_covered));
    whole.map(|(name, _)| name.clone()).collect()
}

/// The rows of all objects, sorted, and their account.
pub(crate) fn scan(objects: &Objects, planted: Planted) -> (Vec<String>, Verification) {
    let mut builder = DumpBuilder::new().bare();
    read_schema(objects, &mut builder);
    let mut seen = Seen::of(planted);
    for (_, bytes) in objects.iter().filter(|(name, _)| is_raw(name)) {
        read_segment(bytes, &mut builder, &mut seen);
    }
    builder.own(HashMap::new());
    let dump: Dump = builder.finish();
    let account = dump.verify();
    let mut rows = Vec::new();
    let done = dump.each_row(Chosen::default(), |row| {
        rows.push(line(row));
        Ok::<(), ()>(())
    });
    done.expect("rows");
    rows.sort();
    (rows, account)
}

fn read_schema(objects: &Objects, builder: &mut DumpBuilder) {
    for (name, bytes) in objects {
        let Some(session) = schema_session(name) else {
            continue;
        };
        let host = schema_owner(name).map(|(host, _)| host.as_bytes().to_vec());
        builder.own(host.into_iter().map(|host| (session, host)).collect());
        builder.read(name, &bytes[..]).expect("a sound object");
    }
}

fn read_segment(bytes: &[u8], builder: &mut DumpBuilder, seen: &mut Seen) {
    let end = bytes.len() - SegmentFooter::end_bytes(bytes).expect("a footer");
    let footer = SegmentFooter::read(&bytes[end..]).expect("a whole footer");
    let owners = footer.sessions.into_iter().map(|of| (of.session, of.host));
    builder.own(owners.collect());
    builder
        .read("a segment", &seen.first_copies(bytes)[..])
        .expect("a sound segment");
}

/// A planted fault of readers: of the copies of a page the first one counts, and not the fullest.
struct Seen(Option<BTreeSet<([u8; 16], u32, u64)>>);

impl Seen {
    fn of(planted: Planted) -> Self {
        Self((planted == Planted::DropEqual).then(BTreeSet::new))
    }

    fn first_copies(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Some(seen) = &mut self.0 else {
            return bytes.to_vec();
        };
        let mut left = Vec::new();
        for block in Blocks::new(bytes) {
            let is_page = block.header.kind == kind::PAGE;
            let page = PageHeader::read_from_prefix(block.stored())
                .ok()
                .filter(|_| is_page);
            let place =
                page.map(|(page, _)| (block.header.session, page.slot, block.header.page_number));
            if place.is_none_or(|place| seen.insert(place)) {
                left.extend_from_slice(block.bytes);
            }
        }
        left
    }
}

/// A row as a line of CSV, without the place of its losses.
fn line(row: &Row<'_, '_>) -> String {
    let mut line = Vec::new();
    CsvWriter::new(Vec::new()).write(row, &mut line);
    let mut line = String::from_utf8(line).expect("UTF-8");
    let lost = Column::all()
        .iter()
        .position(|(name, _)| *name == "lost_before");
    let cells = line
        .trim_end()
        .splitn(Column::all().len() + 1, ',')
        .enumerate();
    let kept: String = cells
        .filter(|(at, _)| Some(*at) != lost)
        .map(|(_, cell)| format!("{cell},"))
        .collect();
    row.args(|name, _, value| {
        if let (b"n", Value::U64(number)) = (name, value) {
            line = format!("n={number} {kept}");
        }
    });
    match line.starts_with("n=") {
        true => line,
        false => kept,
    }
}

/// What the hosts told about their sessions.
pub(crate) fn told(objects: &Objects) -> BTreeMap<[u8; 16], HostProgress> {
    let mut said: BTreeMap<_, HostProgress> = BTreeMap::new();
    let raw = objects.iter().filter(|(name, _)| is_raw(name));
    for block in raw.flat_map(|(_, bytes)| Blocks::new(bytes)) {
        if block.header.kind == kind::PROGRESS {
            let of = said.entry(block.header.session).or_default();
            of.take(block.stored()).expect("a sound PROGRESS");
        }
    }
    said
}

/// The number in a row.
pub(crate) fn number(row: &str) -> Option<u64> {
    row.strip_prefix("n=")?.split(' ').next()?.parse().ok()
}
