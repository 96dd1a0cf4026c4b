//! Threads that options name.

use std::collections::BTreeSet;

use ringmark_console::Failure;
use ringmark_console::units::count;
use ringmark_decoder::Dump;

/// Threads that are named when one is wanted that is not there.
const SHOWN: usize = 8;

/// The thread with this id.
///
/// # Errors
/// It is no number.
pub(crate) fn parse(text: &str) -> Result<u32, String> {
    let id = text.parse();
    id.map_err(|_| format!("found {text:?}, expected a thread id, a number"))
}

/// Checks that a trace has these threads.
///
/// # Errors
/// It has not: a mistyped number would show nothing.
pub(crate) fn require(wanted: &[u32], dump: &Dump) -> Result<(), Failure> {
    if wanted.is_empty() {
        return Ok(());
    }
    let slots = dump.sessions.iter().flat_map(|session| &session.slots);
    let pages = slots.flat_map(|slot| &slot.pages);
    let there: BTreeSet<u32> = pages.map(|page| page.header.tid).collect();
    let Some(missing) = wanted.iter().find(|tid| !there.contains(tid)) else {
        return Ok(());
    };
    let mut names: Vec<_> = there.iter().take(SHOWN).map(u32::to_string).collect();
    if there.len() > SHOWN {
        names.push(format!("{} more", count((there.len() - SHOWN) as u64)));
    }
    let there = match names.as_slice() {
        [] => "the trace has none".to_owned(),
        names => format!("there are: {}", names.join(", ")),
    };
    Err(Failure::usage(format!(
        "--tid: no thread {missing}; {there}"
    )))
}
