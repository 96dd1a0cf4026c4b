//! Dumps as a command line names them, read into one [`Dump`].

use std::fs::{self, File};
use std::io::{self, IsTerminal};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use ringmark_decoder::store;
use ringmark_decoder::{Damage, Dump, DumpBuilder, Fault, Filter, Session, Verification};

use crate::output::event_lines::has_dates;
use crate::output::file::{DEFAULT_FILE, is_standard};
use crate::output::units::{counted, duration, size};
use crate::output::{Failure, note, printable};

/// Most damages that are told one by one.
const DAMAGES_SHOWN: usize = 10;

/// What a person should know of such a session.
pub(crate) const SCHEMA_INCOMPLETE: &str = "the session had no room to describe all its event types; events of the others are shown as raw bytes. A larger session has room: session_bytes, or session= in RINGMARK";

/// Dumps to read; without any, the default file.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Files {
    /// Dumps to read together; '-' is standard input
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE)]
    pub(crate) files: Vec<PathBuf>,
}

impl Files {
    /// Reads them all and says nothing of damage.
    ///
    /// # Errors
    /// One of them cannot be read, or is no dump.
    pub(crate) fn read_quietly(&self) -> anyhow::Result<Dump> {
        read_quietly(&self.files)
    }
}

/// Reads dumps together. Damage and steps of clocks are told on standard error.
///
/// # Errors
/// One of them cannot be read, or is no dump.
pub(crate) fn read(files: &[PathBuf]) -> anyhow::Result<Dump> {
    read_for(files, &Filter::new())
}

/// The same for somebody who wants only what the filter lets pass: segments whose index says that
/// they hold nothing of its time are left out.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_for(files: &[PathBuf], filter: &Filter) -> anyhow::Result<Dump> {
    let dump = put_together(files, filter)?;
    if dump.left_out_bytes > 0 {
        note(&format!(
            "{} of other times were not read",
            size(dump.left_out_bytes)
        ));
    }
    if dump.removed_segments > 0 {
        note(&removed_text(dump.removed_segments));
    }
    tell_damage(&dump);
    tell_unknown(&dump);
    let found = dump.verify();
    tell_steps(&found);
    tell_clocks(&dump, &found);
    tell_schema(&dump);
    Ok(dump)
}

/// Says of which sessions some event types are not described, and what to do.
pub(crate) fn tell_schema(dump: &Dump) {
    for session in dump.sessions.iter().filter(|s| s.schema_incomplete()) {
        let name = String::from_utf8_lossy(session.process_name());
        note(&format!(
            "{} [{}]: {SCHEMA_INCOMPLETE}",
            printable(&name),
            session.pid()
        ));
    }
}

fn read_quietly(files: &[PathBuf]) -> anyhow::Result<Dump> {
    put_together(files, &Filter::new())
}

fn put_together(files: &[PathBuf], filter: &Filter) -> anyhow::Result<Dump> {
    let (mut builder, mut all) = (DumpBuilder::new(), Segments::default());
    for Input { path, is_segment } in &expanded(files)? {
        if filter.has_time()
            && let Some(index) = store::load_index(path)
            && !index.may_pass(filter)
        {
            let bytes = index.about.segment_bytes;
            builder.leave_out(index.session, &index.slots, bytes);
            continue;
        }
        // One that is just being begun holds nothing yet.
        if *is_segment && fs::metadata(path).is_ok_and(|about| about.len() == 0) {
            continue;
        }
        let (name, input) = match is_segment {
            true => match all.open(path) {
                Some(opened) => opened,
                None => continue,
            },
            false => open(path)?,
        };
        if let Err(damage) = builder.read(&name, input) {
            if !is_segment {
                return Err(Failure::unreadable(damage.to_string()).into());
            }
            // Of a store the rest is shown, and this is told as damage.
            all.refused = Some(damage.to_string());
        }
    }
    all.finish(builder.finish())
}

/// What became of a store's segments that could not be read.
#[derive(Default)]
struct Segments {
    /// Those that were removed since the directory was read: retention does.
    removed: u64,
    /// Those that cannot be opened.
    unopened: Vec<Damage>,
    /// Why the last one that could not be used could not.
    refused: Option<String>,
}

impl Segments {
    /// Opens one, with its name for messages; `None`: it cannot be.
    fn open(&mut self, path: &Path) -> Option<(String, Box<dyn io::Read>)> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => return Some((name, Box::new(file))),
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

    /// The dump of those that were read.
    fn finish(self, mut dump: Dump) -> anyhow::Result<Dump> {
        if dump.blocks == 0 && dump.left_out_bytes == 0 {
            let removed = || format!("{}, nothing was read", removed_text(self.removed));
            let why = (self.removed > 0).then(removed);
            if let Some(why) = self.refused.or(why) {
                return Err(Failure::unreadable(why).into());
            }
        }
        dump.damage.extend(self.unopened);
        dump.removed_segments = self.removed;
        Ok(dump)
    }
}

/// Says that segments went.
fn removed_text(segments: u64) -> String {
    let segments = counted(segments, "segment");
    format!("{segments} removed by the collector while the store was read")
}

/// Copies of what was cut off segments, in the stores among these.
///
/// # Errors
/// A directory cannot be read.
pub(crate) fn cut_off(files: &[PathBuf]) -> anyhow::Result<u64> {
    let mut copies = 0;
    for path in files.iter().filter(|path| path.is_dir()) {
        let unreadable = |error| Failure::unreadable(format!("{}: {error}", path.display()));
        copies += store::copies_below(path).map_err(unreadable)?.len() as u64;
    }
    Ok(copies)
}

/// What is to be read.
struct Input {
    path: PathBuf,
    /// It was found in a store, nobody named it.
    is_segment: bool,
}

/// The files themselves; in the place of a store's directory, the dumps below it.
fn expanded(files: &[PathBuf]) -> anyhow::Result<Vec<Input>> {
    let mut all = Vec::new();
    for path in files {
        if !path.is_dir() {
            let (path, is_segment) = (path.clone(), false);
            all.push(Input { path, is_segment });
            continue;
        }
        let unreadable = |what: String| Failure::unreadable(format!("{}: {what}", path.display()));
        let found = store::dumps_below(path).map_err(|error| unreadable(error.to_string()))?;
        if found.is_empty() {
            return Err(unreadable(
                "is a directory without dumps, expected a dump or a store".to_owned(),
            )
            .into());
        }
        let segment = |path| Input {
            path,
            is_segment: true,
        };
        all.extend(found.into_iter().map(segment));
    }
    Ok(all)
}

/// Opens an input for reading; its name for messages comes with it.
///
/// # Errors
/// It is not there, or nothing that can be read as a dump.
pub(crate) fn open(path: &Path) -> anyhow::Result<(String, Box<dyn io::Read>)> {
    if is_standard(path) {
        if io::stdin().is_terminal() {
            return Err(Failure::usage("standard input is a terminal, expected a dump").into());
        }
        return Ok(("standard input".to_owned(), Box::new(io::stdin())));
    }
    let name = path.display().to_string();
    let unreadable = |what: String| Failure::unreadable(format!("{name}: {what}"));
    let about = fs::metadata(path).map_err(|error| unreadable(cannot_open(path, &error)))?;
    if about.is_dir() {
        return Err(unreadable("is a directory, expected a dump".to_owned()).into());
    }
    if about.file_type().is_socket() {
        return Err(unreadable("is a socket, expected a dump".to_owned()).into());
    }
    if about.file_type().is_char_device() {
        return Err(unreadable("is a device, expected a dump".to_owned()).into());
    }
    let file = File::open(path).map_err(|error| unreadable(cannot_open(path, &error)))?;
    Ok((name, Box::new(file)))
}

fn cannot_open(path: &Path, error: &io::Error) -> String {
    let hint = if error.kind() == io::ErrorKind::NotFound && path.as_os_str() == DEFAULT_FILE {
        "; name a dump, or make one with 'ringmark record -- CMD'"
    } else {
        ""
    };
    format!("cannot be opened: {error}{hint}")
}

/// Says what could not be used, and how much was read nevertheless.
fn tell_damage(dump: &Dump) {
    if dump.damage.is_empty() {
        return;
    }
    for damage in dump.damage.iter().take(DAMAGES_SHOWN) {
        note(&damage.to_string());
    }
    let more = dump.damage.len().saturating_sub(DAMAGES_SHOWN);
    if more > 0 {
        note(&format!("{more} more of this kind"));
    }
    note(&format!(
        "{} were read",
        counted(pages(dump), "complete page")
    ));
}

/// Says whose beginning is not known: without a session's header there are no dates.
fn tell_unknown(dump: &Dump) {
    for session in dump
        .sessions
        .iter()
        .filter(|s| !has_dates(s) && !s.slots.is_empty())
    {
        note(&format!(
            "session {}: its header is damaged or missing, so the dates of its events are not known \
             and their times may be in another unit",
            session.uuid
        ));
    }
}

/// Says that order by time is not all there is to know. Events of one thread that go back in time
/// are no reason for that: a signal handler's event may stand before the one that it interrupted;
/// `verify` counts them.
fn tell_steps(found: &Verification) {
    if found.clock_steps > 0 {
        note(&format!(
            "{} go back in time; events are shown in the order of their times, which may not be that in which they happened",
            counted(found.clock_steps, "clock sample"),
        ));
    }
}

/// Says whose clock the times of several hosts are on, and how well that is known.
fn tell_clocks(dump: &Dump, found: &Verification) {
    let Some(error_ns) = found.clock_error_ns.filter(|_| dump.sessions.len() > 1) else {
        return;
    };
    let is_unknown = |s: &&Session| s.clock.error_ns(0).is_none();
    let unknown = dump.sessions.iter().filter(is_unknown).count();
    let mut text = format!(
        "times are on the collector's clock, each at most {} wrong",
        duration(error_ns)
    );
    if unknown > 0 {
        let sessions = counted(unknown as u64, "session");
        text += &format!("; nobody measured the clock of {sessions}");
    }
    note(&text);
}

/// Pages in a dump.
fn pages(dump: &Dump) -> u64 {
    let slots = dump.sessions.iter().flat_map(|s| &s.slots);
    slots.map(|slot| slot.pages.len() as u64).sum()
}
