//! What a store has of each service of each host, and when it came. A collector may use it at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use ringmark_decoder::SegmentIndex;
use ringmark_decoder::store::{
    self as files, DirectorySource, ID_FILE, ObjectSource, SegmentFooter,
};
use ringmark_format::Uuid;

use super::error::{NotAStore, StoreError, io_at};
use super::hours::hour_of;

/// Bytes of a day in the name of an hour.
const DAY: usize = "2026-01-31".len();

/// By which times sums are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// One sum of all.
    All,
    /// By the day on which it came, UTC.
    Day,
    /// By the hour in which it came, UTC.
    Hour,
}

/// What a store has of one service of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// The host.
    pub host: String,
    /// The service.
    pub service: String,
    /// When it came, `YYYY-MM-DD` or `YYYY-MM-DD-HH`; `None`: at any time.
    pub period: Option<String>,
    /// Number of sessions.
    pub sessions: u64,
    /// Number of segments in which it is.
    pub segments: u64,
    /// Bytes.
    pub bytes: u64,
    /// Thousandths of requests to put objects; a segment of several counts for each by its bytes. 0: it is no
    /// store of objects.
    pub puts: u64,
    /// Events that threads wrote from the first to the last page in closed segments, each once: those that are there,
    /// and those that were lost or overwritten between.
    pub written: u64,
    /// Wall time of the latest event there, ns since 1970; `None`: there is none.
    pub last_ns: Option<u64>,
    /// The first day on which a session began, `YYYY-MM-DD`; in a store of objects, on which a segment came.
    pub first_day: String,
    /// The last such day.
    pub last_day: String,
}

/// A part of a store that is of one session.
struct Part {
    host: String,
    service: String,
    session: Uuid,
    /// The object or file that it is in.
    file: String,
    /// The hour in which it came.
    hour: String,
    day: String,
    bytes: u64,
    /// Its part of a request to put an object, in thousandths.
    puts: u64,
    index: Option<SegmentIndex>,
}

/// Parts of a sum, and what was counted in it.
struct Sum {
    usage: Usage,
    sessions: BTreeSet<Uuid>,
    files: BTreeSet<String>,
    /// First reservation and the one after the last, by session and slot, of each segment.
    reserved: BTreeMap<(Uuid, u32), Vec<(u64, u64)>>,
}

/// What a store has, by host, service and period. A collector may use it at the same time.
///
/// # Errors
/// It is no store, or cannot be read.
pub fn usage(root: &Path, period: Period) -> Result<Vec<Usage>, StoreError> {
    if files::is_object_store(root) {
        let usage = usage_of_objects(&DirectorySource::new(root), period);
        return usage.map_err(io_at("read", root));
    }
    check_is_store(root)?;
    let parts = parts_of_segments(root).map_err(io_at("read", root))?;
    Ok(summed(parts, period))
}

/// What a store of objects has, by host, service and period: of each segment, the footer is read.
///
/// # Errors
/// The objects cannot be listed.
pub fn usage_of_objects(source: &dyn ObjectSource, period: Period) -> io::Result<Vec<Usage>> {
    Ok(summed(parts_of_objects(source)?, period))
}

fn summed(parts: Vec<Part>, period: Period) -> Vec<Usage> {
    let mut sums: BTreeMap<(String, String, Option<String>), Sum> = BTreeMap::new();
    for part in parts {
        let period = match period {
            Period::All => None,
            Period::Day => Some(part.hour[..DAY].to_owned()),
            Period::Hour => Some(part.hour.clone()),
        };
        let key = (part.host.clone(), part.service.clone(), period.clone());
        let sum = sums.entry(key).or_insert_with(|| Sum::new(&part, period));
        sum.add(part);
    }
    sums.into_values().map(Sum::finish).collect()
}

impl Sum {
    fn new(part: &Part, period: Option<String>) -> Self {
        Self {
            usage: Usage {
                host: part.host.clone(),
                service: part.service.clone(),
                period,
                sessions: 0,
                segments: 0,
                bytes: 0,
                puts: 0,
                written: 0,
                last_ns: None,
                first_day: part.day.clone(),
                last_day: part.day.clone(),
            },
            sessions: BTreeSet::new(),
            files: BTreeSet::new(),
            reserved: BTreeMap::new(),
        }
    }

    fn add(&mut self, part: Part) {
        self.sessions.insert(part.session);
        self.files.insert(part.file);
        self.usage.bytes += part.bytes;
        self.usage.puts += part.puts;
        self.usage.widen_days(&part.day, &part.day);
        let Some(index) = part.index else { return };
        let is_any = index.about.first_ns <= index.about.last_ns;
        let last = is_any.then_some(index.about.last_ns);
        self.usage.last_ns = self.usage.last_ns.max(last);
        for slot in &index.slots {
            let of_slot = self.reserved.entry((part.session, slot.slot)).or_default();
            of_slot.push((slot.first_event, slot.end_event));
        }
    }

    fn finish(mut self) -> Usage {
        self.usage.sessions = self.sessions.len() as u64;
        self.usage.segments = self.files.len() as u64;
        self.usage.written = self.reserved.into_values().map(covered).sum();
        self.usage
    }
}

/// How many numbers these ranges have, each counted once: a page may be in several segments.
fn covered(mut ranges: Vec<(u64, u64)>) -> u64 {
    ranges.sort_unstable();
    let (mut sum, mut until) = (0, 0);
    for (first, end) in ranges {
        let first = first.max(until);
        sum += end.saturating_sub(first);
        until = until.max(end);
    }
    sum
}

/// The sums over the services of each host, which stay unnamed; the largest host first.
#[must_use]
pub fn by_host(usages: Vec<Usage>) -> Vec<Usage> {
    let mut hosts: BTreeMap<String, Usage> = BTreeMap::new();
    for usage in usages {
        let service = String::new();
        match hosts.get_mut(&usage.host) {
            Some(host) => host.add(usage),
            None => drop(hosts.insert(usage.host.clone(), Usage { service, ..usage })),
        }
    }
    let mut hosts: Vec<_> = hosts.into_values().collect();
    hosts.sort_by_key(|host| std::cmp::Reverse(host.bytes));
    hosts
}

impl Usage {
    fn add(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.segments += other.segments;
        self.bytes += other.bytes;
        self.puts += other.puts;
        self.written += other.written;
        self.last_ns = self.last_ns.max(other.last_ns);
        self.widen_days(&other.first_day, &other.last_day);
    }

    fn widen_days(&mut self, first: &str, last: &str) {
        if first < self.first_day.as_str() {
            first.clone_into(&mut self.first_day);
        }
        if last > self.last_day.as_str() {
            last.clone_into(&mut self.last_day);
        }
    }
}

/// The segments of a store that one collector has.
fn parts_of_segments(root: &Path) -> io::Result<Vec<Part>> {
    let mut parts = Vec::new();
    for segment in files::segments(root)? {
        // One that retention has removed since is not there.
        let (Ok(about), Some(name)) = (fs::metadata(&segment), files::parse(&segment)) else {
            continue;
        };
        let [host, service, day] = place(&segment);
        parts.push(Part {
            host,
            service,
            session: name.session,
            file: segment.to_string_lossy().into_owned(),
            hour: hour_of_change(&about),
            day,
            bytes: about.len(),
            puts: 0,
            index: files::load_index(&segment),
        });
    }
    Ok(parts)
}

/// The sessions of the segments of a store of objects, as their footers say, and their schema.
fn parts_of_objects(source: &dyn ObjectSource) -> io::Result<Vec<Part>> {
    let mut parts = Vec::new();
    for object in source.list(files::RAW)? {
        let Some(hour) = files::raw_hour(&object.name) else {
            continue;
        };
        let footer = SegmentFooter::of_object(source, &object);
        let sessions = footer.ok().flatten().map(|footer| footer.sessions);
        let sessions = sessions.unwrap_or_default();
        let bytes: Vec<u64> = sessions.iter().map(|entry| entry.bytes.into()).collect();
        let puts = shares(&bytes);
        parts.extend(sessions.into_iter().zip(puts).map(|(entry, puts)| Part {
            host: String::from_utf8_lossy(&entry.host).into_owned(),
            service: String::from_utf8_lossy(&entry.service).into_owned(),
            session: entry.session,
            file: object.name.clone(),
            hour: hour.to_owned(),
            day: hour[..DAY].to_owned(),
            bytes: entry.bytes.into(),
            puts,
            index: entry.index,
        }));
    }
    let schema = parts_of_schema(source, &parts)?;
    parts.extend(schema);
    Ok(parts)
}

/// A request, in thousandths.
const PUT: u64 = 1000;

/// The part of each in one request, by its bytes; together they are one.
fn shares(bytes: &[u64]) -> Vec<u64> {
    let all: u128 = bytes.iter().map(|bytes| u128::from(*bytes) + 1).sum();
    let (mut before, mut given) = (0, 0);
    let share = |bytes: &u64| {
        // By what all up to this one have: so no thousandth is lost.
        before += u128::from(*bytes) + 1;
        let upto = (u128::from(PUT) * before / all) as u64;
        upto - std::mem::replace(&mut given, upto)
    };
    bytes.iter().map(share).collect()
}

/// Schema of the sessions that segments have.
fn parts_of_schema(source: &dyn ObjectSource, segments: &[Part]) -> io::Result<Vec<Part>> {
    let owners = segments.iter().map(|part| {
        let directory = files::directory_name(&part.host);
        ((directory, part.session), part)
    });
    let owners: BTreeMap<_, _> = owners.collect();
    let mut parts = Vec::new();
    for object in source.list(files::SCHEMA)? {
        let owner = files::schema_owner(&object.name);
        let owner = owner.and_then(|(host, session)| owners.get(&(host.to_owned(), session)));
        let Some(owner) = owner else {
            continue;
        };
        parts.push(Part {
            host: owner.host.clone(),
            service: owner.service.clone(),
            session: owner.session,
            // Schema came with the segments of its session.
            file: owner.file.clone(),
            hour: owner.hour.clone(),
            day: owner.day.clone(),
            bytes: object.bytes,
            puts: PUT,
            index: None,
        });
    }
    Ok(parts)
}

/// The hour in which a file was written last.
fn hour_of_change(about: &fs::Metadata) -> String {
    let since = about
        .modified()
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    hour_of(since.map_or(0, |since| since.as_nanos() as u64))
}

/// Host, service and day of a segment, as its directories say.
pub(super) fn place(segment: &Path) -> [String; 3] {
    let mut above = segment.ancestors().skip(1);
    [(); 3].map(|()| {
        let name = above.next().and_then(Path::file_name);
        name.unwrap_or_default().to_string_lossy().into_owned()
    })
}

/// Checks that a directory is the store of one collector.
///
/// # Errors
/// It is not.
pub(super) fn check_is_store(root: &Path) -> Result<(), StoreError> {
    match fs::symlink_metadata(root.join(ID_FILE)) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(StoreError::NotOurs {
            path: root.to_owned(),
            source: match files::is_object_store(root) {
                true => NotAStore::OfObjects,
                false => NotAStore::NoIdentity,
            },
        }),
        Err(error) => Err(io_at("look at", root)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_request_are_one_together() {
        assert_eq!(shares(&[]), []);
        assert_eq!(shares(&[5]), [PUT]);
        assert_eq!(shares(&[0, 0]), [500, 500]);
        for bytes in [&[1, 2, 3, 4, 5, 6, 7][..], &[u64::MAX, 1], &[0; 333]] {
            assert_eq!(shares(bytes).iter().sum::<u64>(), PUT, "{bytes:?}");
        }
    }

    #[test]
    fn what_lies_in_several_segments_is_counted_once() {
        assert_eq!(covered(vec![]), 0);
        assert_eq!(
            covered(vec![(10, 20), (0, 5), (15, 30), (15, 18), (40, 41)]),
            26
        );
    }
}
