//! What a library that answers requests does with the session's helper thread.

use rustix::thread::futex;

use super::core::Core;
pub use super::held_signals::HeldSignals;
use super::process;
use super::warm::futex_half;
use crate::thread_block;

/// Says that the library works on a request: the peer waits on, and does not take the process for a
/// stopped one. Called once for each piece of work; costs a few nanoseconds.
pub fn working() {
    let Some(core) = Core::current() else { return };
    if let Some(mailbox) = core.file.mailbox() {
        mailbox.work();
    }
}

/// Wakes the helper thread, which then calls the `idle` of the library. `false`: there is no helper
/// thread, or this thread is it. Begins the session of a forked child that has none yet.
///
/// A wake-up just before the helper thread sleeps is missed, so a thread that waits for `idle` repeats it.
/// Takes no lock.
#[must_use]
pub fn wake() -> bool {
    let is_served =
        |core: &&Core| core.wiped.is_ours() && core.options.control && !core.file.closed();
    // A forked child may have recorded nothing so far, and has no session then.
    let core = Core::current().or_else(process::session_after_fork);
    let core = core.filter(is_served);
    let mailbox = core.and_then(|core| core.file.mailbox());
    // Only the helper thread has this mark.
    let Some(mailbox) = mailbox.filter(|_| !thread_block::never_waits()) else {
        return false;
    };
    // All of them: tools wait for answers on the same word.
    let _ = futex::wake(futex_half(&mailbox), futex::Flags::empty(), i32::MAX as u32);
    true
}
