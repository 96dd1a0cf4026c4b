//! Patch sites for functions whose compiler left none, as the tool has found them in the files of modules.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ringmark_format::tracer_text::{AnswerLine, Count, MovedJump, MovedSite, TrampolineRange};
use rustix::process::{getpid, getppid};

use super::answer_texts;
use super::held_start::{self, HeldStart};
use super::request_error::RequestError;
use super::requested::Requested;
use crate::arch::{MOVED_ADDRESSES, MOVED_ENTRY, MOVED_TRAMPOLINE_BYTES};
use crate::engine::{Engine, with_engine};
use crate::patch::Threads;
use crate::sites::moved::{EntryJump, MovedEntry, MovedTable};
use crate::sites::readable;
use crate::tracers::Tracers;

/// Whether the command that has started this program has handed over all that it found.
static ARE_THERE: AtomicBool = AtomicBool::new(false);
/// How often a program looks for that: for 10 s.
const LOOKS_MAX: usize = 10_000;

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
    if requested.put {
        return Ok(were_put(tracers, base));
    }
    let table = MovedTable {
        base,
        build_id: hex(build_id).ok_or(RequestError::NoModule)?,
        entries: requested.moved.iter().filter_map(entry).collect(),
    };
    if requested.more {
        with_engine(Threads::Running, |engine| engine.expect_moved(table));
        return Ok(String::new());
    }
    let has_several = |entry: &MovedEntry| matches!(entry.jump, EntryJump::Several);
    let held = table.entries.iter().any(has_several).then(HeldStart::hold);
    let held = held.flatten();
    let add = |engine: &mut Engine| engine.add_moved(table, held.is_some());
    let report = with_engine(Threads::Running, add);
    drop(held);
    let report = report.map_err(|error| RequestError::Module(error.to_string()))?;
    tracers.follow_modules();
    let mut text = answer_texts::counts(&[
        (Count::Sites, report.added),
        (Count::Refused, report.refused.len()),
    ]);
    for of in report.to_put {
        let range = TrampolineRange {
            at: of.at,
            count: of.count as u64,
            bytes: MOVED_TRAMPOLINE_BYTES as u64,
            entry: MOVED_ENTRY as u64,
            site: MOVED_ADDRESSES as u64,
        };
        answer_texts::push(&mut text, &AnswerLine::Trampolines(range));
    }
    for one in &report.refused {
        let refusal = format!("{}: {}", readable(&one.name, b"", 0), one.reason);
        if !answer_texts::push(&mut text, &AnswerLine::Refusal(&refusal)) {
            break;
        }
    }
    Ok(text)
}

/// Has tracers that are on follow the jumps that the command has put.
fn were_put(tracers: &mut Tracers, base: u64) -> String {
    let (there, missing) = with_engine(Threads::Running, |engine| engine.were_put(base));
    tracers.follow_sites();
    answer_texts::counts(&[(Count::Sites, there), (Count::Refused, missing)])
}

/// Waits until the sites of this program are there, if this process has started it. It waits no longer if that
/// has ended, and not for ever. The thread that answers requests goes on meanwhile, and may hold this one.
pub(super) fn wait_for(pid: u32) {
    let own = getpid();
    let is_parent = || {
        let parent = getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
        parent.cast_unsigned() == pid
    };
    let mut looks = 0;
    held_start::wait_until(|| {
        looks += 1;
        // A child that a signal handler forked does not wait.
        ARE_THERE.load(Relaxed) || !is_parent() || getpid() != own || looks > LOOKS_MAX
    });
}

fn entry(site: &MovedSite<'_>) -> Option<MovedEntry> {
    Some(MovedEntry {
        function: site.function,
        size: u32::try_from(site.bytes).unwrap_or(u32::MAX),
        site: site.site,
        jump: match site.jump {
            MovedJump::OneStore => EntryJump::OneStore,
            MovedJump::Hop(at, code) => EntryJump::Hop(at, hex(code)?),
            MovedJump::Several => EntryJump::Several,
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
