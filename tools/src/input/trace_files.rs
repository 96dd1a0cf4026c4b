//! Trace files and stores as a command line names them, read into one [`Dump`].

use std::collections::HashMap;
use std::fs;
use std::io::{self, IsTerminal};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use ringmark_decoder::store::{self, SegmentName};
use ringmark_decoder::{Damage, Dump, DumpBuilder, Fault, Filter, SessionChoice};
use ringmark_format::Uuid;

use super::notices;
use crate::options::sessions::SessionOptions;
use crate::output::file::{DEFAULT_FILE, is_standard};
use crate::output::units::{counted, size};
use crate::output::{Failure, note};

/// What to read: trace files, of which some processes may be chosen, or a running process.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Input {
    /// Trace files and stores, read together; '-' is standard input [default: ringmark.rmk]
    #[arg(value_name = "FILE", hide_default_value = true)]
    files: Vec<PathBuf>,
    /// A process that runs, or with FILE: only this process in FILE
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    #[command(flatten)]
    sessions: SessionOptions,
}

impl Input {
    /// The running process that is meant; `None`: trace files are.
    ///
    /// # Errors
    /// A host or service is named for a running process.
    pub(crate) fn process(&self) -> Result<Option<u32>, Failure> {
        if self.pid.is_none() || !self.files.is_empty() {
            return Ok(None);
        }
        self.sessions.require_none()?;
        Ok(self.pid)
    }

    /// The trace files: those that are named, or the default one.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        match self.files.is_empty() {
            true => vec![DEFAULT_FILE.into()],
            false => self.files.clone(),
        }
    }

    /// Checks that no process of a file is chosen: the option named `by` shows all.
    ///
    /// # Errors
    /// One is.
    pub(crate) fn require_whole(&self, by: &str) -> Result<(), Failure> {
        if self.process()?.is_some() || self.choice().is_all() {
            return Ok(());
        }
        let text =
            format!("{by} shows all of FILE, expected no --host, --service or --pid with it");
        Err(Failure::usage(text))
    }

    /// The sessions that are meant in the files.
    pub(crate) fn choice(&self) -> SessionChoice {
        self.sessions.choice(self.pid)
    }

    /// Reads what a filter may let pass.
    ///
    /// # Errors
    /// As [`read`].
    pub(crate) fn read_for(&self, filter: &Filter) -> anyhow::Result<Dump> {
        self.read_into(DumpBuilder::new(), filter)
    }

    /// As [`Self::read_for`], for those that do not ask which finished spans are around an event.
    ///
    /// # Errors
    /// As [`read`].
    pub(crate) fn read_bare_for(&self, filter: &Filter) -> anyhow::Result<Dump> {
        self.read_into(DumpBuilder::new().bare(), filter)
    }

    fn read_into(&self, builder: DumpBuilder, filter: &Filter) -> anyhow::Result<Dump> {
        let dump = read_chosen(builder, &self.files(), filter, &self.choice())?;
        notices::tell_choice(&dump, &self.choice());
        Ok(dump)
    }

    /// Reads another trace file or store: of the same hosts and services, and of all processes.
    ///
    /// # Errors
    /// As [`read`].
    pub(crate) fn read_other(&self, file: &Path, filter: &Filter) -> anyhow::Result<Dump> {
        let choice = self.sessions.choice(None);
        let dump = read_chosen(DumpBuilder::new(), &[file.to_owned()], filter, &choice)?;
        notices::tell_choice(&dump, &choice);
        Ok(dump)
    }

    /// Reads them all and prints nothing about damage.
    ///
    /// # Errors
    /// One of them cannot be read, or is no trace file.
    pub(crate) fn read_quietly(&self) -> anyhow::Result<Dump> {
        let dump = put_together(
            DumpBuilder::new(),
            &self.files(),
            &Filter::new(),
            &self.choice(),
        )?;
        notices::tell_choice(&dump, &self.choice());
        Ok(dump)
    }
}

/// Reads the sessions that are meant.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_sessions(files: &[PathBuf], choice: &SessionChoice) -> anyhow::Result<Dump> {
    let dump = read_chosen(DumpBuilder::new(), files, &Filter::new(), choice)?;
    notices::tell_choice(&dump, choice);
    Ok(dump)
}

/// Reads trace files together. Damage and steps of clocks are told on standard error.
///
/// # Errors
/// One of them cannot be read, or is no trace file.
pub(crate) fn read(files: &[PathBuf]) -> anyhow::Result<Dump> {
    let choice = SessionChoice::default();
    read_chosen(DumpBuilder::new(), files, &Filter::new(), &choice)
}

/// Reads what a filter may let pass: segments of a store whose index says that they hold nothing
/// of its time are left out.
fn read_chosen(
    builder: DumpBuilder,
    files: &[PathBuf],
    filter: &Filter,
    choice: &SessionChoice,
) -> anyhow::Result<Dump> {
    let dump = put_together(builder, files, filter, choice)?;
    if dump.left_out_bytes > 0 {
        note(&format!(
            "{} of other times were not read",
            size(dump.left_out_bytes)
        ));
    }
    if dump.removed_segments > 0 {
        note(&removed_text(dump.removed_segments));
    }
    notices::tell_all(&dump);
    Ok(dump)
}

fn put_together(
    mut builder: DumpBuilder,
    files: &[PathBuf],
    filter: &Filter,
    choice: &SessionChoice,
) -> anyhow::Result<Dump> {
    let mut all = Segments::default();
    builder.choose(choice.clone());
    for file in &expanded(files)? {
        let File { path, is_segment } = file;
        let named = store::parse_stored(path).filter(|_| *is_segment);
        if let (Some(host), Some(named)) = (file.host(), named) {
            if !choice.host_passes(host.as_bytes()) {
                all.passed_over = true;
                continue;
            }
            builder.name_host(named.session, host.as_bytes());
        }
        if filter.has_time()
            && let Some(index) = store::load_index(path)
            && !index.may_pass(filter)
        {
            let bytes = index.about.segment_bytes;
            builder.leave_out(index.session, &index.slots, bytes);
            all.oldest.there(named);
            continue;
        }
        // One that is just being begun holds nothing yet.
        if *is_segment && fs::metadata(path).is_ok_and(|about| about.len() == 0) {
            continue;
        }
        let input = match is_segment {
            true => match all.open(path) {
                Some(opened) => {
                    all.oldest.there(named);
                    opened
                }
                None => continue,
            },
            false => open(path)?,
        };
        if let Err(damage) = input.read_into(&mut builder) {
            if !is_segment {
                return Err(Failure::unreadable(damage.to_string()).into());
            }
            // The rest of a store is shown, and this is told as damage.
            all.refused = Some(damage.to_string());
        }
    }
    all.oldest.shorten(&mut builder);
    all.finish(builder.finish())
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
    /// Some belong to hosts that are not wanted.
    passed_over: bool,
}

impl Segments {
    /// Opens a segment; `None` if that fails.
    fn open(&mut self, path: &Path) -> Option<Opened> {
        let name = path.display().to_string();
        match fs::File::open(path) {
            Ok(file) => return Some(Opened::File(path.to_owned(), file)),
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

    /// The dump with what is known of the segments that could not be read.
    fn finish(self, mut dump: Dump) -> anyhow::Result<Dump> {
        if dump.blocks == 0 && dump.left_out_bytes == 0 && !self.passed_over {
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

/// Text about segments that were removed.
fn removed_text(segments: u64) -> String {
    let segments = counted(segments, "segment");
    format!("{segments} removed by the collector while the store was read")
}

/// Number of copies of what was cut off segments, in the stores among `files`.
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

/// A file to read.
struct File {
    path: PathBuf,
    /// It was found in a store, not named on the command line.
    is_segment: bool,
}

impl File {
    /// Name of its host in the store that it was found in.
    fn host(&self) -> Option<&str> {
        store::host(&self.path).filter(|_| self.is_segment)
    }
}

/// The files to read: for a store's directory, the trace files below it.
fn expanded(files: &[PathBuf]) -> anyhow::Result<Vec<File>> {
    let mut all = Vec::new();
    for path in files {
        if !path.is_dir() {
            let (path, is_segment) = (path.clone(), false);
            all.push(File { path, is_segment });
            continue;
        }
        let unreadable = |what: String| Failure::unreadable(format!("{}: {what}", path.display()));
        let found = store::dumps_below(path).map_err(|error| unreadable(error.to_string()))?;
        if found.is_empty() {
            let what = match path.join(store::ID_FILE).is_file() {
                true => "is a store in which nothing is yet, expected one with trace files",
                false => "is a directory without trace files, expected a trace file or a store",
            };
            return Err(unreadable(what.to_owned()).into());
        }
        let segment = |path| File {
            path,
            is_segment: true,
        };
        all.extend(found.into_iter().map(segment));
    }
    Ok(all)
}

/// An input that was opened.
pub(crate) enum Opened {
    /// It can be read once only: a pipe, or standard input. Its name for messages comes with it.
    Stream(String, Box<dyn io::Read>),
    /// A file, which pages are read from again when they are needed.
    File(PathBuf, fs::File),
}

impl Opened {
    fn read_into(self, builder: &mut DumpBuilder) -> Result<(), Damage> {
        match self {
            Self::Stream(name, input) => builder.read(&name, input),
            Self::File(path, file) => builder.read_file(&path, file),
        }
    }
}

/// Opens an input for reading.
///
/// # Errors
/// It is not there, or nothing that can be read as a trace file.
pub(crate) fn open(path: &Path) -> anyhow::Result<Opened> {
    if is_standard(path) {
        if io::stdin().is_terminal() {
            return Err(
                Failure::usage("standard input is a terminal, expected a trace file").into(),
            );
        }
        let name = "standard input".to_owned();
        return Ok(Opened::Stream(name, Box::new(io::stdin())));
    }
    let name = path.display().to_string();
    let unreadable = |what: String| Failure::unreadable(format!("{name}: {what}"));
    let about = fs::metadata(path).map_err(|error| unreadable(cannot_open(path, &error)))?;
    if about.is_dir() {
        return Err(unreadable("is a directory, expected a trace file".to_owned()).into());
    }
    if about.file_type().is_socket() {
        return Err(unreadable("is a socket, expected a trace file".to_owned()).into());
    }
    if about.file_type().is_char_device() {
        return Err(unreadable("is a device, expected a trace file".to_owned()).into());
    }
    let file = fs::File::open(path).map_err(|error| unreadable(cannot_open(path, &error)))?;
    Ok(match about.is_file() {
        true => Opened::File(path.to_owned(), file),
        false => Opened::Stream(name, Box::new(file)),
    })
}

fn cannot_open(path: &Path, error: &io::Error) -> String {
    let hint = if error.kind() == io::ErrorKind::NotFound && path.as_os_str() == DEFAULT_FILE {
        "; name a trace file, or make one with 'ringmark record -- CMD'"
    } else {
        ""
    };
    format!("cannot be opened: {error}{hint}")
}
