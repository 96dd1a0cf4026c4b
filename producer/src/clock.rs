//! The clock of events, for programs that give an event a tick of its own.

use crate::session;

/// The session's clock in ticks, for [`event_at!`](crate::event_at); 0 without a session.
///
/// ```
/// use ringmark::{Session, ticks};
///
/// assert_eq!(ticks(), 0);
/// let session = Session::builder().start().expect("a session");
/// let begun = ticks();
/// std::thread::sleep(std::time::Duration::from_millis(2));
/// assert!(ticks() - begun >= session.ticks_of_ns(1_000_000));
/// ```
#[inline(always)]
#[must_use]
pub fn ticks() -> u64 {
    session::now()
}
