//! The rings of a process now, read without disturbing it.

use ringmark_decoder::{Dump, DumpBuilder};
use ringmark_reader::{Access, Session, Tap, find};

use ringmark_console::Failure;

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
    for tap in taps(pid)? {
        read(tap, &format!("pid {pid}"), &mut builder)?;
    }
    Ok(builder.finish())
}

/// The same of these sessions.
///
/// # Errors
/// A ring file was truncated, or is not ours to understand.
pub(crate) fn of_sessions(sessions: impl IntoIterator<Item = Session>) -> anyhow::Result<Dump> {
    let mut builder = DumpBuilder::new();
    for session in sessions {
        let name = session.path().display().to_string();
        read(Tap::new(session), &name, &mut builder)?;
    }
    Ok(builder.finish())
}

fn read(mut tap: Tap, name: &str, builder: &mut DumpBuilder) -> anyhow::Result<()> {
    let open_spans = tap.open_spans();
    let mut blocks = tap.poll()?;
    blocks.extend(open_spans);
    blocks.extend(tap.ending());
    blocks.extend(tap.counters()?);
    let read = builder.read(name, blocks.as_slice());
    Ok(read.map_err(|damage| Failure::unreadable(damage.to_string()))?)
}
