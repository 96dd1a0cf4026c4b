//! Patch sites for functions whose compiler left none, as the tool has found them in the files of modules.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ringmark_format::tracer_text::{AnswerLine, Count, MovedSite};
use rustix::process::getppid;
use rustix::thread::{Timespec, nanosleep};

use super::answer_texts;
use super::request_error::RequestError;
use super::requested::Requested;
use crate::engine::with_engine;
use crate::patch::Threads;
use crate::sites::moved::{MovedEntry, MovedTable};
use crate::sites::readable;
use crate::tracers::Tracers;

/// Whether the command that has started this program has handed over all that it found.
static ARE_THERE: AtomicBool = AtomicBool::new(false);
/// How often a program looks for that: for 10 s.
const LOOKS_MAX: usize = 10_000;
const LOOK_EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};

/// Adds the sites of a request, and those that came before it for the same module. Tracers that are on and
/// want them trace them from now on.
pub(super) fn add(
    tracers: &mut Tracers,
    requested: &Requested<'_>,
) -> Result<String, RequestError> {
    if requested.module.is_none() && requested.moved.is_empty() {
        ARE_THERE.store(true, Relaxed);
        return Ok(String::new());
    }
    let (base, build_id) = requested.module.ok_or(RequestError::NoModule)?;
    let table = MovedTable {
        base,
        build_id: hex(build_id).ok_or(RequestError::NoModule)?,
        entries: requested.moved.iter().filter_map(entry).collect(),
    };
    if requested.more {
        with_engine(Threads::Running, |engine| engine.expect_moved(table));
        return Ok(String::new());
    }
    let report = with_engine(Threads::Running, |engine| engine.add_moved(table));
    let report = report.map_err(|error| RequestError::Module(error.to_string()))?;
    tracers.follow_modules();
    let mut text = answer_texts::counts(&[
        (Count::Sites, report.added),
        (Count::Refused, report.refused.len()),
    ]);
    for one in &report.refused {
        let refusal = format!("{}: {}", readable(&one.name, b"", 0), one.reason);
        if !answer_texts::push(&mut text, &AnswerLine::Refusal(&refusal)) {
            break;
        }
    }
    Ok(text)
}

/// Waits until the sites of this program are there, if this process has started it. It waits no longer if that
/// has ended, and not for ever. The thread that answers requests goes on meanwhile.
pub(super) fn wait_for(pid: u32) {
    let is_parent = || {
        let parent = getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
        parent.cast_unsigned() == pid
    };
    for _ in 0..LOOKS_MAX {
        if ARE_THERE.load(Relaxed) || !is_parent() {
            return;
        }
        let _ = nanosleep(&LOOK_EVERY);
    }
}

fn entry(site: &MovedSite<'_>) -> Option<MovedEntry> {
    Some(MovedEntry {
        function: site.function,
        size: u32::try_from(site.bytes).unwrap_or(u32::MAX),
        site: site.site,
        hop: match site.hop {
            Some((at, code)) => Some((at, hex(code)?)),
            None => None,
        },
        keeps_return_address: site.keeps_return_address,
        code: hex(site.code)?,
        name: site.name.as_bytes().to_vec(),
    })
}

/// Bytes that are written as two digits each.
fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok();
    digits.map(byte).collect()
}
