//! Trace files and stores as a command line names them, read into one [`Dump`].

use std::path::{Path, PathBuf};

use ringmark_decoder::store;
use ringmark_decoder::{Dump, DumpBuilder, Filter, SessionChoice};

use super::notices;
use crate::options::sessions::SessionOptions;
use ringmark_console::extension::{self, place_parser, store_url};
use ringmark_console::file::{self, DEFAULT_FILE, is_standard};
use ringmark_console::units::size;
use ringmark_console::{Failure, note};

/// What to read: trace files, of which some processes may be chosen, or a running process.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Input {
    /// Trace files and stores, read together; '-' is standard input [default: ringmark.rmk]
    #[arg(value_name = "FILE", hide_default_value = true, value_parser = place_parser())]
    files: Vec<PathBuf>,
    /// A process that runs, or with FILE: only this process in FILE
    #[arg(short, long, value_parser = crate::options::process::parse_process)]
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

    /// A file in the working directory with this ending: named after what is read, if that is one file
    /// or store.
    pub(crate) fn named_after(&self, ending: &str) -> PathBuf {
        let default = Path::new(DEFAULT_FILE);
        let name = match self.files.as_slice() {
            [file] if !is_standard(file) => file.file_name().map_or(default, Path::new),
            _ => default,
        };
        let is_trace_file = name.extension() == default.extension();
        let stem = name.file_stem().filter(|_| is_trace_file);
        let mut named = stem.unwrap_or(name.as_os_str()).to_owned();
        named.push(".");
        named.push(ending);
        named.into()
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
        note(&store::removed_text(dump.removed_segments));
    }
    notices::tell_all(&dump);
    Ok(dump)
}

fn put_together(
    builder: DumpBuilder,
    files: &[PathBuf],
    filter: &Filter,
    choice: &SessionChoice,
) -> anyhow::Result<Dump> {
    // Before anything is read that can be read once only.
    if let Some(url) = files.iter().find_map(|path| store_url(path)) {
        let _ = extension::required(url)?;
    }
    Ok(store::read(builder, files, (filter, choice), file::open)?)
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
