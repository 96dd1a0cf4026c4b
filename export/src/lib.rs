//! Traces in the formats of other viewers.
//!
//! [`Plan`] goes through a dump once and says how much there is; then [`write()`]
//! goes through it again and writes. The output is written as it is made, so memory does not grow
//! with it.
#![forbid(unsafe_code)]

mod ctf;
mod folded;
mod folded_samples;
mod gathered;
mod html;
mod otlp;
mod perfetto;
mod texts;
mod timeline;

use std::io::{self, Write};
use std::path::Path;

use ringmark_decoder::ThreadDoes;

pub use html::about::About;
pub use html::profile_page::ProfileWords;
pub use otlp::{Signal, write_otlp};
pub use timeline::items::Cut;
pub use timeline::plan::{Counts, Plan};
pub use timeline::play::Written;

use html::writer::Html;
use perfetto::writer::Perfetto;
use timeline::play::play;

/// A format that a trace can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Perfetto's own, for ui.perfetto.dev and its trace processor.
    Perfetto,
    /// Folded stacks with the time in each, in ns: a line `outer;inner 120` for each stack. With what threads did: the time
    /// in which they did this.
    Folded(Option<ThreadDoes>),
    /// Folded stacks of the functions that ran, by samples, with the time in each, in ns.
    FoldedSamples,
}

/// Writes a trace. `progress` is told now and then how many of how many records were written.
///
/// # Errors
/// Those of `out`.
pub fn write(
    plan: &Plan<'_>,
    format: Format,
    out: &mut impl Write,
    progress: impl FnMut(u64, u64),
) -> io::Result<Written> {
    match format {
        Format::Perfetto => play(plan, &mut Perfetto::new(plan, out), progress),
        Format::Folded(does) => folded::write((plan, does), out, progress),
        Format::FoldedSamples => folded_samples::write(plan, out),
    }
}

/// Writes a trace as CTF 1.8, in a folder that must not be there.
///
/// # Errors
/// Those of the file system.
pub fn write_ctf(
    plan: &Plan<'_>,
    folder: &Path,
    progress: impl FnMut(u64, u64),
) -> io::Result<Written> {
    ctf::writer::write(plan, folder, progress)
}

/// Writes a trace as one HTML page that needs nothing else. All of what it shows is in memory until it
/// is written.
///
/// # Errors
/// Those of `out`.
pub fn write_html(
    plan: &Plan<'_>,
    about: &About,
    out: &mut impl Write,
    progress: impl FnMut(u64, u64),
) -> io::Result<Written> {
    play(plan, &mut Html::new(plan, about, out), progress)
}

/// Writes a profile as one HTML page that needs nothing else. Returns how many bytes it has.
///
/// # Errors
/// Those of `out`.
pub fn write_profile(
    profile: &ringmark_profile::Profile,
    words: &ProfileWords,
    out: &mut impl Write,
) -> io::Result<u64> {
    html::profile_page::write(profile, words, out)
}
