//! `cat --follow`: new events, shown as they come, each once.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use ringmark_decoder::{Follower, Output, Why};
use ringmark_format::block_at::{self, Blocks};

use super::rings;
use crate::output::event_lines::Printer;
use ringmark_console::extension::store_url;
use ringmark_console::file;
use ringmark_console::file::is_standard;
use ringmark_console::signals::Signals;
use ringmark_console::{Exit, Failure, Sink, note};

/// How often new events are looked for: an event is shown within 100 ms.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// Bytes of a growing file that are read at a time.
const PIECE_BYTES: u64 = 64 << 20;

/// How often sessions that a process has started since are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Follows the rings of a process, in all its sessions, until they have ended, or Ctrl-C.
///
/// # Errors
/// It is not there, not traced, or we may not look.
pub(crate) fn process(pid: u32, printer: &mut Printer<'_>) -> anyhow::Result<Exit> {
    let signals = Signals::watch()?;
    let mut taps = rings::taps(pid)?;
    let mut show = Show::new(format!("pid {pid}"), printer);
    let mut looked = Instant::now();
    loop {
        let stop = signals.received().is_some();
        if looked.elapsed() >= LOOK_EVERY {
            looked = Instant::now();
            let known: Vec<_> = taps.iter().map(|tap| tap.session().uuid()).collect();
            let new = rings::taps(pid).unwrap_or_default().into_iter();
            taps.extend(new.filter(|tap| !known.contains(&tap.session().uuid())));
        }
        let ended = taps.iter().all(|tap| tap.session().ended());
        // In one piece, so that the sessions are merged.
        let mut news = Vec::new();
        for tap in &mut taps {
            news.extend(tap.poll()?);
        }
        show.blocks(&news)?;
        if stop || ended || show.printer.is_done() {
            return Ok(Exit::lost_if(show.is_lossy));
        }
        thread::sleep(POLL_EVERY);
    }
}

/// Follows a trace file that grows, until Ctrl-C. One that is replaced is read from its start.
///
/// # Errors
/// It cannot be read, or is no trace file.
pub(crate) fn file(path: &Path, printer: &mut Printer<'_>) -> anyhow::Result<Exit> {
    if is_standard(path) {
        return Err(Failure::usage(
            "--follow: standard input cannot be followed, expected FILE or -p PID",
        )
        .into());
    }
    if let Some(url) = store_url(path) {
        let text = format!("--follow: {url} is a store, expected FILE or -p PID");
        return Err(Failure::usage(text).into());
    }
    let signals = Signals::watch()?;
    let name = path.display().to_string();
    let mut growing = Growing::open(path)?;
    let mut show = Show::new(name.clone(), printer);
    loop {
        let stop = signals.received().is_some();
        let blocks = growing.more().with_context(|| name.clone())?;
        show.blocks(&blocks)?;
        if stop || show.printer.is_done() {
            return Ok(Exit::lost_if(show.is_lossy));
        }
        if blocks.is_empty() {
            growing.reopen_if_replaced(path)?;
            thread::sleep(POLL_EVERY);
        }
    }
}

/// A file that is appended to, read by whole blocks.
struct Growing {
    file: File,
    offset: u64,
}

impl Growing {
    fn open(path: &Path) -> anyhow::Result<Self> {
        // For its checks and error texts.
        drop(file::open(path)?);
        let file = File::open(path).with_context(|| path.display().to_string())?;
        Ok(Self { file, offset: 0 })
    }

    /// Whole blocks that were appended since the last call.
    fn more(&mut self) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(self.offset))?;
        Read::by_ref(&mut self.file)
            .take(PIECE_BYTES)
            .read_to_end(&mut bytes)?;
        let mut blocks = Blocks::new(&bytes);
        blocks.by_ref().for_each(drop);
        let rest = blocks.rest();
        // What is no block is left to the decoder, which says so.
        if block_at::header(rest).is_ok() {
            bytes.truncate(bytes.len() - rest.len());
        }
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    fn reopen_if_replaced(&mut self, path: &Path) -> anyhow::Result<()> {
        let (Ok(named), Ok(own)) = (std::fs::metadata(path), self.file.metadata()) else {
            return Ok(());
        };
        if (named.dev(), named.ino()) != (own.dev(), own.ino()) || own.len() < self.offset {
            *self = Self::open(path)?;
        }
        Ok(())
    }
}

/// Prints what pieces of a trace bring that was not printed yet.
struct Show<'p, 'f> {
    /// Name of the input in messages.
    name: String,
    printer: &'p mut Printer<'f>,
    follower: Follower,
    out: Sink,
    /// Something is damaged, or lost for another reason than being overwritten.
    is_lossy: bool,
}

impl<'p, 'f> Show<'p, 'f> {
    fn new(name: String, printer: &'p mut Printer<'f>) -> Self {
        let columns = printer.columns();
        Self {
            name,
            printer,
            follower: Follower::default(),
            out: Sink::direct().within(columns),
            is_lossy: false,
        }
    }

    fn blocks(&mut self, news: &[u8]) -> anyhow::Result<()> {
        if news.is_empty() {
            return Ok(());
        }
        let dump = self.follower.read(&self.name, news);
        let dump = dump.map_err(|damage| Failure::unreadable(damage.to_string()))?;
        self.is_lossy |= !dump.damage.is_empty();
        for damage in &dump.damage {
            note(&damage.to_string());
        }
        self.printer.learn_origin(&dump);
        let (mut writer, mut lines) = (self.printer.writer(), Vec::new());
        self.follower.news(&dump, |item| {
            self.is_lossy |=
                matches!(item, Output::Lost(lost) if !matches!(lost.loss.why, Why::Overwritten | Why::Removed | Why::Late));
            self.printer.line(&mut writer, item, &mut lines);
        });
        self.out.write_all(&lines)?;
        Ok(self.out.flush()?)
    }
}
