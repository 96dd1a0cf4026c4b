//! Promise: a trace that is read in parts has the rows that it has as a whole, each once. Spans and calls
//! go over any number of parts; pages that come late or twice change nothing.

use crate::common;

use std::collections::BTreeMap;
use std::fs::File;

use common::SESSION;
use common::random_trace::counters_at;
use common::random_trace::{RandomTrace, Step};
use proptest::prelude::*;
use ringmark_decoder::{
    Chosen, Column, CoveredSession, CsvWriter, Damage, Dump, DumpBuilder, Fault, Group, Groups,
    Part, PartEnd, Row, Settled,
};
use ringmark_format::block::kind;
use ringmark_format::block_at::Blocks;
use ringmark_format::codec::write;
use ringmark_format::page::PageHeader;
use ringmark_format::progress::{GoneRange, Progress, ProgressSlot, cause};
use ringmark_format::session::Mode;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// The trace in pieces: what stands before the pages, each page, what stands after them.
struct Pieces {
    front: Vec<u8>,
    /// Slot and number of each, and its block.
    pages: Vec<(u32, u64, Vec<u8>)>,
    headers: Vec<PageHeader>,
    end: Vec<u8>,
}

fn pieces(trace: &[u8]) -> Pieces {
    let mut pieces = Pieces {
        front: Vec::new(),
        pages: Vec::new(),
        headers: Vec::new(),
        end: Vec::new(),
    };
    let mut at = 0;
    for block in Blocks::new(trace) {
        let bytes = &trace[at..at + block.header.whole_bytes()];
        at += bytes.len();
        match block.header.kind {
            kind::PAGE => {
                let content = block.content().expect("a sound page");
                let (header, _) = PageHeader::read_from_prefix(content).expect("a header");
                pieces.headers.push(header);
                let place = (header.slot, block.header.page_number);
                pieces.pages.push((place.0, place.1, bytes.to_vec()));
            }
            _ if pieces.pages.is_empty() => pieces.front.extend_from_slice(bytes),
            _ => pieces.end.extend_from_slice(bytes),
        }
    }
    pieces
}

impl Pieces {
    /// What the host says of pages that are not there.
    fn progress(&self) -> Vec<u8> {
        let mut last: BTreeMap<u32, u64> = BTreeMap::new();
        let mut ranges = Vec::new();
        let mut numbers: Vec<_> = self.pages.iter().map(|page| (page.0, page.1)).collect();
        numbers.sort_unstable();
        for (slot, number) in numbers {
            let next = last.insert(slot, number + 1).unwrap_or(0);
            if number > next {
                ranges.push(GoneRange {
                    slot,
                    cause: cause::OVERWRITTEN,
                    from: next,
                    to: number,
                    events: 0,
                });
            }
        }
        let head = Progress {
            epoch: 1,
            mono_ns: 5,
            real_ns: 5,
            slots: last.len() as u32,
            ranges: ranges.len() as u32,
            ..Progress::new_zeroed()
        };
        let mut content = head.as_bytes().to_vec();
        for slot in last.keys() {
            let slot = ProgressSlot {
                slot: *slot,
                ..ProgressSlot::new_zeroed()
            };
            content.extend_from_slice(slot.as_bytes());
        }
        ranges
            .iter()
            .for_each(|range| content.extend_from_slice(range.as_bytes()));
        let mut block = Vec::new();
        let header = write::header(kind::PROGRESS, SESSION);
        write::block(&mut block, header, &content).expect("a block");
        block
    }
}

/// A row as a line of CSV, without the place of its losses.
fn line(row: &Row<'_, '_>) -> String {
    let mut line = Vec::new();
    CsvWriter::new(Vec::new()).write(row, &mut line);
    let line = String::from_utf8(line).expect("UTF-8");
    let lost = Column::all()
        .iter()
        .position(|(name, _)| *name == "lost_before");
    let cells = line.trim_end().splitn(Column::all().len() + 1, ',');
    let cells = cells.enumerate().filter(|(at, _)| Some(*at) != lost);
    cells.map(|(_, cell)| format!("{cell},")).collect()
}

/// Rows, sorted, and how many events were lost.
fn whole(inputs: &[Vec<u8>]) -> (Vec<String>, u64) {
    let mut builder = DumpBuilder::new().bare();
    for input in inputs {
        builder.read("whole", &input[..]).expect("a trace");
    }
    let (mut rows, mut lost) = (Vec::new(), 0);
    let dump = builder.finish();
    let done = dump.each_row(Chosen::default(), |row| {
        rows.push(line(row));
        lost += row.lost_before;
        Ok::<(), ()>(())
    });
    lost += done.expect("rows").lost_after;
    rows.sort();
    (rows, lost)
}

/// The same, part by part; calls and spans without an end are left out. Returns what is covered, too.
fn in_parts(parts: &[Vec<u8>]) -> (Vec<String>, u64, Vec<CoveredSession>) {
    first_parts(parts, parts.len())
}

/// The same of some of the parts.
fn first_parts(parts: &[Vec<u8>], count: usize) -> (Vec<String>, u64, Vec<CoveredSession>) {
    let (mut rows, mut lost) = (Vec::new(), 0);
    let (mut covered, mut before_rows) = (Vec::new(), 0);
    for (number, part) in parts[..count].iter().enumerate() {
        let settled = Settled {
            is_all: number + 1 == parts.len(),
            silent_ns: 0,
        };
        let mut builder = DumpBuilder::new().bare();
        builder.resume(&covered).expect("a sound state");
        builder.read("part", &part[..]).expect("a trace");
        let part = Part::new(builder.finish(), covered, settled);
        let mut unended = 0;
        let done = part.each_row(
            |row| {
                let is_open = row.dur_ns.is_none() && !row.is_truncated && row.depth.is_some();
                unended += u64::from(is_open);
                before_rows += row.lost_before;
                rows.push(line(row));
                Ok::<(), ()>(())
            },
            |loss| lost += loss.events,
        );
        let (end, now): (PartEnd, _) = done.expect("rows");
        assert!(end.unended <= end.rows && before_rows <= lost);
        let without_end = rows.len() - end.unended as usize;
        rows.truncate(without_end);
        covered = now;
    }
    rows.sort();
    (rows, lost, covered)
}

/// Rows of a trace in a file of its own after many others, sorted, and what could not be read again. `is_named`: its path
/// leads to another file by then.
fn in_a_file(trace: &[u8], is_named: bool) -> (Vec<String>, Vec<Damage>) {
    let front = pieces(trace).front;
    let mut builder = DumpBuilder::new().bare();
    let path =
        std::env::temp_dir().join(format!("ringmark-parts-{}-{is_named}", std::process::id()));
    let mut read = |bytes: &[u8], is_named: bool| {
        std::fs::write(&path, bytes).expect("a file");
        let file = File::open(&path).expect("a file");
        let remove = || std::fs::remove_file(&path).expect("a file");
        (!is_named).then(remove);
        builder.read_file(&path, file).expect("a trace");
        is_named.then(remove);
    };
    (0..300).for_each(|_| read(&front, false));
    read(trace, is_named);
    let part = Part::new(
        builder.finish(),
        Vec::new(),
        Settled {
            is_all: true,
            silent_ns: 0,
        },
    );
    let mut rows = Vec::new();
    let done = part.each_row(
        |row| {
            rows.push(line(row));
            Ok::<(), ()>(())
        },
        |_| (),
    );
    let (end, _) = done.expect("rows");
    // The last rows are of what did not end.
    rows.truncate(rows.len() - end.unended as usize);
    rows.sort();
    (rows, end.gone)
}

#[test]
fn what_cannot_be_read_again_is_told_and_files_without_a_name_can_be() {
    let steps: Vec<Step> = (0..400)
        .map(|n| (n as u8 % 3, 10, n as u8 % 14, n as u8 % 7))
        .collect();
    let trace = RandomTrace::new(Mode::Overwrite, 3, 0).finish(&steps, true);
    let (rows, gone) = in_a_file(&trace, false);
    assert_eq!(
        (rows, gone),
        (whole(std::slice::from_ref(&trace)).0, Vec::new())
    );
    let (rows, gone) = in_a_file(&trace, true);
    assert_eq!(rows, [""; 0]);
    assert!(
        matches!(
            &gone[..],
            [Damage {
                fault: Fault::Gone(_),
                ..
            }]
        ),
        "{gone:?}"
    );
}

#[test]
fn pages_of_a_host_that_was_given_up_are_late_unless_they_were_read() {
    let steps: Vec<Step> = (0..400)
        .map(|n| (n as u8 % 3, 10, n as u8 % 14, n as u8 % 7))
        .collect();
    let trace = RandomTrace::new(Mode::Overwrite, 3, 0).finish(&steps, true);
    let pieces = pieces(&trace);
    let (first, rest) = pieces.pages.split_at(pieces.pages.len() / 2);
    let read = |covered: &[CoveredSession], pages: &[(u32, u64, Vec<u8>)]| {
        let mut builder = DumpBuilder::new().bare();
        builder.resume(covered).expect("a sound state");
        let pages = pages.iter().flat_map(|page| &page.2).copied();
        let part = [pieces.front.clone(), pieces.progress(), pages.collect()].concat();
        builder.read("part", &part[..]).expect("a trace");
        builder
    };
    let settled = Settled {
        is_all: true,
        silent_ns: u64::MAX,
    };
    let part = Part::new(read(&[], first).finish(), Vec::new(), settled);
    let done = part.each_row(|_| Ok::<(), ()>(()), |_| ());
    let (_, covered) = done.expect("rows");
    assert!(covered[0].is_given_up());
    let late = |pages| -> u64 { read(&covered, pages).take_late().into_values().sum() };
    assert_eq!((late(first), late(rest)), (0, rest.len() as u64));
}

#[test]
fn rows_wait_for_the_schema_of_their_session() {
    let steps: Vec<Step> = (0..400)
        .map(|n| (n as u8 % 3, 10, n as u8 % 14, n as u8 % 7))
        .collect();
    let trace = RandomTrace::new(Mode::Overwrite, 3, 0).finish(&steps, true);
    let (mut without, mut at) = (Vec::new(), 0);
    for block in Blocks::new(&trace) {
        let bytes = &trace[at..at + block.header.whole_bytes()];
        at += bytes.len();
        if block.header.kind != kind::SCHEMA {
            without.extend_from_slice(bytes);
        }
    }
    let read = |covered: Vec<CoveredSession>, trace: &[u8], silent_ns: u64| {
        let mut builder = DumpBuilder::new().bare();
        builder.resume(&covered).expect("a sound state");
        builder.read("part", trace).expect("a trace");
        builder.need_schema(SESSION, 8);
        let dump = builder.finish();
        let lacks = dump.sessions[0].schema_lacks;
        let settled = Settled {
            is_all: true,
            silent_ns,
        };
        let mut rows = Vec::new();
        let done = Part::new(dump, covered, settled).each_row(
            |row| {
                rows.push(line(row));
                Ok::<(), ()>(())
            },
            |_| (),
        );
        let (end, covered) = done.expect("rows");
        rows.truncate(rows.len() - end.unended as usize);
        rows.sort();
        (rows, lacks, covered)
    };
    let (rows, lacks, covered) = read(Vec::new(), &without, 0);
    assert_eq!((rows.len(), lacks), (0, 8));
    assert!(covered[0].slots.values().all(|slot| slot.next_page == 0) && !covered[0].is_over);
    let (rows, lacks, covered) = read(covered, &trace, 0);
    assert_eq!((rows, lacks), (whole(std::slice::from_ref(&trace)).0, 0));
    assert!(covered[0].is_over);
}

/// The rows that end in an input and in no part before, and how many events are lost before them.
fn rows_after(input: &[u8], covered: &[CoveredSession]) -> (Vec<String>, u64) {
    let mut builder = DumpBuilder::new().bare();
    builder.resume(covered).expect("a sound state");
    builder.read("rest", input).expect("a trace");
    let (mut rows, mut lost) = (Vec::new(), 0);
    let dump = builder.finish();
    let done = dump.rows_after(covered, Chosen::default(), |row| {
        rows.push(line(row));
        lost += row.lost_before;
        Ok::<(), ()>(())
    });
    lost += done.expect("rows").lost_after;
    (rows, lost)
}

/// Groups by these columns, sorted: those of [`Groups`], and those that the cells of single rows make.
fn groups(dump: &Dump, columns: &[&str]) -> [Vec<String>; 2] {
    let all: Vec<_> = Column::all().iter().map(|(name, _)| *name).collect();
    let places = columns
        .iter()
        .map(|name| all.iter().position(|of| of == name));
    let places: Vec<_> = places.map(|place| place.expect("a column")).collect();
    let mut summed = Groups::new(columns.iter().map(|name| Column::named(name)).collect());
    let done = dump.each_row_by_pages(Chosen::default(), |row| {
        summed.add(row);
        Ok::<(), ()>(())
    });
    done.expect("rows");
    let mut alone: BTreeMap<String, Group> = BTreeMap::new();
    let done = dump.each_row(Chosen::default(), |row| {
        let mut line = Vec::new();
        CsvWriter::new(Vec::new()).write(row, &mut line);
        let line = String::from_utf8(line).expect("UTF-8");
        let cells: Vec<_> = line.split(',').collect();
        let key = places.iter().map(|at| format!("{},", cells[*at]));
        let group = alone.entry(key.collect()).or_default();
        group.rows += 1;
        row.dur_ns
            .into_iter()
            .for_each(|ns| group.durations.add(ns));
        Ok::<(), ()>(())
    });
    done.expect("rows");
    let line = |key: &[u8], group: &Group| {
        let mut line = key.to_vec();
        group.sums(&mut line);
        String::from_utf8(line).expect("UTF-8")
    };
    let summed = summed.sorted(|_| 0);
    let summed = summed.iter().map(|(key, group)| line(key, group));
    // Those without a value come last.
    let mut alone: Vec<_> = alone.iter().collect();
    alone.sort_by_key(|(key, _)| key.bytes().all(|byte| byte == b','));
    let alone = alone
        .into_iter()
        .map(|(key, group)| line(key.as_bytes(), group));
    [summed.collect(), alone.collect()]
}

/// Sorted rows that only one of them has.
fn differing<'r>(one: &'r [String], other: &'r [String]) -> (Vec<&'r str>, Vec<&'r str>) {
    let count = |rows: &'r [String]| {
        let mut counts = BTreeMap::new();
        rows.iter()
            .for_each(|row| *counts.entry(row.as_str()).or_insert(0) += 1);
        counts
    };
    let (one, other) = (count(one), count(other));
    let only = |of: &BTreeMap<&'r str, i32>, not: &BTreeMap<&'r str, i32>| {
        let more = of
            .iter()
            .filter(|(row, count)| not.get(*row) != Some(*count));
        more.map(|(row, _)| *row).collect()
    };
    (only(&one, &other), only(&other, &one))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0_u8..3, 0_u16..200, 0_u8..14, 0_u8..8), 1..1500)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// In whichever order threads come, and whether their columns are texts or not.
    #[test]
    fn groups_are_those_of_the_rows(steps in steps()) {
        let trace = RandomTrace::new(Mode::Overwrite, 3, 0).finish(&steps, true);
        let mut builder = DumpBuilder::new().bare();
        builder.read("whole", &trace[..]).expect("a trace");
        let dump = builder.finish();
        for columns in [&["name"][..], &["host", "thread", "name"], &["name", "tid"]] {
            let [summed, alone] = groups(&dump, columns);
            prop_assert_eq!(summed, alone);
        }
    }

    /// Pages of a slot come in order, those of other slots earlier or later; some come twice.
    #[test]
    fn parts_have_the_rows_of_the_whole(
        steps in steps(),
        sizes in prop::collection::vec(1_usize..6, 1..40),
        delays in prop::collection::vec(0_usize..6, 3),
        again in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        has_progress in any::<bool>(),
    ) {
        let trace = RandomTrace::new(Mode::Overwrite, 3, 0).finish(&steps, true);
        let pieces = pieces(&trace);
        let progress = if has_progress { pieces.progress() } else { Vec::new() };
        let whole = whole(&[[trace, progress.clone()].concat()]);
        let mut pages = pieces.pages.clone();
        // A slot that is behind the others.
        let mut order: Vec<_> = (0..pages.len()).collect();
        order.sort_by_key(|at| at + 3 * delays[pages[*at].0 as usize]);
        pages = order.iter().map(|at| pages[*at].clone()).collect();
        let mut parts = Vec::new();
        let (mut at, mut sizes) = (0, sizes.iter().cycle());
        while at < pages.len() {
            let end = (at + sizes.next().expect("endless")).min(pages.len());
            let mut part = [pieces.front.clone(), progress.clone()].concat();
            pages[at..end].iter().for_each(|page| part.extend_from_slice(&page.2));
            let tick = pieces.headers[order[end - 1]].tick_base;
            part.extend(counters_at(SESSION, &pieces.headers, tick));
            parts.push(part);
            at = end;
        }
        for again in again {
            let (page, part) = (again.get(&pages), again.index(parts.len()));
            parts[part].extend_from_slice(&page.2);
        }
        let mut last = pieces.front.clone();
        pages.iter().for_each(|page| last.extend_from_slice(&page.2));
        last.extend_from_slice(&pieces.end);
        parts.push(last);
        // Some parts, and the rest at once.
        let (mut some, _, covered) = first_parts(&parts, parts.len() / 2);
        some.extend(rows_after(parts.last().expect("one"), &covered).0);
        let (more, fewer) = differing(&some, &whole.0);
        prop_assert!(more.is_empty() && fewer.is_empty(), "{more:#?} {fewer:#?}");
        let (rows, lost, covered) = in_parts(&parts);
        prop_assert!(covered.iter().all(|session| session.is_over));
        let (more, fewer) = differing(&rows, &whole.0);
        prop_assert!(more.is_empty() && fewer.is_empty(), "{more:#?} {fewer:#?}");
        prop_assert_eq!(lost, whole.1);
    }
}
