//! What to read of a store of objects: the segments whose footers do not rule out that something in them is
//! chosen, after the schema that those need.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::ops::{Range, RangeInclusive};

use ringmark_format::Uuid;

use super::files::directory_name;
use super::footer::{END_BYTES, FooterEntry, SegmentFooter};
use super::index::{SegmentIndex, first_start};
use super::object_names::{RAW, SCHEMA, is_raw, schema_session};
use super::object_source::{ListedObject, ObjectSource};
use crate::events::filter::Filter;
use crate::trace_file::choice::SessionChoice;

/// Ends of segments that are read together.
const AT_A_TIME: usize = 256;
/// What is between two ranges is read, too, if it is no more than this.
const GAP_BYTES: u64 = 16 << 10;
/// Most ranges of one segment that are read apart.
const RANGES_MAX: usize = 16;

/// The hosts of sessions.
pub(super) type Owners = HashMap<Uuid, Vec<u8>>;

/// An object, and what to do with it.
pub(super) struct Object {
    pub(super) name: String,
    /// The proved hosts of its sessions, as far as it says them.
    pub(super) owners: Owners,
    pub(super) step: Step,
    /// The sessions that are read of it.
    pub(super) needs: Vec<Uuid>,
    /// It is a segment whose footer is damaged or missing.
    pub(super) lacks_footer: bool,
}

/// What to do with an object.
///
/// Footers decide it. They are short, and what they say of times has the slack that indexes have, since
/// clocks are fitted in another way where more of a session is at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Read,
    /// Only these bytes are of hosts, services and times that are chosen. These entries have events of other times.
    ReadPart(Vec<Range<u64>>, Vec<FooterEntry>),
    /// It has events of other times: these entries say which.
    LeaveOut(Vec<FooterEntry>, u64),
    /// It is of other hosts or services.
    PassOver,
}

/// The objects of a store, in the order in which they are read.
///
/// # Errors
/// They cannot be listed.
pub(super) fn objects(
    source: &dyn ObjectSource,
    filter: &Filter,
    choice: &SessionChoice,
) -> io::Result<Vec<Object>> {
    let mut raw = source.list(RAW)?;
    raw.retain(|object| is_raw(&object.name));
    let mut segments = Vec::with_capacity(raw.len());
    for some in raw.chunks(AT_A_TIME) {
        let mut ends = source.ends(some, END_BYTES);
        // None goes for want of its end: it is read as a whole.
        ends.resize_with(some.len(), || Err(io::ErrorKind::UnexpectedEof.into()));
        let ends = some.iter().zip(ends);
        segments.extend(ends.map(|(object, end)| Segment::new(source, object, end)));
    }
    let filter = filter.of_store(last_ns(&segments, choice));
    let filter = &filter.since(start_ns(&segments, choice), choice.is_by_host());
    let segments = segments.into_iter();
    let segments: Vec<_> = segments
        .map(|segment| segment.object(filter, choice))
        .collect();
    let needed = Needed::by(&segments);
    let mut all = Vec::new();
    for ListedObject { name, .. } in source.list(SCHEMA)? {
        if let Some(session) = schema_session(&name) {
            all.extend(needed.schema(name, session));
        }
    }
    all.extend(segments);
    Ok(all)
}

/// A segment and its footer.
struct Segment {
    name: String,
    /// `None`: there is none, or a damaged one.
    footer: Option<SegmentFooter>,
    /// It was not gone when its footer was read.
    is_there: bool,
}

impl Segment {
    fn new(source: &dyn ObjectSource, object: &ListedObject, end: io::Result<Vec<u8>>) -> Self {
        let read = end.and_then(|end| SegmentFooter::of_end(source, object, end));
        Self {
            name: object.name.clone(),
            // One that is gone is counted when it is opened.
            is_there: !matches!(&read, Err(error) if error.kind() == io::ErrorKind::NotFound),
            footer: read.ok().flatten(),
        }
    }

    fn sessions(&self) -> impl Iterator<Item = &FooterEntry> {
        self.footer.iter().flat_map(|footer| &footer.sessions)
    }

    /// What to do with it. One without a footer is read as far as it goes.
    fn object(self, filter: &Filter, choice: &SessionChoice) -> Object {
        let owners = self
            .sessions()
            .map(|entry| (entry.session, entry.host.clone()));
        let owners = owners.collect();
        let lacks_footer = self.is_there && self.footer.is_none();
        let chosen = self.footer.map(|footer| step(footer, filter, choice));
        let (step, needs) = chosen.unwrap_or((Step::Read, Vec::new()));
        Object {
            name: self.name,
            owners,
            lacks_footer,
            needs,
            step,
        }
    }
}

/// A time that the last event of the chosen sessions does not lie before, in ns since 1970. `None`: not known;
/// a footer does not say for certain which services and processes it has.
fn last_ns(segments: &[Segment], choice: &SessionChoice) -> Option<u64> {
    if !choice.is_by_host() {
        return None;
    }
    let entries = segments.iter().flat_map(Segment::sessions);
    let chosen = entries.filter(|entry| is_chosen(entry, choice));
    let indexes = chosen.filter_map(|entry| entry.index.as_ref());
    indexes.filter_map(SegmentIndex::ends_after_ns).max()
}

/// When the first of the sessions began that may be chosen, in ns since 1970. `None`: not known.
fn start_ns(segments: &[Segment], choice: &SessionChoice) -> Option<RangeInclusive<u64>> {
    if segments.iter().any(|segment| segment.footer.is_none()) {
        return None;
    }
    let entries = segments.iter().flat_map(Segment::sessions);
    let chosen = entries.filter(|entry| is_chosen(entry, choice));
    first_start(chosen.map(|entry| (entry.session, entry.index.as_ref().map(Cow::Borrowed))))
}

/// Whether the session may be of a host and a service that are chosen.
fn is_chosen(entry: &FooterEntry, choice: &SessionChoice) -> bool {
    let service = directory_name(&String::from_utf8_lossy(&entry.service));
    choice.host_passes(&entry.host) && choice.service_directory_may_pass(&service)
}

/// What to do with a segment that has this footer. Where the blocks of each session do not lie together, one
/// session that is wanted is enough to read it: the others are left out later, by the choice of sessions. Returns
/// the sessions that are wanted, too.
fn step(footer: SegmentFooter, filter: &Filter, choice: &SessionChoice) -> (Step, Vec<Uuid>) {
    let is_of_time = |entry: &FooterEntry| {
        let index = entry.index.as_ref();
        !filter.has_time() || index.is_none_or(|index| index.may_pass(filter))
    };
    let (ranges, whole) = (footer.ranges(), footer.segment_bytes);
    let ranges = ranges.unwrap_or_else(|| vec![0..whole; footer.sessions.len()]);
    let (mut wanted, mut needs, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for (entry, range) in footer.sessions.into_iter().zip(ranges) {
        match is_chosen(&entry, choice) {
            true if is_of_time(&entry) => {
                wanted.push(range);
                needs.push(entry.session);
            }
            true => left_out.push(entry),
            false => {}
        }
    }
    let step = match joined(wanted) {
        wanted if wanted.first() == Some(&(0..whole)) => Step::Read,
        wanted if !wanted.is_empty() => Step::ReadPart(wanted, left_out),
        _ if left_out.is_empty() => Step::PassOver,
        _ => Step::LeaveOut(left_out, whole),
    };
    (step, needs)
}

/// Ranges by ascending start in as few pieces as cost little: each is a request where the store is far away.
fn joined(ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(GAP_BYTES) => {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    if joined.len() > RANGES_MAX {
        let end = joined.last().map_or(0, |last| last.end);
        joined.truncate(1);
        joined.iter_mut().for_each(|first| first.end = end);
    }
    joined
}

/// The sessions whose schema is needed.
#[derive(Default)]
struct Needed<'a> {
    /// Hosts of the sessions of segments that are read, by ascending name.
    hosts: HashMap<Uuid, BTreeSet<&'a [u8]>>,
    /// A segment without a footer does not say what it holds.
    is_unsure: bool,
}

impl<'a> Needed<'a> {
    /// What these segments need, as far as they are read.
    fn by(segments: &'a [Object]) -> Self {
        let mut needed = Self::default();
        for segment in segments {
            needed.is_unsure |= segment.step == Step::Read && segment.owners.is_empty();
            for session in &segment.needs {
                let host = segment.owners.get(session).map_or(&[][..], Vec::as_slice);
                needed.hosts.entry(*session).or_default().insert(host);
            }
        }
        needed
    }

    /// Schema of this name and session; `None`: no segment needs it.
    fn schema(&self, name: String, session: Uuid) -> Option<Object> {
        let directory = name.split('/').nth(1)?.to_owned();
        let is_its = |host: &&&[u8]| directory_name(&String::from_utf8_lossy(host)) == directory;
        let hosts = self.hosts.get(&session);
        let host = hosts.and_then(|hosts| hosts.iter().find(is_its));
        (host.is_some() || self.is_unsure).then(|| Object {
            name,
            owners: host.iter().map(|host| (session, host.to_vec())).collect(),
            step: Step::Read,
            needs: Vec::new(),
            lacks_footer: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use ringmark_format::block::{PageState, kind};
    use ringmark_format::codec::write;
    use ringmark_format::page::PageHeader;
    use ringmark_format::session::{RING_FILE_MAGIC, SessionHeader};
    use ringmark_format::{PageNumber, RingId, VERSION_MAJOR};
    use zerocopy::{FromZeros, IntoBytes};

    use super::super::footer::{FooterEntry, SegmentFooter};
    use super::super::object_names::{OBJECTS_ID, raw_object};
    use super::super::read::{Opened, Unreadable, read};
    use super::*;
    use crate::trace_file::dump::{Dump, DumpBuilder};

    const SESSION: Uuid = Uuid([6; 16]);

    /// A store of objects in a directory that is removed at the end.
    struct Scene(PathBuf);

    impl Drop for Scene {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    impl Scene {
        fn new(name: &str) -> Self {
            let name = format!("ringmark-decoder-{name}-{}", std::process::id());
            let root = std::env::temp_dir().join(name);
            fs::create_dir_all(&root).unwrap();
            fs::write(root.join(OBJECTS_ID), "").unwrap();
            Self(root)
        }

        /// Puts a segment with a page of the session, as this host sent it; returns its path.
        fn put(&self, number: u64, host: &str, page: u64) -> PathBuf {
            let mut bytes = segment(page);
            let footer = SegmentFooter {
                segment_bytes: bytes.len() as u64,
                is_grouped: false,
                sessions: vec![FooterEntry {
                    session: SESSION,
                    host: host.into(),
                    service: b"shop".to_vec(),
                    schema_bytes: 0,
                    epoch: 1,
                    bytes: 0,
                    index: None,
                }],
            };
            bytes.extend(footer.block());
            let name = raw_object("2026-11-26-19", Uuid([1; 16]), number);
            let path = self.0.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, bytes).unwrap();
            path
        }

        fn read(&self, hosts: &[&str]) -> Dump {
            let choice = SessionChoice {
                hosts: hosts.iter().map(ToString::to_string).collect(),
                ..SessionChoice::default()
            };
            let open = |_: &Path| -> Result<Opened, Unreadable> { unreachable!() };
            let root = [self.0.clone()];
            read(DumpBuilder::new(), &root, (&Filter::new(), &choice), open).unwrap()
        }
    }

    fn segment(page: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let header = SessionHeader {
            magic: RING_FILE_MAGIC,
            version_major: VERSION_MAJOR,
            session: SESSION.0,
            ..SessionHeader::new_zeroed()
        };
        write::session(&mut bytes, SESSION, header.as_bytes()).unwrap();
        let header = PageHeader {
            generation: page + 1,
            ring_id: 1,
            ..PageHeader::new_zeroed()
        };
        let mut content = header.as_bytes().to_vec();
        content.resize(96, 0);
        let (ring, page) = (RingId(1), PageNumber(page));
        let header = write::page_header(SESSION, ring, page, 96, 4096, PageState::Open);
        assert_eq!(header.kind, kind::PAGE);
        write::block(&mut bytes, header, &content).unwrap();
        bytes
    }

    /// Hosts and pages of the sessions that were read.
    fn found(dump: &Dump) -> Vec<(String, usize)> {
        let sessions = dump.sessions.iter().map(|session| {
            let pages = session.slots.iter().map(|slot| slot.pages.len()).sum();
            (String::from_utf8_lossy(session.host()).into_owned(), pages)
        });
        let mut found: Vec<_> = sessions.collect();
        found.sort();
        found
    }

    #[test]
    fn many_segments_and_schema_objects_take_no_longer_than_both() {
        // Each with each takes hours.
        const MANY: u64 = 300_000;
        let uuid = |number: u64| Uuid(u128::from(number).to_be_bytes());
        let object = |number: u64| Object {
            name: String::new(),
            owners: HashMap::from([(uuid(number), b"web-1".to_vec())]),
            step: Step::Read,
            needs: vec![uuid(number)],
            lacks_footer: false,
        };
        let segments: Vec<_> = (0..MANY).map(object).collect();
        let needed = Needed::by(&segments);
        let name = "schema/web-1/x/0-1-2.rms";
        let find = |number| needed.schema(name.to_owned(), uuid(number));
        let found = (0..2 * MANY).filter_map(find).count() as u64;
        assert_eq!(found, MANY);
    }

    #[test]
    fn a_uuid_of_two_hosts_is_two_sessions() {
        let scene = Scene::new("hosts");
        for (number, (host, page)) in [("a", 0), ("b", 0), ("a", 1), ("a", 0)].iter().enumerate() {
            scene.put(number as u64, host, *page);
        }
        let all = scene.read(&[]);
        assert_eq!(found(&all), [("a".to_owned(), 2), ("b".to_owned(), 1)]);
        assert_eq!((all.repeated, all.conflicts), (1, 0));
        assert_eq!(found(&scene.read(&["b"])), [("b".to_owned(), 1)]);
    }

    #[test]
    fn a_segment_without_its_footer_is_read_as_far_as_it_goes() {
        let scene = Scene::new("cut");
        let path = scene.put(0, "a", 0);
        let whole = fs::read(&path).unwrap();
        for cut in (segment(0).len()..whole.len()).step_by(7) {
            fs::write(&path, &whole[..cut]).unwrap();
            let read = scene.read(&[]);
            assert_eq!(read.sessions.len(), 1, "{cut} bytes");
            assert_eq!(found(&read)[0].1, 1);
            let told = read.damage.last().map(ToString::to_string);
            assert!(told.is_some_and(|told| told.contains("no valid footer")));
        }
        fs::write(&path, &whole[..100]).unwrap();
        scene.put(1, "a", 1);
        let read = scene.read(&[]);
        assert_eq!((found(&read)[0].1, read.damage.len()), (1, 2));
    }
}
