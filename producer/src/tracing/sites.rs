//! All call sites that were seen, found without a lock.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use ringmark_format::schema::Level;
use ringmark_ring::published_static::Published;
use tracing_core::{Metadata, callsite};

use super::site::{Facts, Site};
use crate::session;

/// Has `tracing` ask each call site again whether it is enabled, whenever the session's filter
/// changes.
pub(super) fn listen() {
    session::listen(callsite::rebuild_interest_cache);
}

/// A table of sites that only grows: segments of doubling size, each searched a few places far. No
/// thread waits for another one that fills a place: in a forked child that one would not be there.
pub(super) struct Table {
    first: [Place; FIRST + REACH],
    more: [Published<Box<[Place]>>; MORE],
    /// Sites made, also those for which another thread was faster.
    count: AtomicU32,
}

type Place = Published<Site>;

/// Places of the first segment where a search can start.
const FIRST: usize = 512;
/// Segments after the first.
const MORE: usize = 12;
/// Places looked at in one segment.
const REACH: usize = 8;

impl Table {
    pub(super) const fn new() -> Self {
        Self {
            first: [const { Published::new() }; FIRST + REACH],
            more: [const { Published::new() }; MORE],
            count: AtomicU32::new(0),
        }
    }

    /// Sites in the table, and a few more.
    pub(super) fn len(&self) -> u32 {
        self.count.load(Relaxed)
    }

    /// The site with this hash for which `is_it` holds.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(&Site) -> bool) -> Option<&'static Site> {
        let first = self.first[start(hash, FIRST)].current()?;
        if first.hash == hash && is_it(first) {
            return Some(first);
        }
        self.find_further(hash, &is_it)
    }

    #[inline(never)]
    fn find_further(&self, hash: u64, is_it: &dyn Fn(&Site) -> bool) -> Option<&'static Site> {
        let more = self.more.iter().map_while(Published::current);
        for places in core::iter::once(&self.first[..]).chain(more.map(|places| &places[..])) {
            let first = start(hash, places.len() - REACH);
            for place in &places[first..first + REACH] {
                // Places fill up in this order and are never emptied.
                let site = place.current()?;
                if site.hash == hash && is_it(site) {
                    return Some(site);
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
        for number in 0..=MORE {
            let places = self.segment(number);
            let first = start(hash, places.len() - REACH);
            for place in &places[first..first + REACH] {
                let site = place.get_or_publish(|| {
                    self.count.fetch_add(1, Relaxed);
                    Box::new(make())
                });
                if site.hash == hash && is_it(site) {
                    return Some(site);
                }
            }
        }
        None
    }

    /// A segment, made if it is not there; the first one is number 0.
    fn segment(&self, number: usize) -> &[Place] {
        match number.checked_sub(1) {
            None => &self.first,
            Some(index) => self.more[index].get_or_publish(|| {
                let places = (FIRST << number) + REACH;
                Box::new((0..places).map(|_| Place::new()).collect())
            }),
        }
    }
}

/// Where the search for a hash starts among a power of two of places.
#[inline(always)]
fn start(hash: u64, places: usize) -> usize {
    (hash >> (64 - places.trailing_zeros())) as usize
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
        None => CALLSITES.find_or_make(hash, |_| true, || new_site(hash, metadata)),
    }
}

/// The site of a callsite that was seen.
pub(super) fn find(metadata: &Metadata<'_>) -> Option<&'static Site> {
    let hash = spread(core::ptr::from_ref(metadata).addr() as u64);
    CALLSITES.find(hash, |_| true)
}

fn new_site(hash: u64, metadata: &'static Metadata<'static>) -> Site {
    let facts = Facts {
        name: metadata.name(),
        target: metadata.target(),
        level: level(*metadata.level()),
        file: metadata.file().unwrap_or_default(),
        line: metadata.line().unwrap_or(0),
    };
    let fields = metadata.fields().iter().map(|field| field.name()).collect();
    let mut site = Site::new(hash, facts, fields);
    site.is_span = metadata.is_span();
    site.is_log = is_log_callsite(metadata);
    site
}

/// Whether it is one of the five call sites of the bridge from `log`.
#[inline]
pub(super) fn is_log_callsite(metadata: &Metadata<'_>) -> bool {
    metadata.target() == "log" && metadata.name() == "log event"
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
