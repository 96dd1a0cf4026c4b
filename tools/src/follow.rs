//! `cat --follow`: what is new, shown as it comes, each event once.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use ringmark_decoder::{Dump, DumpBuilder, Event, Loss, Lost, Output, Why};
use ringmark_format::Uuid;
use ringmark_format::block::kind;
use ringmark_format::block_at::{self, Blocks};
use ringmark_format::counters::Cause;
use ringmark_format::session::Mode;

use crate::commands::cat::{Printer, Writer};
use crate::input;
use crate::live;
use crate::output::{Exit, Failure, Sink, note};
use crate::signals::Signals;

/// How often new events are looked for: an event is shown within 100 ms.
const POLL_EVERY: Duration = Duration::from_millis(20);
/// Most numbers of uncommitted records that are remembered per slot.
const HOLES_MAX: usize = 1024;

/// How far a slot was shown.
#[derive(Debug, Default)]
struct Shown {
    /// Number of the first event that was not met yet.
    next: u64,
    /// Numbers below `next` that were reserved but not committed when they were met.
    holes: BTreeSet<u64>,
    /// Losses told.
    lost: u64,
    /// Page whose losses were told last.
    page: Option<u64>,
    /// Reservations in the slot up to what is known of that page.
    end: u64,
}

/// Decodes pieces of sessions one after the other.
#[derive(Debug, Default)]
struct Follower {
    /// SESSION and SCHEMA blocks so far: what every piece needs.
    preamble: Vec<u8>,
    slots: HashMap<(Uuid, u32), Shown>,
    lost: bool,
}

/// Follows the rings of a process until it ends, or Ctrl-C.
///
/// # Errors
/// It is not there, not traced, or we may not look.
pub(crate) fn process(pid: u32, printer: &mut Printer<'_>) -> anyhow::Result<Exit> {
    let signals = Signals::watch()?;
    let mut taps = live::taps(pid)?;
    let mut follower = Follower::default();
    let mut out = Sink::direct();
    loop {
        let stop = signals.received().is_some();
        let ended = taps.iter().all(|tap| tap.session().ended());
        for tap in &mut taps {
            let blocks = tap.poll()?;
            follower.show(&format!("pid {pid}"), &blocks, printer, &mut out)?;
        }
        if stop || ended || printer.is_done() {
            return Ok(Exit::lost_if(follower.lost));
        }
        thread::sleep(POLL_EVERY);
    }
}

/// Follows a dump that grows, until Ctrl-C. One that is replaced is read from its start.
///
/// # Errors
/// It cannot be read, or is no dump.
pub(crate) fn file(path: &Path, printer: &mut Printer<'_>) -> anyhow::Result<Exit> {
    if crate::output::file::is_standard(path) {
        return Err(Failure::usage(
            "--follow: standard input cannot be followed, expected FILE or -p PID",
        )
        .into());
    }
    let signals = Signals::watch()?;
    let name = path.display().to_string();
    let mut growing = Growing::open(path)?;
    let mut follower = Follower::default();
    let mut out = Sink::direct();
    loop {
        let stop = signals.received().is_some();
        let blocks = growing.more().with_context(|| name.clone())?;
        follower.show(&name, &blocks, printer, &mut out)?;
        if stop || printer.is_done() {
            return Ok(Exit::lost_if(follower.lost));
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
        drop(input::open(path)?);
        let file = File::open(path).with_context(|| path.display().to_string())?;
        Ok(Self { file, offset: 0 })
    }

    /// Whole blocks that were appended since the last call.
    fn more(&mut self) -> std::io::Result<Vec<u8>> {
        const PIECE: u64 = 64 << 20;
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(self.offset))?;
        Read::by_ref(&mut self.file)
            .take(PIECE)
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

impl Follower {
    /// Prints what these blocks bring that was not shown yet.
    fn show(
        &mut self,
        name: &str,
        news: &[u8],
        printer: &mut Printer<'_>,
        out: &mut Sink,
    ) -> anyhow::Result<()> {
        if news.is_empty() {
            return Ok(());
        }
        let mut builder = DumpBuilder::new();
        let whole = [self.preamble.as_slice(), news].concat();
        builder
            .read(name, whole.as_slice())
            .map_err(|damage| Failure::unreadable(damage.to_string()))?;
        self.remember(news);
        let dump = builder.finish();
        for damage in &dump.damage {
            self.lost = true;
            note(&damage.to_string());
        }
        printer.learn_origin(&dump);
        let lines = self.lines(&dump, printer);
        out.write_all(&lines)?;
        out.flush()?;
        Ok(())
    }

    fn remember(&mut self, news: &[u8]) {
        for block in Blocks::new(news) {
            if matches!(block.header.kind, kind::SESSION | kind::SCHEMA) {
                self.preamble.extend_from_slice(block.bytes);
            }
        }
    }

    fn lines(&mut self, dump: &Dump, printer: &mut Printer<'_>) -> Vec<u8> {
        let mut writer = Writer::new(printer.is_json());
        let mut lines = Vec::new();
        for item in dump.events() {
            // Losses are found here, against what was shown before this piece.
            let Output::Event(event) = item else {
                continue;
            };
            let slot = self
                .slots
                .entry((event.session.uuid, event.slot().0))
                .or_default();
            for loss in slot.losses_before(&event) {
                self.lost |= loss.why != Why::Overwritten;
                let lost = lost_before(&event, loss);
                printer.line(&mut writer, &Output::Lost(lost), &mut lines);
            }
            if slot.is_new(event.seq) {
                printer.line(&mut writer, &item, &mut lines);
            }
        }
        lines
    }
}

fn lost_before<'a>(event: &Event<'a>, loss: Loss) -> Lost<'a> {
    Lost {
        session: event.session,
        page: Some(event.page),
        ring: Some(event.ring()),
        t_ns: event.t_ns,
        loss,
    }
}

impl Shown {
    /// Whether the event with this number was not shown yet; it is from now on.
    fn is_new(&mut self, seq: u64) -> bool {
        if seq < self.next {
            return self.holes.remove(&seq);
        }
        let room = HOLES_MAX.saturating_sub(self.holes.len());
        self.holes.extend((self.next..seq).rev().take(room));
        self.next = seq + 1;
        true
    }

    /// What was lost between what was shown and the page of this event. What happened before the
    /// first page is history.
    fn losses_before(&mut self, event: &Event<'_>) -> Vec<Loss> {
        let header = &event.page.header;
        let start = header.first_event;
        let end = start.saturating_add(event.page.summary.reservations());
        let known = self.page.replace(event.page.number.0);
        if known == Some(event.page.number.0) {
            self.end = self.end.max(end);
            return Vec::new();
        }
        if known.is_none() {
            (self.lost, self.next, self.end) = (header.lost_before, start, start);
        }
        let mut losses = Vec::new();
        let mut push = |why, count| {
            if count > 0 {
                losses.push(Loss { why, count });
            }
        };
        push(cause(event), header.lost_before.saturating_sub(self.lost));
        push(gap(event), start.saturating_sub(self.end));
        self.lost = self.lost.max(header.lost_before);
        self.next = self.next.max(start);
        self.end = self.end.max(end);
        // Nothing is committed any more in the pages before.
        self.holes.clear();
        losses
    }
}

fn mode(event: &Event<'_>) -> Option<Mode> {
    event.session.mode()
}

fn cause(event: &Event<'_>) -> Why {
    Why::Lost((mode(event) == Some(Mode::Lossless)).then_some(Cause::RingFull))
}

fn gap(event: &Event<'_>) -> Why {
    match mode(event) {
        Some(Mode::Overwrite) => Why::Overwritten,
        _ => Why::Missing,
    }
}
