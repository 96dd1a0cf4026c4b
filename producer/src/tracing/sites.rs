//! All call sites that were seen, found without a lock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use ringmark_format::schema::Level;
use tracing_core::Metadata;

use super::site::{Facts, Site};

/// A table of sites that only grows: segments of doubling size, each searched a few places far.
pub(super) struct Table {
    segments: [OnceLock<Box<[OnceLock<Entry>]>>; SEGMENTS],
    count: AtomicU32,
}

#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    site: &'static Site,
}

const SEGMENTS: usize = 14;
const FIRST_SEGMENT: usize = 512;
/// Places looked at in one segment.
const REACH: usize = 8;

impl Table {
    pub(super) const fn new() -> Self {
        Self {
            segments: [const { OnceLock::new() }; SEGMENTS],
            count: AtomicU32::new(0),
        }
    }

    /// Sites in the table.
    pub(super) fn len(&self) -> u32 {
        self.count.load(Relaxed)
    }

    /// The site with this hash for which `is_it` holds.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(&Site) -> bool) -> Option<&'static Site> {
        for segment in &self.segments {
            let places = segment.get()?;
            let first = place(hash, places.len());
            for place in &places[first..first + REACH] {
                let entry = place.get()?;
                if entry.hash == hash && is_it(entry.site) {
                    return Some(entry.site);
                }
            }
        }
        None
    }

    /// The site with this hash for which `is_it` holds, made if it is not there. `None`: full.
    #[cold]
    pub(super) fn find_or_make(
        &self,
        hash: u64,
        is_it: impl Fn(&Site) -> bool,
        make: impl Fn() -> Site,
    ) -> Option<&'static Site> {
        for (number, segment) in self.segments.iter().enumerate() {
            let bytes = FIRST_SEGMENT << number;
            let places =
                segment.get_or_init(|| (0..bytes + REACH).map(|_| OnceLock::new()).collect());
            let first = place(hash, places.len());
            for place in &places[first..first + REACH] {
                let entry = place.get_or_init(|| {
                    self.count.fetch_add(1, Relaxed);
                    let site = Box::leak(Box::new(make()));
                    Entry { hash, site }
                });
                if entry.hash == hash && is_it(entry.site) {
                    return Some(entry.site);
                }
            }
        }
        None
    }
}

/// First place of a hash in a segment of a power of two and [`REACH`] places.
#[inline(always)]
fn place(hash: u64, places: usize) -> usize {
    let bits = (places - REACH).trailing_zeros();
    (hash >> (64 - bits)) as usize
}

/// Spreads a number over the upper bits.
#[inline(always)]
pub(super) fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

static CALLSITES: Table = Table::new();

/// The site of a callsite of the program. `None`: there are more than any program has.
#[inline(always)]
pub(super) fn site_of(metadata: &'static Metadata<'static>) -> Option<&'static Site> {
    let hash = spread(core::ptr::from_ref(metadata).addr() as u64);
    match CALLSITES.find(hash, |_| true) {
        Some(site) => Some(site),
        None => CALLSITES.find_or_make(hash, |_| true, || new_site(metadata)),
    }
}

fn new_site(metadata: &'static Metadata<'static>) -> Site {
    let facts = Facts {
        name: metadata.name(),
        target: metadata.target(),
        level: level(*metadata.level()),
        file: metadata.file().unwrap_or_default(),
        line: metadata.line().unwrap_or(0),
    };
    let fields = metadata.fields().iter().map(|field| field.name()).collect();
    Site::new(facts, metadata.is_span(), fields)
}

/// `tracing`'s level as ours.
pub(super) fn level(level: tracing_core::Level) -> Level {
    match level {
        tracing_core::Level::ERROR => Level::Error,
        tracing_core::Level::WARN => Level::Warn,
        tracing_core::Level::INFO => Level::Info,
        tracing_core::Level::DEBUG => Level::Debug,
        tracing_core::Level::TRACE => Level::Trace,
    }
}
