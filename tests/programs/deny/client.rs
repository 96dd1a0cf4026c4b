//! Sends requests to the session in `RINGMARK_DIR`, as another process would.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use ringmark_reader::{Access, Session, control, find};

/// How long an answer may take: less than a helper sleeps that missed a wake-up would fail runs
/// for nothing, but a request without an answer is no harm.
const LIMIT: Duration = Duration::from_millis(250);

/// Asks as soon as `may_ask`, then says so in `is_through`.
pub(crate) fn serve(may_ask: &AtomicBool, is_through: &AtomicBool, is_over: &AtomicBool) {
    while !may_ask.load(Relaxed) {
        if is_over.load(Relaxed) {
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    let session = find::all()
        .first()
        .and_then(|found| Session::open_found(found, Access::Control).ok());
    if let Some(session) = session {
        for text in ["disable phases.*", "enable phases.*", "filter info"] {
            if control::request(&session, text, LIMIT).is_err() {
                break;
            }
        }
    }
    is_through.store(true, Relaxed);
}
