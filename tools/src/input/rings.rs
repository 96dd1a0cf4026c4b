//! The rings of a process now, read without disturbing it.

use ringmark_decoder::{Dump, DumpBuilder};
use ringmark_reader::{Access, Session, Tap, find};

use crate::output::Failure;

/// Taps on all sessions of a process, the first to start first.
///
/// # Errors
/// The process has no session, or we may not look.
pub(crate) fn taps(pid: u32) -> anyhow::Result<Vec<Tap>> {
    let sessions = find::by_pid(pid)?;
    let open = |found| Session::open_found(found, Access::Observe).map(Tap::new);
    Ok(sessions.iter().map(open).collect::<Result<_, _>>()?)
}

/// A copy of what the rings of a process hold now, in all its sessions.
///
/// # Errors
/// As [`taps`].
pub(crate) fn snapshot(pid: u32) -> anyhow::Result<Dump> {
    let mut builder = DumpBuilder::new();
    for mut tap in taps(pid)? {
        let open_spans = tap.open_spans();
        let mut blocks = tap.poll()?;
        blocks.extend(open_spans);
        blocks.extend(tap.ending());
        blocks.extend(tap.counters()?);
        let name = format!("pid {pid}");
        builder
            .read(&name, blocks.as_slice())
            .map_err(|damage| Failure::unreadable(damage.to_string()))?;
    }
    Ok(builder.finish())
}
