//! One or several inputs put together: sessions with their schema and pages, and what was wrong.
//!
//! Blocks may come in any order and more than once. They are grouped by session first; when all
//! inputs have been read, the schema is read and the clocks are fitted.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use ringmark_format::Uuid;
use ringmark_format::block::kind;
use ringmark_format::store::IndexSlot;

use crate::blocks::block_reader::{Block, BlockReader, Item, page_id};
use crate::blocks::content::{Content, PageFile, Unpacked};
use crate::blocks::damage::{Damage, Fault, Place};
use crate::blocks::holes;
use crate::blocks::join::Joined;
use crate::blocks::page::Page;
use crate::trace_file::choice::SessionChoice;
use crate::trace_file::process;
use crate::trace_file::resumed::Resumed;
use crate::trace_file::session::{Counters, Session, SessionBlock};
use crate::trace_file::session_builder::SessionBuilder;
use crate::trace_file::shared_threads::SharedThread;
use crate::trace_file::spans::{self, SpanPlaces};
use crate::words::distance::distance;
use crate::words::escape::Printable;

/// Everything that the inputs hold, put in order: the start of every analysis.
///
/// [`Self::events`] gives the events of all sessions, [`Self::verify`] the account of losses.
/// What was read with [`DumpBuilder::read_file`] stays in its file: memory is then some hundred bytes
/// for each page. Memory of other inputs is linear in their size.
#[derive(Debug, Default)]
pub struct Dump {
    /// Sessions in the order of their first block.
    pub sessions: Vec<Session>,
    /// What could not be used, in the order in which it was found.
    pub damage: Vec<Damage>,
    /// Number of valid blocks that were read; a container counts as one.
    pub blocks: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Bytes of segments that were left out; see [`DumpBuilder::leave_out`].
    pub left_out_bytes: u64,
    /// When the first session began of which a segment was left out, in ns since 1970.
    left_out_start_ns: Option<u64>,
    /// Segments of a store that were removed while it was read. What is not here of their
    /// events counts as if they had been removed before.
    pub removed_segments: u64,
    /// Copies of pages that brought nothing new.
    pub repeated: u64,
    /// Copies of pages that contradict another copy; each is an item of `damage` too.
    pub conflicts: u64,
    /// Blocks of kinds that are not known here.
    pub unknown_blocks: u64,
    /// The files that pages are in.
    files: Vec<Arc<PageFile>>,
    /// Threads with rings in several sessions, and finished spans there.
    threads: Vec<SharedThread>,
}

impl Dump {
    /// When the first session began, in ns since 1970: times since the start count from here. `None`: no session says.
    #[must_use]
    pub fn start_ns(&self) -> Option<u64> {
        let starts = self
            .sessions
            .iter()
            .map(|session| session.clock.real_zero_ns);
        let starts = starts.chain(self.left_out_start_ns);
        starts.filter(|ns| *ns > 0).min()
    }

    /// What finds the finished spans around records.
    pub(crate) fn span_places(&self) -> SpanPlaces<'_> {
        SpanPlaces {
            sessions: &self.sessions,
            threads: &self.threads,
        }
    }

    /// What could not be read again when events were looked for, because a file was changed or
    /// removed after it was read first; so far. Empty: nothing.
    #[must_use]
    pub fn gone(&self) -> Vec<Damage> {
        let gone = self.files.iter().filter_map(|file| file.gone());
        let damage = |(path, why): (String, String)| Damage {
            source: path.into(),
            block: 0,
            offset: 0,
            page: None,
            fault: Fault::Gone(why),
        };
        gone.map(damage).collect()
    }

    /// Names of events, spans and functions in the pages that are closest to `wanted`, the closest
    /// first, at most `count`. A message suggests them when a filter matches nothing.
    #[must_use]
    pub fn closest_names(&self, wanted: &str, count: usize) -> Vec<String> {
        let sessions = self.sessions.iter();
        let names = sessions.flat_map(|session| {
            let types = session.schema.types().iter().filter(|ty| ty.occurs);
            types.filter_map(|ty| session.schema.name_shown(ty))
        });
        closest(names, wanted, count)
    }

    /// Names of event types closest to `wanted`, the closest first, at most `count`; whether they
    /// occur does not count.
    #[must_use]
    pub fn closest_types(&self, wanted: &str, count: usize) -> Vec<String> {
        let types = self.sessions.iter().flat_map(|s| s.schema.types());
        let types = types.filter(|ty| ty.function.is_none());
        let names = types.filter(|ty| !ty.is_bookkeeping());
        closest(names.map(|ty| ty.name.as_slice()), wanted, count)
    }
}

/// Those of `names` that are closest to `wanted`.
fn closest<'n>(names: impl Iterator<Item = &'n [u8]>, wanted: &str, count: usize) -> Vec<String> {
    let names = names.filter(|name| !name.is_empty());
    let mut names: Vec<(usize, &[u8])> = names
        .map(|name| (distance(wanted.as_bytes(), name), name))
        .collect();
    names.sort_unstable();
    names.dedup();
    let near = names.into_iter().take(count);
    near.map(|(_, name)| Printable(name).to_string()).collect()
}

/// Puts a [`Dump`] together out of any number of inputs.
#[derive(Debug, Default)]
pub struct DumpBuilder {
    dump: Dump,
    /// The sessions of each uuid: several hosts may have sent one.
    places: HashMap<Uuid, Vec<usize>>,
    /// The proved hosts of the sessions in the input that is read, where it says them.
    owners: HashMap<Uuid, Vec<u8>>,
    sessions: Vec<SessionBuilder>,
    choice: SessionChoice,
    /// Names of hosts in the stores that sessions were read from.
    hosts: HashMap<Uuid, Vec<u8>>,
    /// Sessions whose oldest segments are not in the store any more.
    shortened: HashSet<Uuid>,
    unpacked: Arc<Unpacked>,
    /// Finished spans are not looked for around events.
    is_bare: bool,
    /// What earlier parts hold; `None`: this is no part.
    pub(crate) resumed: Option<Resumed>,
}

impl DumpBuilder {
    /// A builder that has read nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves out the look for finished spans around events, which is a walk over all records. For
    /// [`Dump::events_alone`] and [`Dump::events_bare`], which do not need it; [`Dump::events`] finds none then.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.is_bare = true;
        self
    }

    /// Keeps only the sessions that `choice` lets pass.
    pub fn choose(&mut self, choice: SessionChoice) {
        self.choice = choice;
    }

    /// Tells under which name a store holds the host of a session.
    pub fn name_host(&mut self, session: Uuid, host: &[u8]) {
        self.hosts.insert(session, host.to_vec());
    }

    /// Tells which hosts were proved to have sent the sessions of the next inputs. A session of another host that
    /// has the same uuid is another session.
    pub fn own(&mut self, owners: HashMap<Uuid, Vec<u8>>) {
        self.owners = owners;
    }

    /// Tells that the oldest segments of a session were removed from its store. What is missing before
    /// the first event of each thread then counts as removed.
    pub fn shorten(&mut self, session: Uuid) {
        let _ = self.shortened.insert(session);
    }

    /// Reads all of `input`. Messages call it `source`, usually a path.
    ///
    /// # Errors
    /// The input is unreadable: it gave no valid block, or has a newer major version or another
    /// byte order. The error is its first damage. Other damage is kept in [`Dump::damage`].
    pub fn read(&mut self, source: &str, input: impl Read) -> Result<(), Damage> {
        self.read_blocks((source, 0), input, None)
    }

    /// Reads all of `file` from its beginning, and leaves its pages there: they are read again when
    /// their events are looked for, so the file should stay as it is. `path` is its path, for
    /// messages too.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_file(&mut self, path: &Path, file: File) -> Result<(), Damage> {
        self.read_part(path, file, 0..u64::MAX)
    }

    /// Reads the blocks in this range of `file`, as [`Self::read_file`] does.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn read_part(
        &mut self,
        path: &Path,
        mut file: File,
        range: Range<u64>,
    ) -> Result<(), Damage> {
        let (source, number) = (path.display().to_string(), self.dump.files.len());
        let again = file.try_clone();
        let kept =
            again.map(|again| Arc::new(PageFile::new(path, again, number, self.unpacked.clone())));
        let kept = kept.ok();
        self.dump.files.extend(kept.clone());
        // Where that fails, what is there is no block.
        let _ = (range.start > 0).then(|| file.seek(SeekFrom::Start(range.start)));
        let holes = holes::fault(&file);
        let end = match holes {
            Some(Fault::Holes { stored, .. }) => stored.min(range.end),
            _ => range.end,
        };
        let part = file.take(end.saturating_sub(range.start));
        let read = self.read_blocks((&source, range.start), part, kept.as_ref());
        if let Some(fault) = holes {
            let place = Place {
                source: source.into(),
                block: 0,
                offset: end,
            };
            self.dump.damage.push(place.damage(None, fault));
        }
        read
    }

    /// `kept`: the file that pages stay in; `None`: they are held in memory.
    fn read_blocks(
        &mut self,
        (source, from): (&str, u64),
        input: impl Read,
        kept: Option<&Arc<PageFile>>,
    ) -> Result<(), Damage> {
        let mut reader = BlockReader::at(source, input, from);
        let source: Arc<str> = source.into();
        let first = self.dump.damage.len();
        while let Some(item) = reader.next_item() {
            match item {
                Item::Damage(damage) => self.dump.damage.push(damage),
                Item::Block(block) => self.take(&source, &block, kept),
            }
        }
        let (blocks, bytes) = (reader.valid_blocks(), reader.offset() - from);
        self.dump.blocks += blocks;
        self.dump.bytes += bytes;
        let mut new = self.dump.damage[first..].iter();
        let refused = new.find(|d| {
            let foreign = matches!(d.fault, Fault::NewerMajor { .. } | Fault::ForeignEndian);
            foreign || blocks == 0
        });
        match refused {
            Some(damage) => Err(damage.clone()),
            None => Ok(()),
        }
    }

    /// Tells of a segment that is not read: what its index lists is not missing. `slots` are the
    /// slots of `session` in the segment, `bytes` is its size, and the session began at `start_ns`, since 1970.
    pub fn leave_out(
        &mut self,
        session: Uuid,
        slots: &[IndexSlot],
        (start_ns, bytes): (Option<u64>, u64),
    ) {
        let place = Place {
            source: "an index".into(),
            block: 0,
            offset: 0,
        };
        self.session(session, &place).leave_out(slots);
        let starts = self.dump.left_out_start_ns.into_iter().chain(start_ns);
        self.dump.left_out_start_ns = starts.min();
        self.dump.left_out_bytes += bytes;
    }

    fn take(&mut self, source: &Arc<str>, block: &Block<'_>, kept: Option<&Arc<PageFile>>) {
        let place = Place {
            source: source.clone(),
            block: block.number,
            offset: block.offset,
        };
        if let Err(fault) = self.take_block(&place, block, kept) {
            if matches!(fault, Fault::Conflict { .. }) {
                self.dump.conflicts += 1;
            }
            let damage = place.damage(page_id(&block.header), fault);
            self.dump.damage.push(damage);
        }
    }

    fn take_block(
        &mut self,
        place: &Place,
        block: &Block<'_>,
        kept: Option<&Arc<PageFile>>,
    ) -> Result<(), Fault> {
        let uuid = Uuid(block.header.session);
        match block.header.kind {
            kind::SESSION => {
                let read = SessionBlock::read(block.content, uuid.0)?;
                self.session(uuid, place).take_session(read);
            }
            kind::SCHEMA => {
                let offset = block.header.page_number;
                self.session(uuid, place)
                    .take_schema(offset, block.content)?;
            }
            kind::COUNTERS => {
                let counters = Counters::read(block.content)?;
                self.session(uuid, place).take_counters(counters);
            }
            kind::PAGE => {
                let page = Page::read(block, Content::of(block, kept))?;
                if let Some(resumed) = &mut self.resumed
                    && resumed.holds(uuid, self.owners.get(&uuid), &page)
                {
                    self.dump.repeated += 1;
                    return Ok(());
                }
                let session = self.session(uuid, place);
                let joined = session.take_page(page, block.content, place)?;
                self.dump.repeated += u64::from(joined == Some(Joined::Repeated));
            }
            kind::WINDOW => self.session(uuid, place).take_window(block.content)?,
            kind::OPEN_SPANS => self.session(uuid, place).take_open_spans(block.content)?,
            kind::PROGRESS => self.session(uuid, place).take_progress(block.content)?,
            kind::ENDING => self.session(uuid, place).take_ending(block.content)?,
            kind::HOST_CLOCK => self.session(uuid, place).take_clock(block.content)?,
            kind::SWITCHES => self.session(uuid, place).take_switches(block.content)?,
            kind::WAITS => self.session(uuid, place).take_waits(block.content)?,
            kind::SAMPLES => self.session(uuid, place).take_samples(block.content)?,
            kind::FOOTER => {}
            _ => self.dump.unknown_blocks += 1,
        }
        Ok(())
    }

    pub(crate) fn session(&mut self, uuid: Uuid, place: &Place) -> &mut SessionBuilder {
        let owner = self.owners.get(&uuid);
        let known = self.places.entry(uuid).or_default();
        let its = |index: &&usize| self.sessions[**index].may_be_of(owner);
        let index = match known.iter().find(its) {
            Some(index) => *index,
            None => {
                known.push(self.sessions.len());
                self.sessions.push(SessionBuilder::new(uuid, place.clone()));
                self.sessions.len() - 1
            }
        };
        let session = &mut self.sessions[index];
        session.own(owner);
        session
    }

    /// Notes that pages of a session need its schema stream up to this byte, whether it is read or not. Parts wait
    /// for it. The session is that of the host which [`Self::own`] names.
    pub fn need_schema(&mut self, session: Uuid, bytes: u64) {
        let place = Place {
            source: "what pages need".into(),
            block: 0,
            offset: 0,
        };
        self.session(session, &place).need_schema(bytes);
    }

    /// Checks every page and reads the schema, session by session, then puts the sessions of each
    /// process together and fits the clocks.
    #[must_use]
    pub fn finish(mut self) -> Dump {
        let mut clocks = Vec::new();
        for builder in self.sessions.into_iter().filter(SessionBuilder::is_known) {
            let number = self.dump.sessions.len();
            let damaged = self.dump.damage.len();
            let (mut session, clock) = builder.finish(number, &mut self.dump.damage);
            if session.stored_host.is_none() {
                session.stored_host = self.hosts.remove(&session.uuid);
            }
            session.is_shortened = self.shortened.contains(&session.uuid);
            if self.choice.passes(&session) {
                self.dump.sessions.push(session);
                clocks.push(clock);
            } else {
                self.dump.damage.truncate(damaged);
            }
        }
        process::join(&mut self.dump.sessions, clocks);
        if !self.is_bare {
            self.dump.threads = spans::contain(&mut self.dump.sessions);
        }
        self.dump
    }
}
