//! What was stored of a session is made durable, while more of it may come.

use super::error::StoreError;
use super::session::Shared;
use crate::figures::Figures;
use crate::lock::lock;

/// Returns when everything that was added to a session before the call is on the disk. More can be
/// added while it runs; one thread syncs at a time, so that none takes for durable what is on its
/// way.
///
/// # Errors
/// What `fsync` said. The system may have given up what it could not write, and says so once: the
/// session can only be found again, without all that is not durable.
pub fn make_durable(session: &Shared) -> Result<(), StoreError> {
    let (syncing, context) = lock(session).for_sync();
    let _alone = lock(&syncing);
    let mut unsynced = lock(session).take_unsynced()?;
    if unsynced.is_empty() {
        return Ok(());
    }
    let synced = unsynced.sync(&context.options.root);
    if synced.is_err() {
        let mut session = lock(session);
        unsynced.then(std::mem::take(&mut session.unsynced));
        session.unsynced = unsynced;
        session.has_failed = true;
        // Where it does not work it is tried again before the session is found again.
        let _ = session.give_up();
        return synced;
    }
    Figures::add(&context.figures.syncs_total, 1);
    Ok(())
}
