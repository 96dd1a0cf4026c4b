//! Records of the `log` crate. They all come from five call sites of the bridge; here each gets
//! the site that its target, level, file and line say.

use tracing_core::{Event, Metadata};
use tracing_log::NormalizeEvent;

use super::site::{Facts, Site, What};
use super::sites::{self, Table, spread};
use crate::description::Now;

/// Places in the program that get a site; records of further ones keep target, file and line as
/// fields. (A target made at run time must not fill the memory.)
const SITES_MAX: u32 = 4096;

static LOGS: Table = Table::new();

/// Records it as an event of its own site. `false`: there are too many, or it is no `log` record.
pub(super) fn emit(event: &Event<'_>) -> bool {
    let Some(metadata) = event.normalized_metadata() else {
        return false;
    };
    let is_it = |site: &Site| is_same(&site.facts, &metadata);
    let hash = hash_of(&metadata);
    let site = LOGS.find(hash, is_it).or_else(|| {
        let room = LOGS.len() < SITES_MAX;
        room.then(|| LOGS.find_or_make(hash, is_it, || new_site(hash, &metadata)))
            .flatten()
    });
    let Some(site) = site else { return false };
    if !site.is_known_off(What::Event) {
        site.record(What::Event, Now::Clock, [], |visitor| {
            event.record(&mut OnlyMessage(visitor));
        });
    }
    true
}

fn is_same(facts: &Facts, metadata: &Metadata<'_>) -> bool {
    facts.target == metadata.target()
        && facts.level == sites::level(*metadata.level())
        && facts.line == metadata.line().unwrap_or(0)
        && facts.file == metadata.file().unwrap_or_default()
}

fn hash_of(metadata: &Metadata<'_>) -> u64 {
    let numbers = u64::from(metadata.line().unwrap_or(0)) << 8
        | u64::from(sites::level(*metadata.level()) as u8);
    let hash = hash_bytes(spread(numbers), metadata.target().as_bytes());
    hash_bytes(hash, metadata.file().unwrap_or_default().as_bytes())
}

fn hash_bytes(start: u64, bytes: &[u8]) -> u64 {
    let (whole, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = whole.iter().chain([&last]);
    words.fold(start, |hash, word| {
        spread(hash.rotate_left(29) ^ u64::from_le_bytes(*word))
    })
}

fn new_site(hash: u64, metadata: &Metadata<'_>) -> Site {
    let keep = |text: &str| -> &'static str { String::from(text).leak() };
    let facts = Facts {
        name: "log event",
        target: keep(metadata.target()),
        level: sites::level(*metadata.level()),
        file: keep(metadata.file().unwrap_or_default()),
        line: metadata.line().unwrap_or(0),
    };
    Site::new(hash, facts, Box::new(["message"]))
}

/// The fields of the bridge's call sites, in their order; the message is the first.
struct OnlyMessage<'v>(&'v mut dyn tracing_core::field::Visit);

impl tracing_core::field::Visit for OnlyMessage<'_> {
    fn record_str(&mut self, field: &tracing_core::Field, value: &str) {
        if field.index() == 0 {
            self.0.record_str(field, value);
        }
    }

    fn record_debug(&mut self, field: &tracing_core::Field, value: &dyn core::fmt::Debug) {
        if field.index() == 0 {
            self.0.record_debug(field, value);
        }
    }
}
