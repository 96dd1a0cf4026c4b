//! Makes what was stored of a session durable, while more of it may come.

use std::time::Instant;

use super::context::SyncHandles;
use super::error::StoreError;
use super::session::SharedSession;
use crate::mutex::lock;

/// Makes everything durable that was added to a session before the call. More can be added while it
/// runs. One thread syncs a session at a time: a second one would find nothing left to sync, and
/// return before the first has finished.
///
/// # Errors
/// What `fsync` said. The system reports a failed write once and may then drop the data. So the
/// session is given up: it will be found again in its files, with only what was durable before.
pub fn make_durable(session: &SharedSession) -> Result<(), StoreError> {
    let SyncHandles { turn, context } = lock(session).segments.sync_handles();
    let _turn = lock(&turn);
    let unsynced = lock(session).segments.take_unsynced()?;
    if unsynced.is_empty() {
        return Ok(());
    }
    let begun = Instant::now();
    let synced = unsynced.sync(&context.options.root);
    if synced.is_err() {
        let mut session = lock(session);
        // If this fails, it is tried again before the session is found again.
        let _ = session.segments.fail(unsynced);
        return synced.map_err(|error| context.failed(error));
    }
    let times = &context.figures.sync_duration_seconds;
    times.count(begun.elapsed());
    Ok(())
}
