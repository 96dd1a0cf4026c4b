//! `record`: whole sessions to a dump while the programs run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::ValueEnum;
use ringmark_reader::record::RecordOptions;
use ringmark_reader::{
    Access, Codec, Destination, Dump, ReaderError, Rotation, Selection, Session, find, notes,
};

use crate::output::file::{DEFAULT_FILE, destination};
use crate::output::units::{count, counted, parse_size, size};
use crate::output::{Exit, Failure, note, printable};
use crate::recording::child::{self, NotStarted, Traced};
use crate::recording::signals::Signals;
use crate::recording::{self, Outcome};
use crate::tracing::preload::{self, Preload};

/// Record programs to a dump while they run
#[derive(Debug, clap::Args)]
#[command(override_usage = "ringmark record [OPTIONS] <-p PID|--all|-- CMD...>")]
#[command(after_help = "\
A program started here is traced with
RINGMARK=mode=discard,ring=1M,session=64M,keep=always unless RINGMARK is set to more than 1; what
it leaves is kept until it is recorded, unless RINGMARK says keep=….
Ctrl-C once finishes the dump, twice ends now.

Examples:
  ringmark record -o run.rmk -- ./server --port 80
  ringmark record -p 812 --rotate 64M --keep 10
  ringmark record --all --on-death /var/lib/ringmark")]
pub(crate) struct Args {
    /// Where the dump goes; a file that is there becomes FILE.old
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    output: PathBuf,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    pub(crate) dump: DumpOptions,
    #[command(flatten)]
    functions: preload::Options,
    /// Write a dump of a session into DIR when its process dies
    #[arg(long, value_name = "DIR", requires = "all", conflicts_with = "output")]
    on_death: Option<PathBuf>,
    /// Say how the recording went in FILE, as one line of JSON
    #[arg(long, value_name = "FILE")]
    status_file: Option<PathBuf>,
}

/// What to record.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Target {
    /// Record a process that runs, by its pid
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Record all sessions, present and future
    #[arg(long)]
    all: bool,
    /// Start this program and record it and what it starts
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// How the dump is written.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct DumpOptions {
    /// Start a new file when one reaches SIZE; the older ones are FILE.1, FILE.2, …
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    rotate: Option<u64>,
    /// Files that rotation keeps, the one being written included
    #[arg(long, value_name = "N", default_value_t = 2, requires = "rotate",
        value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
    /// Stop with exit code 1 when the dump would get larger than SIZE
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with = "rotate")]
    max_size: Option<u64>,
    /// Give pages back to the program only when the disk has them: they outlive a power loss. What
    /// is still in a living ring file never does
    #[arg(long)]
    sync: bool,
    /// Compress pages
    #[arg(long, value_name = "CODEC")]
    compress: Option<Compression>,
    /// When the disk is full, wait for space instead of ending
    #[arg(long)]
    wait_for_space: bool,
}

/// Codecs by their names here.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Compression {
    /// LZ4
    Lz4,
    /// LZ4 after a reversible filter of the records: smaller
    Delta,
}

impl DumpOptions {
    /// A dump with these options, created now.
    ///
    /// # Errors
    /// It cannot be created.
    pub(crate) fn create(&self, to: &Destination) -> anyhow::Result<Dump> {
        if self.rotate.is_some() && *to == Destination::Stdout {
            return Err(Failure::usage(
                "--rotate: standard output cannot be rotated, expected -o FILE",
            )
            .into());
        }
        if self.sync && *to == Destination::Stdout {
            return Err(Failure::usage(
                "--sync: nobody knows when the disk has what went to standard output, expected -o FILE",
            )
            .into());
        }
        let mut dump =
            Dump::create(to, self.sync).map_err(|error| Failure::usage(error.to_string()))?;
        dump.set_codec(self.codec());
        dump.set_rotation(self.rotate.map(|bytes| Rotation {
            bytes,
            keep: self.keep,
        }));
        dump.set_bytes_max(self.max_size);
        Ok(dump)
    }

    fn codec(&self) -> Codec {
        match self.compress {
            None => Codec::None,
            Some(Compression::Lz4) => Codec::Lz4,
            Some(Compression::Delta) => Codec::DeltaShuffleLz4,
        }
    }

    fn options(&self) -> RecordOptions {
        RecordOptions {
            wait_for_space: self.wait_for_space,
            ..RecordOptions::default()
        }
    }
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        if let Some(directory) = &self.on_death {
            return recording::watch_deaths(directory, self.dump.codec());
        }
        let result = self.record();
        let exit = match &result {
            Ok(Ok(outcome)) => {
                tell(outcome, &self.output);
                outcome.exit()
            }
            Ok(Err(not_started)) => {
                note(&not_started.text);
                not_started.exit
            }
            // Not used: the error itself has its exit code.
            Err(_) => Exit::NO_TARGET,
        };
        recording::write_status(self.status_file.as_ref(), &result)?;
        result.map(|_| exit)
    }

    fn record(&self) -> anyhow::Result<Result<Outcome, NotStarted>> {
        let preload = self.functions.preload()?;
        if preload.is_some() && self.target.command.is_empty() {
            let text = "--tracer: expected -- CMD; 'ringmark trace start -p PID' is for processes that run";
            return Err(Failure::usage(text).into());
        }
        match self.target.pid {
            Some(pid) => {
                check(pid)?;
                self.sessions(Selection::Pid(pid)).map(Ok)
            }
            None if self.target.all => self.sessions(Selection::All).map(Ok),
            None => {
                let preload = preload.as_ref();
                command(&self.target.command, &self.output, &self.dump, preload)
            }
        }
    }

    fn sessions(&self, selection: Selection) -> anyhow::Result<Outcome> {
        let to = destination(&self.output)?;
        let dump = self.dump.create(&to)?;
        recording::record(selection, dump, self.dump.options())
    }
}

/// That a process can be recorded: before a dump that is there is renamed for nothing.
fn check(pid: u32) -> Result<(), ReaderError> {
    let found = find::by_pid(pid)?;
    found
        .iter()
        .try_for_each(|place| Session::open_found(place, Access::Consume).map(drop))
}

/// Runs a program and records it. The inner error: it did not start.
///
/// # Errors
/// The dump cannot be created, or `RINGMARK` cannot be used; then nothing was started.
pub(crate) fn command(
    command: &[OsString],
    output: &Path,
    dump: &DumpOptions,
    preload: Option<&Preload>,
) -> anyhow::Result<Result<Outcome, NotStarted>> {
    child::check_settings()?;
    if let Some(not_started) = child::missing(command) {
        return Ok(Err(not_started));
    }
    if let (Some(_), Some(program)) = (preload, command.first()) {
        Preload::tell_of(program);
    }
    let to = destination(output)?;
    let options = RecordOptions {
        remove_kept: child::kept_by_us(),
        ..dump.options()
    };
    let dump = dump.create(&to)?;
    let signals = Signals::watch()?;
    let begun = SystemTime::now() - CLOCK_STEP;
    let traced = match Traced::start(command, to == Destination::Stdout, preload) {
        Ok(traced) => traced,
        Err(not_started) => return Ok(Err(not_started)),
    };
    let pid = traced.pid();
    let mut outcome = recording::record_command(traced, &signals, dump, options)?;
    // Not one that an earlier process of this number left.
    let off = notes::off_note(pid).filter(|note| note.written >= begun);
    let off = off.map(|note| printable(&note.reason));
    if outcome.progress.sessions_done > 0 {
        outcome.not_recorded = off.is_some();
        let what = match preload {
            Some(_) => "the program's own events were NOT recorded, only its functions",
            None => "a part of the program was NOT recorded",
        };
        let trouble = off.map(|reason| format!("{what}: {reason}"));
        outcome.trouble.extend(trouble);
    } else if outcome.trouble.is_empty() {
        let why = why_not_traced(pid, off, outcome.command);
        outcome.trouble.push(why);
    }
    Ok(Ok(outcome))
}

/// Times of files are up to a tick of the kernel's clock older than what the clock says.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// The process's own reason, else what its exit code says, else what there is to know.
fn why_not_traced(pid: u32, off: Option<String>, exit: Option<Exit>) -> String {
    match (off, exit) {
        (Some(reason), _) => format!("tracing is off in pid {pid}: {reason}"),
        (None, Some(Exit(code @ (126 | 127)))) => format!(
            "nothing recorded: pid {pid} ended with {code}, as what cannot be loaded or executed does"
        ),
        _ if child::is_off() => "nothing recorded: RINGMARK=0 switches tracing off".to_owned(),
        _ => format!(
            "no session appeared in pid {pid}: recorded are sessions that a program starts as \
             RINGMARK says, with ringmark::start_from_env() or ringmark_start_from_env(); one that it \
             starts with a builder is recorded while it runs: 'ringmark record -p PID'. \
             RINGMARK_VERBOSE=1 has a program say what went wrong"
        ),
    }
}

/// One line on how it went; trouble in one line, too.
pub(crate) fn tell(outcome: &Outcome, output: &Path) {
    if !outcome.trouble.is_empty() {
        note(&outcome.trouble.join("; "));
    }
    let progress = &outcome.progress;
    // A recording that failed says itself what it wrote.
    let is_empty = progress.bytes == 0 && !outcome.incomplete;
    if is_empty && std::fs::metadata(output).is_ok_and(|old| old.len() > 0) {
        note(&format!(
            "{}: nothing was written, it is as it was",
            output.display()
        ));
    }
    if progress.sessions_done > 0 {
        note(&format!(
            "{}: {}, {}, {}, {} lost",
            output.display(),
            counted(progress.sessions_done as u64, "session"),
            counted(progress.pages, "page"),
            size(progress.bytes),
            count(progress.lost)
        ));
    }
}
