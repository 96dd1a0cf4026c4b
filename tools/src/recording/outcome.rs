//! What came of a recording: exit code, lines for a person, the status file.

use std::path::{Path, PathBuf};

use ringmark_format::ending::Ending;
use ringmark_reader::ReaderError;
use ringmark_reader::record::{Ended, Progress, Recorder, SessionEnd};

use crate::output::endings;
use ringmark_console::descriptors;
use ringmark_console::json::Head;
use ringmark_console::status::write_line;
use ringmark_console::units::{count, counted, duration, overwritten, size};
use ringmark_console::{Exit, json, note, text};

/// What came of a recording.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Figures at the end.
    pub(crate) progress: Progress,
    /// What a person should know, one line each.
    pub(crate) trouble: Vec<String>,
    /// The trace file is not whole although nothing was lost in the rings: full disk, size limit.
    pub(crate) incomplete: bool,
    /// Part of what was to be recorded was not, whatever the trace file says.
    pub(crate) not_recorded: bool,
    /// Exit code of the traced program, if one was started.
    pub(crate) command: Option<Exit>,
    /// How the sessions ended that were recorded to their end.
    pub(crate) ends: Vec<SessionEnd>,
    /// What the program found in `RINGMARK`, if one was started.
    pub(crate) settings: Option<String>,
    /// Name, pid and end of the program, if one was started.
    pub(crate) command_end: Option<(String, u32, Ending)>,
}

impl Outcome {
    /// The outcome of a recorder that has ended.
    ///
    /// # Errors
    /// Those of the recorder.
    pub(super) fn of(
        recorder: &mut Recorder,
        ended: Result<Ended, ReaderError>,
    ) -> anyhow::Result<Self> {
        let is_full = ended? == Ended::DumpFull;
        let progress = recorder.progress();
        let left_out = progress.sessions_left_out;
        let is_cut = progress.files_removed > 0 || progress.sessions_cut > 0;
        let mut trouble = recorder.take_notices();
        trouble.extend(descriptors::left_out(left_out));
        if progress.lost > 0 {
            trouble.push(format!("{} lost", counted(progress.lost, "event")));
        }
        Ok(Self {
            incomplete: is_full
                || is_cut
                || left_out > 0
                || progress.sessions_refused > 0
                || !progress.removals.is_nothing(),
            progress,
            trouble,
            not_recorded: false,
            command: None,
            ends: recorder.take_ends(),
            settings: None,
            command_end: None,
        })
    }

    /// The outcome of a recording that failed while its program goes on.
    pub(super) fn failed(error: &anyhow::Error) -> Self {
        Self {
            trouble: vec![text(error)],
            incomplete: true,
            ..Self::default()
        }
    }

    /// Adds what went wrong apart from the recording.
    pub(super) fn fail(&mut self, error: &anyhow::Error) {
        self.trouble.push(text(error));
        self.not_recorded = true;
    }

    /// Adds that pages are missing: a ring in overwrite mode was filled faster than it was read.
    pub(super) fn tell_skipped(&mut self) {
        let pages = self.progress.pages_skipped;
        if pages > 0 {
            let pages = counted(pages, "page");
            self.trouble
                .push(format!("{pages} overwritten before they could be read"));
            self.not_recorded = true;
        }
    }

    /// Exit code: the traced program's, if one was started and its code is not 0. Else whether
    /// something was lost, refused or left out.
    pub(crate) fn exit(&self) -> Exit {
        let is_partial = self.incomplete || self.not_recorded || self.progress.lost > 0;
        match self.command {
            Some(exit) if exit != Exit::FINE => exit,
            _ => Exit::lost_if(is_partial),
        }
    }

    /// Prints each end that was not clean.
    pub(crate) fn tell_ends(&self, output: &Path) {
        let command = self
            .command_end
            .as_ref()
            .filter(|_| self.progress.sessions_done > 0);
        endings::tell_recorded(&self.ends, command, output);
    }

    /// Prints how it went on standard error, in a line or two.
    pub(crate) fn tell(&self, output: &Path) {
        if !self.trouble.is_empty() {
            note(&self.trouble.join("; "));
        }
        let progress = &self.progress;
        let for_room = progress.lost_for_room;
        if let Some(settings) = self.settings.as_ref().filter(|_| for_room > 0) {
            note(&format!(
                "its rings were those of RINGMARK={settings}: with a larger ring= and session=, or with --wait 1s, less is lost"
            ));
        }
        let known = for_room.saturating_add(progress.removals.events);
        let others = progress.lost.saturating_sub(known);
        if others > 0 {
            note(&format!(
                "{} lost where a larger ring does not help, as in a signal handler or a thread that ends: 'ringmark verify' has the causes",
                counted(others, "event")
            ));
        }
        // A recording that failed says itself what it wrote.
        let is_empty = progress.bytes == 0 && !self.incomplete;
        if is_empty && std::fs::metadata(output).is_ok_and(|old| old.len() > 0) {
            note(&format!(
                "{}: nothing was written, it is as it was",
                output.display()
            ));
        }
        if progress.waits.times > 0 {
            note(&format!(
                "the program waited for the recorder {}, {} in all",
                counted(progress.waits.times, "time"),
                duration(progress.waits.ns)
            ));
        }
        if progress.sessions_done > 0 {
            note(&format!(
                "{}: {}, {}, {}, {} lost{}",
                output.display(),
                counted(progress.sessions_done as u64, "session"),
                counted(progress.pages, "page"),
                size(progress.bytes),
                count(progress.lost),
                overwritten(progress.overwritten)
            ));
        }
    }
}

/// Writes the status file, if one is wanted: one line of JSON on how the recording went.
///
/// # Errors
/// The file cannot be written; where the recording failed or a program ran, that is only printed,
/// because the exit code is theirs.
pub(crate) fn write_status(
    path: Option<&PathBuf>,
    result: &anyhow::Result<Outcome>,
) -> anyhow::Result<()> {
    let Some(path) = path else {
        return Ok(());
    };
    let nothing = Outcome::default();
    let (outcome, trouble) = match result {
        Ok(outcome) => (outcome, outcome.trouble.clone()),
        Err(error) => (&nothing, vec![text(error)]),
    };
    let progress = &outcome.progress;
    let status = json::object(
        "recording",
        &Head::default(),
        serde_json::json!({
            "complete": trouble.is_empty(),
            "command": outcome.command.map(|exit| exit.0),
            "sessions": progress.sessions_done,
            "pages": progress.pages,
            "bytes": progress.bytes,
            "lost": progress.lost,
            "overwritten": progress.overwritten,
            "waits": progress.waits.times,
            "waited_ns": progress.waits.ns,
            "trouble": trouble,
        }),
    );
    match write_line(Some(path), &status) {
        Err(error) if outcome.command.is_some() || result.is_err() => note(&text(&error)),
        written => written?,
    }
    Ok(())
}
