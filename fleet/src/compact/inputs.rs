//! The segments that a batch reads, with the schema that they need.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use anyhow::{Context, anyhow};
use ringmark_decoder::store::{
    ListedObject, ObjectSource, SegmentFooter, directory_name, is_raw, schema_session,
};
use ringmark_decoder::{CoveredSession, Dump, DumpBuilder};
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
    /// Segments with pages of forgotten sessions, and how many such pages there are.
    pub(crate) late: (BTreeSet<String>, u64),
    /// Segments that could not be read, and why.
    pub(crate) unread: Vec<String>,
}

/// The names of all segments.
pub(crate) fn segments(source: &dyn ObjectSource) -> anyhow::Result<BTreeMap<String, u64>> {
    let all = source.list(RAW).context(RAW)?.into_iter();
    let segments = all.filter(|object| is_raw(&object.name));
    Ok(segments.map(|object| (object.name, object.bytes)).collect())
}

/// Reads segments, after what earlier batches left. Forgotten sessions that are met become covered ones that are over.
pub(crate) fn read(
    source: &dyn ObjectSource,
    segments: &[ListedObject],
    covered: &mut Vec<CoveredSession>,
    forgotten: &Forgotten,
) -> anyhow::Result<Read> {
    let (mut owners, mut unread) = (Vec::new(), Vec::new());
    // A segment without a footer does not say what it holds.
    let mut is_unsure = false;
    for segment in segments {
        let footer = SegmentFooter::of_object(source, segment);
        let footer = footer.with_context(|| segment.name.clone())?;
        is_unsure |= footer.is_none();
        let sessions = footer.into_iter().flat_map(|footer| footer.sessions);
        let of: HashMap<Uuid, Vec<u8>> = sessions.map(|of| (of.session, of.host)).collect();
        owners.push(of);
    }
    let is_late = |of: &(&Uuid, &Vec<u8>)| forgotten.has((of.1, *of.0));
    let late: BTreeSet<_> = owners.iter().flatten().filter(is_late).collect();
    covered.extend(late.iter().map(|(session, host)| {
        let mut over = CoveredSession::new(host.to_vec(), **session);
        over.is_over = true;
        over
    }));
    let has_late = |owners: &HashMap<Uuid, Vec<u8>>| owners.iter().any(|of| is_late(&of));
    let segments_late = segments.iter().zip(&owners).filter(|of| has_late(of.1));
    let segments_late = segments_late.map(|of| of.0.name.clone()).collect();
    let late: HashSet<_> = late.into_iter().map(|of| (*of.0, of.1.clone())).collect();
    let mut builder = DumpBuilder::new().bare();
    let resumed = builder.resume(covered);
    resumed.map_err(|damage| anyhow!("{damage}"))?;
    read_schema(source, (&owners, is_unsure), covered, &mut builder)?;
    let mut met = Met::new();
    for (segment, owners) in segments.iter().zip(owners) {
        builder.own(owners);
        let name = &segment.name;
        let file = source.open(name).with_context(|| name.clone())?;
        if let Err(damage) = builder.read_file(&source.path(name), file) {
            unread.push(format!("{name}: {damage}"));
        }
        met.insert(name.clone(), builder.take_met());
    }
    builder.own(HashMap::new());
    let pages = builder.take_late().into_iter();
    let pages = pages.filter(|((host, session), _)| late.contains(&(*session, host.clone())));
    let pages = pages.map(|(_, pages)| pages).sum();
    Ok(Read {
        late: (segments_late, pages),
        dump: builder.finish(),
        met,
        unread,
    })
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
    (owners, is_unsure): (&[HashMap<Uuid, Vec<u8>>], bool),
    covered: &[CoveredSession],
    builder: &mut DumpBuilder,
) -> anyhow::Result<()> {
    let open = covered.iter().filter(|of| !of.is_over);
    let mut hosts: HashSet<(Uuid, &[u8])> = open.map(|of| (of.session, &of.host[..])).collect();
    let read = owners.iter().flatten();
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
