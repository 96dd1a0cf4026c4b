//! Pages that stay in their file show what pages in memory show.

use crate::common;

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use common::random_trace::{DONE, RandomTrace, more_schema};
use common::{PageOf, SESSION, end, json, read, schema, start, text};
use proptest::prelude::*;
use ringmark_decoder::{Counted, Dump, DumpBuilder, Event, Output};
use ringmark_format::block::codec;
use ringmark_format::codec::write;
use ringmark_format::session::Mode;

/// A file that is removed with this value.
pub(crate) struct Stored(pub(crate) PathBuf);

impl Stored {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("ringmark-stored-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, bytes).unwrap();
        Self(path)
    }

    pub(crate) fn read_into(&self, builder: &mut DumpBuilder) {
        let file = File::open(&self.0).unwrap();
        let _ = builder.read_file(&self.0, file);
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Everything that is shown of a dump. Damage is at other places in other files.
fn shown(dump: &Dump) -> String {
    let mut found = dump.verify();
    let damage = found.damage.len();
    found.damage.clear();
    let figures = dump.figures(Counted {
        slowest: 3,
        ..Counted::default()
    });
    let slowest = figures.slowest.spans().map(|span| span.total_ns);
    let open = dump.open_spans().into_iter();
    let open = open.map(|thread| (thread.tid, thread.spans.len(), thread.deeper));
    format!(
        "{}{}{found:?} {damage} {:?} {:?} {:?} {:?}",
        text(dump),
        json(dump),
        figures.spans,
        figures.functions,
        slowest.collect::<Vec<_>>(),
        open.collect::<Vec<_>>(),
    )
}

/// Reads parts one after the other, each from memory or from a file.
fn read_all(parts: &[&[u8]], is_stored: bool) -> Dump {
    let mut builder = DumpBuilder::new();
    let stored: Vec<_> = parts.iter().map(|part| Stored::new(part)).collect();
    for (part, stored) in parts.iter().zip(&stored) {
        match is_stored {
            true => stored.read_into(&mut builder),
            false => drop(builder.read("memory", *part)),
        }
    }
    let dump = builder.finish();
    // The files are open, so their names may go.
    drop(stored);
    dump
}

/// The same blocks in containers.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write::container(&mut out, SESSION, codec::LZ4, bytes).unwrap();
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn files_show_what_memory_shows(
        steps in prop::collection::vec((0..3_u8, 0..90_u16, 0..14_u8, 0..8_u8), 1..400),
        scale in prop_oneof![Just(0), Just(20)],
        damaged in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        cut in any::<prop::sample::Index>(),
        overwrites: bool,
    ) {
        let mode = if overwrites { Mode::Overwrite } else { Mode::Discard };
        let mut whole = RandomTrace::new(mode, 3, scale).finish(&steps, true);
        let plain = shown(&read(&whole).unwrap());
        prop_assert_eq!(&shown(&read_all(&[&packed(&whole)], true)), &plain);
        // Pages that come twice, the first time perhaps shorter.
        let shorter = RandomTrace::new(mode, 3, scale).finish(&steps[..cut.index(steps.len())], false);
        let parts: [&[u8]; 3] = [&shorter, &whole, &packed(&whole)];
        prop_assert_eq!(shown(&read_all(&parts, true)), shown(&read_all(&parts, false)));
        if let Some((at, byte)) = damaged {
            let at = at.index(whole.len());
            whole[at] = byte;
        }
        prop_assert_eq!(shown(&read_all(&[&whole], true)), shown(&read_all(&[&whole], false)));
    }

    #[test]
    fn where_a_page_ends_changes_no_span(
        records in prop::collection::vec((0..9_u64, prop::option::of(0..400_u64)), 1..900),
    ) {
        let of_pages = |page_bytes| {
            let dump = read(&nested(&records, page_bytes)).unwrap();
            let place = |event: Event<'_>| (event.seq, event.span, event.parent);
            let places = dump.events().filter_map(|item| match item {
                Output::Event(event) => Some(place(event)),
                Output::Lost(_) => None,
            });
            places.collect::<Vec<_>>()
        };
        prop_assert_eq!(of_pages(4096), of_pages(1 << 16));
    }
}

/// Events and finished spans of one ring: each record comes some ticks after the one before.
fn nested(records: &[(u64, Option<u64>)], page_bytes: u32) -> Vec<u8> {
    let mut out = start(Mode::Discard);
    write::schema(&mut out, SESSION, schema().len() as u64, &more_schema()).unwrap();
    let new = |number, first, tick| {
        let mut page = PageOf::new(number, first);
        page.page_bytes = page_bytes;
        page.header.tick_base = tick;
        page
    };
    let (mut tick, mut number) = (10_000, 0);
    let mut page = new(0, 0, tick);
    for (place, (after, took)) in records.iter().enumerate() {
        tick += after;
        if page.left() < 64 {
            page.close().write(true, &mut out);
            number += 1;
            page = new(number, place as u64, tick);
        }
        let ticks = (tick - page.header.tick_base) as u32;
        match took {
            Some(took) => page.event(ticks, DONE, &[*took]),
            None => page.event(ticks, 16, &[place as u64]),
        };
    }
    page.close().write(true, &mut out);
    end(records.len() as u64, &mut out);
    out
}

#[test]
fn a_file_that_is_cut_short_meanwhile_is_noticed() {
    let bytes = common::three_pages();
    let stored = Stored::new(&bytes);
    let mut builder = DumpBuilder::new();
    stored.read_into(&mut builder);
    let dump = builder.finish();
    assert!(dump.verify().is_clean());
    let events = dump.events().count();
    let file = File::options().write(true).open(&stored.0).unwrap();
    file.set_len(bytes.len() as u64 / 2).unwrap();
    assert!(dump.events().count() < events);
    let gone = dump.gone();
    assert_eq!(gone.len(), 1);
    let told = gone[0].to_string();
    assert!(
        told.contains("changed or removed while it was read"),
        "{told}"
    );
    assert!(!dump.verify().is_clean());
}

#[test]
fn a_file_that_is_written_anew_meanwhile_is_noticed() {
    let bytes = common::three_pages();
    let stored = Stored::new(&bytes);
    let mut builder = DumpBuilder::new();
    stored.read_into(&mut builder);
    let dump = builder.finish();
    fs::write(&stored.0, vec![0; bytes.len()]).unwrap();
    assert_eq!(
        dump.events()
            .filter(|i| matches!(i, Output::Event(_)))
            .count(),
        0
    );
    assert_eq!(dump.gone().len(), 1);
}
