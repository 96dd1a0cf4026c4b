//! The segments that a batch reads, with the schema that they need.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use anyhow::{Context, anyhow};
use ringmark_decoder::store::{
    ListedObject, ObjectSource, SegmentFooter, directory_name, is_raw, schema_session,
};
use ringmark_decoder::{CoveredSession, Dump, DumpBuilder, Fault};
use ringmark_format::Uuid;

use super::forgotten::Forgotten;

/// Above all segments, and all schema.
const RAW: &str = "raw/v2";
const SCHEMA: &str = "schema";

/// A slot of a session: host, session, slot.
type SlotOf = (Vec<u8>, Uuid, u32);
/// By segment, the last page of each slot in it.
pub(crate) type Met = BTreeMap<String, BTreeMap<SlotOf, u64>>;

/// What was read.
pub(crate) struct Read {
    pub(crate) dump: Dump,
    pub(crate) met: Met,
    /// Segments with pages that get no rows, since their session was forgotten or given up, and how many such pages
    /// there are.
    pub(crate) late: (BTreeSet<String>, u64),
    /// Segments of which something could not be read: they are kept.
    pub(crate) damaged: BTreeSet<String>,
    /// Segments that could not be read, and why.
    pub(crate) unread: Vec<String>,
}

/// The names of all segments.
pub(crate) fn segments(source: &dyn ObjectSource) -> anyhow::Result<BTreeMap<String, u64>> {
    let all = source.list(RAW).context(RAW)?.into_iter();
    let segments = all.filter(|object| is_raw(&object.name));
    Ok(segments.map(|object| (object.name, object.bytes)).collect())
}

/// What a segment says that it holds.
#[derive(Debug, Default)]
pub(crate) struct Footer {
    /// Its sessions, with their hosts.
    owners: HashMap<Uuid, Vec<u8>>,
    /// The bytes of the schema stream that its pages need.
    schema_bytes: HashMap<Uuid, u64>,
    /// It is not there: the segment does not say what it holds.
    is_missing: bool,
}

impl Footer {
    /// Reads those of segments.
    pub(crate) fn read_all(
        source: &dyn ObjectSource,
        segments: &[ListedObject],
    ) -> anyhow::Result<BTreeMap<String, Self>> {
        let of = |segment: &ListedObject| {
            let read = SegmentFooter::of_object(source, segment);
            let read = read.with_context(|| segment.name.clone())?;
            let mut footer = Self {
                is_missing: read.is_none(),
                ..Self::default()
            };
            for of in read.into_iter().flat_map(|read| read.sessions) {
                footer.schema_bytes.insert(of.session, of.schema_bytes);
                footer.owners.insert(of.session, of.host);
            }
            Ok((segment.name.clone(), footer))
        };
        segments.iter().map(of).collect()
    }

    /// Whether the segment may have something of a session of a host.
    pub(crate) fn may_have(&self, (host, session): (&[u8], Uuid)) -> bool {
        self.is_missing || self.owners.get(&session).is_some_and(|of| of == host)
    }
}

/// Reads segments, after what earlier batches left. Forgotten sessions that are met become covered ones that are over.
pub(crate) fn read(
    source: &dyn ObjectSource,
    (segments, footers): (&[ListedObject], &BTreeMap<String, Footer>),
    covered: &mut Vec<CoveredSession>,
    forgotten: &Forgotten,
) -> anyhow::Result<Read> {
    let missing = footers.iter().filter(|(_, footer)| footer.is_missing);
    let missing = missing.map(|(name, _)| name);
    let mut unread: Vec<_> = missing
        .clone()
        .map(|name| format!("{name}: {}", Fault::NoFooter))
        .collect();
    let mut damaged: BTreeSet<String> = missing.cloned().collect();
    let is_unsure = !damaged.is_empty();
    let owners: Vec<_> = footers.values().map(|footer| &footer.owners).collect();
    let is_late = |of: &(&Uuid, &Vec<u8>)| forgotten.has((of.1, *of.0));
    let late = owners.iter().flat_map(|of| of.iter());
    let late: BTreeSet<_> = late.filter(is_late).collect();
    covered.extend(late.iter().map(|(session, host)| {
        let mut over = CoveredSession::new(host.to_vec(), **session);
        over.is_over = true;
        over
    }));
    let given_up = covered.iter().filter(|of| of.is_given_up());
    let given_up = given_up.map(|of| (of.host.clone(), of.session));
    let late = late.into_iter().map(|of| (of.1.clone(), *of.0));
    let late: HashSet<_> = late.chain(given_up).collect();
    let (mut segments_late, mut pages_late) = (BTreeSet::new(), 0);
    let mut builder = DumpBuilder::new().bare();
    let resumed = builder.resume(covered);
    resumed.map_err(|damage| anyhow!("{damage}"))?;
    read_schema(source, (&owners, is_unsure), covered, &mut builder)?;
    let mut met = Met::new();
    for ListedObject { name, .. } in segments {
        let footer = footers.get(name);
        builder.own(footer.map(|of| of.owners.clone()).unwrap_or_default());
        let file = source.open(name).with_context(|| name.clone())?;
        if let Err(damage) = builder.read_file(&source.path(name), file) {
            unread.push(format!("{name}: {damage}"));
            damaged.insert(name.clone());
        }
        met.insert(name.clone(), builder.take_met());
        let pages = builder.take_late().into_iter();
        let pages: u64 = pages.filter(|of| late.contains(&of.0)).map(|of| of.1).sum();
        pages_late += pages;
        if pages > 0 {
            segments_late.insert(name.clone());
        }
    }
    for ((session, host), bytes) in schema_needed(footers) {
        builder.own(HashMap::from([(session, host.clone())]));
        builder.need_schema(session, bytes);
    }
    builder.own(HashMap::new());
    let dump = builder.finish();
    unread.extend(without_schema(&dump));
    damaged.extend(with_damage(&dump, source, segments));
    Ok(Read {
        late: (segments_late, pages_late),
        damaged,
        dump,
        met,
        unread,
    })
}

/// Sessions whose schema is not there as far as their pages need it: their rows wait for it.
fn without_schema(dump: &Dump) -> impl Iterator<Item = String> {
    let read = dump.sessions.iter().filter(|of| !of.slots.is_empty());
    let lacking = read.filter(|of| of.schema_lacks > 0);
    lacking.map(|of| {
        let host = directory_name(&String::from_utf8_lossy(of.host()));
        format!(
            "{SCHEMA}/{host}/{}: {} bytes that pages need are not there; the rows of this session wait for them",
            of.uuid, of.schema_lacks
        )
    })
}

/// By session and host, up to which byte its pages need the schema stream.
fn schema_needed(footers: &BTreeMap<String, Footer>) -> HashMap<(Uuid, &Vec<u8>), u64> {
    let mut needed = HashMap::new();
    for footer in footers.values() {
        for (session, host) in &footer.owners {
            let of = footer.schema_bytes.get(session).copied().unwrap_or(0);
            let bytes: &mut u64 = needed.entry((*session, host)).or_default();
            *bytes = of.max(*bytes);
        }
    }
    needed
}

/// The segments of which blocks could not be read.
fn with_damage(dump: &Dump, source: &dyn ObjectSource, segments: &[ListedObject]) -> Vec<String> {
    let sources: HashSet<&str> = dump.damage.iter().map(|of| &*of.source).collect();
    let names = segments.iter().map(|segment| &segment.name);
    let has_damage = |name: &&String| sources.contains(&*source.path(name).display().to_string());
    names.filter(has_damage).cloned().collect()
}

/// Reads the schema of sessions that have something open.
pub(crate) fn read_schema_of(
    source: &dyn ObjectSource,
    covered: &[CoveredSession],
    builder: &mut DumpBuilder,
) -> anyhow::Result<()> {
    read_schema(source, (&[], false), covered, builder)
}

/// Reads the schema of all sessions that may have rows.
fn read_schema(
    source: &dyn ObjectSource,
    (owners, is_unsure): (&[&HashMap<Uuid, Vec<u8>>], bool),
    covered: &[CoveredSession],
    builder: &mut DumpBuilder,
) -> anyhow::Result<()> {
    let open = covered.iter().filter(|of| !of.is_over);
    let mut hosts: HashSet<(Uuid, &[u8])> = open.map(|of| (of.session, &of.host[..])).collect();
    let read = owners.iter().flat_map(|of| of.iter());
    hosts.extend(read.map(|(session, host)| (*session, &host[..])));
    let mut wanted: HashMap<(Uuid, String), &[u8]> = HashMap::new();
    for (session, host) in hosts {
        let directory = directory_name(&String::from_utf8_lossy(host));
        wanted.insert((session, directory), host);
    }
    for ListedObject { name, .. } in source.list(SCHEMA).context(SCHEMA)? {
        let Some(session) = schema_session(&name) else {
            continue;
        };
        let directory = name.split('/').nth(1).unwrap_or_default().to_owned();
        let host = wanted.get(&(session, directory)).copied();
        if let Some(host) = host.or(is_unsure.then_some(&[])) {
            let host = Some(host.to_vec()).filter(|host| !host.is_empty());
            builder.own(host.into_iter().map(|host| (session, host)).collect());
            let file = source.open(&name).with_context(|| name.clone())?;
            // Pages without their schema are damage, which is counted.
            let _ = builder.read_file(&source.path(&name), file);
        }
    }
    Ok(())
}
