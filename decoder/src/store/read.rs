//! Trace files and stores read into one dump: of a store, only the segments that may hold what is
//! looked for.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use ringmark_format::Uuid;

use super::files::{ID_FILE, SegmentName, dumps_below, host, parse_stored, service_directory};
use super::footer::FooterEntry;
use super::index::{SegmentIndex, first_start};
use super::index_file::load_index;
use super::object_names::is_object_store;
use super::object_source::{DirectorySource, ObjectSource};
use super::objects::{Object, Step, objects};
use crate::blocks::damage::{Damage, Fault};
use crate::events::filter::Filter;
use crate::trace_file::choice::SessionChoice;
use crate::trace_file::dump::{Dump, DumpBuilder};

/// Why nothing could be read: a text with the path, what was found and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

/// An input that was opened.
pub enum Opened {
    /// It can be read once only: a pipe, or standard input. Its name for messages comes with it.
    Stream(String, Box<dyn io::Read>),
    /// A file, which pages are read from again when they are needed.
    File(PathBuf, fs::File),
    /// A store of objects that is no directory.
    Objects(Box<dyn ObjectSource>),
}

/// Reads trace files, and the segments of stores, together: those whose names, directories and indexes
/// do not rule out that something in them is chosen and passes the filter. `open` opens what is no
/// directory.
///
/// # Errors
/// Those of `open`; a directory that is no store; nothing that can be read.
pub fn read<E: From<Unreadable>>(
    mut builder: DumpBuilder,
    files: &[PathBuf],
    (filter, choice): (&Filter, &SessionChoice),
    open: impl Fn(&Path) -> Result<Opened, E>,
) -> Result<Dump, E> {
    let mut all = Segments::default();
    builder.choose(choice.clone());
    let files = all.read_stores(files, &mut builder, (filter, choice))?;
    let files = expanded(&files)?;
    let filter = filter.of_store(last_ns(&files, filter, choice));
    let filter = &filter.since(start_ns(&files, &filter, choice), choice.is_by_host());
    for file in &files {
        let File { path, is_segment } = file;
        let named = parse_stored(path).filter(|_| *is_segment);
        if let (Some(host), Some(named)) = (file.host(), named) {
            if !choice.host_passes(host.as_bytes()) {
                all.passed_over = true;
                continue;
            }
            builder.name_host(named.session, host.as_bytes());
        }
        let service = file.service();
        if service.is_some_and(|name| !choice.service_directory_may_pass(name)) {
            all.passed_over = true;
            continue;
        }
        if filter.has_time()
            && let Some(index) = load_index(path)
            && !index.may_pass(filter)
        {
            let about = (index.start_ns(), index.about.segment_bytes);
            builder.leave_out(index.session, &index.slots, about);
            all.oldest.there(named);
            continue;
        }
        // One that is just being begun holds nothing yet.
        if *is_segment && fs::metadata(path).is_ok_and(|about| about.len() == 0) {
            continue;
        }
        let input = match is_segment {
            true => match all.opened(path, fs::File::open(path)) {
                Some(file) => {
                    all.oldest.there(named);
                    Opened::File(path.clone(), file)
                }
                None => continue,
            },
            false => open(path)?,
        };
        all.read(input, file, &mut builder, (filter, choice))?;
    }
    all.oldest.shorten(&mut builder);
    Ok(all.finish(builder.finish())?)
}

/// The stores of objects among the files, and the others. What makes a directory such a store is its
/// identity, `ringmark-store.json`: other files in it are of no account.
fn apart(files: &[PathBuf]) -> (Vec<&Path>, Vec<PathBuf>) {
    let (stores, others): (Vec<_>, Vec<_>) = files.iter().partition(|path| is_object_store(path));
    let stores = stores.into_iter().map(PathBuf::as_path);
    (stores.collect(), others.into_iter().cloned().collect())
}

/// The oldest segment of each session that is there.
#[derive(Default)]
struct OldestSegments(HashMap<Uuid, u32>);

impl OldestSegments {
    /// Takes note of a segment that is there.
    fn there(&mut self, segment: Option<SegmentName>) {
        if let Some(SegmentName { session, number }) = segment {
            let oldest = self.0.entry(session).or_insert(number);
            *oldest = number.min(*oldest);
        }
    }

    /// Tells of the sessions whose first segment is not there: it was removed from the store.
    fn shorten(&self, builder: &mut DumpBuilder) {
        let shortened = self.0.iter().filter(|(_, oldest)| **oldest > 0);
        shortened.for_each(|(session, _)| builder.shorten(*session));
    }
}

/// Segments of a store that could not be read.
#[derive(Default)]
struct Segments {
    /// Number of those that retention removed after the directory was read.
    removed: u64,
    /// Those that cannot be opened.
    unopened: Vec<Damage>,
    /// Why the last of them could not be used.
    refused: Option<String>,
    oldest: OldestSegments,
    /// Some belong to hosts or services that are not wanted.
    passed_over: bool,
}

impl Segments {
    /// A segment that was opened; `None` if that failed.
    fn opened(&mut self, path: &Path, opened: io::Result<fs::File>) -> Option<fs::File> {
        let name = path.display().to_string();
        match opened {
            Ok(file) => return Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.removed += 1,
            Err(error) => {
                let damage = Damage {
                    source: name.into(),
                    block: 0,
                    offset: 0,
                    page: None,
                    fault: Fault::Io(error.to_string()),
                };
                self.refused = Some(damage.to_string());
                self.unopened.push(damage);
            }
        }
        None
    }

    /// Reads what was opened.
    fn read(
        &mut self,
        opened: Opened,
        file: &File,
        builder: &mut DumpBuilder,
        wanted: (&Filter, &SessionChoice),
    ) -> Result<(), Unreadable> {
        let done = match opened {
            Opened::Stream(name, input) => builder.read(&name, input),
            Opened::File(path, file) => builder.read_file(&path, file),
            Opened::Objects(source) => {
                return self.read_objects(&*source, &file.path, builder, wanted);
            }
        };
        match done {
            Err(damage) if !file.is_segment => Err(Unreadable(damage.to_string())),
            // The rest of a store is shown, and this is told as damage.
            Err(damage) => {
                self.refused = Some(damage.to_string());
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Reads the stores of objects among the files; returns the others.
    fn read_stores(
        &mut self,
        files: &[PathBuf],
        builder: &mut DumpBuilder,
        wanted: (&Filter, &SessionChoice),
    ) -> Result<Vec<PathBuf>, Unreadable> {
        let (stores, others) = apart(files);
        for store in stores {
            self.read_objects(&DirectorySource::new(store), store, builder, wanted)?;
        }
        Ok(others)
    }

    /// Reads a store of objects: schema first, then the segments that are wanted.
    ///
    /// Each object is read with the proved hosts that it names, so that a session uuid of two hosts is
    /// two sessions. An object that is gone by then is counted; one that is damaged is read as far
    /// as its blocks are valid, and the rest of the store all the same.
    fn read_objects(
        &mut self,
        source: &dyn ObjectSource,
        root: &Path,
        builder: &mut DumpBuilder,
        (filter, choice): (&Filter, &SessionChoice),
    ) -> Result<(), Unreadable> {
        let unreadable = |what: &str| Unreadable(format!("{}: {what}", root.display()));
        let found = objects(source, filter, choice);
        let found = found.map_err(|error| unreadable(&error.to_string()))?;
        if found.is_empty() {
            let what = "is a store of objects in which nothing is yet, expected one with segments";
            return Err(unreadable(what));
        }
        for object in found {
            let Object { name, step, .. } = object;
            builder.own(object.owners);
            if object.lacks_footer {
                self.unopened.push(Damage {
                    source: source.path(&name).display().to_string().into(),
                    block: 0,
                    offset: 0,
                    page: None,
                    fault: Fault::NoFooter,
                });
            }
            self.read_object(source, &name, step, builder);
        }
        builder.own(HashMap::new());
        Ok(())
    }

    /// Reads an object as far as its step says.
    fn read_object(
        &mut self,
        source: &dyn ObjectSource,
        name: &str,
        step: Step,
        builder: &mut DumpBuilder,
    ) {
        let path = source.path(name);
        match step {
            Step::PassOver => self.passed_over = true,
            Step::LeaveOut(entries, bytes) => {
                let mut bytes = Some(bytes);
                for entry in entries {
                    let bytes = bytes.take().unwrap_or(0);
                    leave_out(&entry, bytes, builder);
                }
            }
            Step::Read => {
                if let Some(file) = self.opened(&path, source.open(name))
                    && let Err(damage) = builder.read_file(&path, file)
                {
                    self.refused = Some(damage.to_string());
                }
            }
            Step::ReadPart(ranges, left_out) => {
                self.passed_over = true;
                for range in ranges {
                    let opened = source.open_range(name, range.clone());
                    let Some(file) = self.opened(&path, opened) else {
                        break;
                    };
                    if let Err(damage) = builder.read_part(&path, file, range) {
                        self.refused = Some(damage.to_string());
                    }
                }
                for entry in left_out {
                    let bytes = entry.bytes.into();
                    leave_out(&entry, bytes, builder);
                }
            }
        }
    }

    /// The dump with what is known of the segments that could not be read.
    fn finish(self, mut dump: Dump) -> Result<Dump, Unreadable> {
        if dump.blocks == 0 && dump.left_out_bytes == 0 && !self.passed_over {
            let removed = || format!("{}, nothing was read", removed_text(self.removed));
            let why = (self.removed > 0).then(removed);
            if let Some(why) = self.refused.or(why) {
                return Err(Unreadable(why));
            }
        }
        dump.damage.extend(self.unopened);
        dump.removed_segments = self.removed;
        Ok(dump)
    }
}

/// Leaves out what a session has in a segment.
fn leave_out(entry: &FooterEntry, bytes: u64, builder: &mut DumpBuilder) {
    let index = entry.index.as_ref();
    let slots = index.map_or(&[][..], |index| &index.slots);
    let start_ns = index.and_then(SegmentIndex::start_ns);
    builder.leave_out(entry.session, slots, (start_ns, bytes));
}

/// Text about segments that were removed.
#[must_use]
pub fn removed_text(segments: u64) -> String {
    let plural = if segments == 1 { "" } else { "s" };
    format!("{segments} segment{plural} removed by the collector while the store was read")
}

/// A file to read.
struct File {
    path: PathBuf,
    /// It was found in a store, not named by the caller.
    is_segment: bool,
}

impl File {
    /// Name of its host in the store that it was found in.
    fn host(&self) -> Option<&str> {
        host(&self.path).filter(|_| self.is_segment)
    }

    /// Name of the directory of its service, likewise.
    fn service(&self) -> Option<&str> {
        service_directory(&self.path).filter(|_| self.is_segment)
    }
}

/// A time that the last event of the chosen sessions does not lie before, in ns since 1970, by the indexes of
/// segments. `None`: not known, or not asked for.
fn last_ns(files: &[File], filter: &Filter, choice: &SessionChoice) -> Option<u64> {
    if !filter.is_of_end() || !choice.is_by_host() {
        return None;
    }
    let is_chosen = |file: &&File| {
        file.host()
            .is_some_and(|host| choice.host_passes(host.as_bytes()))
    };
    let indexes = files
        .iter()
        .filter(is_chosen)
        .filter_map(|file| load_index(&file.path));
    let ends = indexes.map(|index| index.ends_after_ns());
    ends.flatten().max()
}

/// When the first of the sessions began that may be chosen, in ns since 1970, by the indexes of segments. `None`: not known, or not
/// asked for.
fn start_ns(
    files: &[File],
    filter: &Filter,
    choice: &SessionChoice,
) -> Option<RangeInclusive<u64>> {
    if !filter.is_since_start() {
        return None;
    }
    let may_be_chosen = |file: &&File| {
        let host = file.host().map(str::as_bytes);
        let service = file.service();
        file.is_segment
            && host.is_none_or(|host| choice.host_passes(host))
            && service.is_none_or(|service| choice.service_directory_may_pass(service))
    };
    let files = files.iter().filter(may_be_chosen);
    first_start(files.filter_map(|file| {
        let session = parse_stored(&file.path)?.session;
        Some((session, load_index(&file.path).map(Cow::Owned)))
    }))
}

/// The files to read: for a store's directory, the trace files below it.
fn expanded(files: &[PathBuf]) -> Result<Vec<File>, Unreadable> {
    let mut all = Vec::new();
    for path in files {
        if !path.is_dir() {
            let (path, is_segment) = (path.clone(), false);
            all.push(File { path, is_segment });
            continue;
        }
        let unreadable = |what: String| Unreadable(format!("{}: {what}", path.display()));
        let found = dumps_below(path).map_err(|error| unreadable(error.to_string()))?;
        if found.is_empty() {
            let what = match path.join(ID_FILE).is_file() {
                true => "is a store in which nothing is yet, expected one with trace files",
                false => "is a directory without trace files, expected a trace file or a store",
            };
            return Err(unreadable(what.to_owned()));
        }
        let segment = |path| File {
            path,
            is_segment: true,
        };
        all.extend(found.into_iter().map(segment));
    }
    Ok(all)
}
