//! The notices about spans and calls of which it is not known what they lie in.

use crate::events::gaps::unordered;
use crate::trace_file::dump::Dump;

/// What is said of so many of them, with `shown` for the number; `None`: there are none.
#[must_use]
pub fn unplaced_notice(number: u64, shown: &str) -> Option<String> {
    let what = match number {
        0 => return None,
        1 => "span or call begins or ends",
        _ => "spans and calls begin or end",
    };
    Some(format!(
        "{shown} {what} at the same tick of the clock as others: what they lie in is not known, so they stand beside it"
    ))
}

/// What is said of threads with records of several sessions that share ticks of a coarse clock; `None`: there are none.
///
/// For example: "1 thread has records of several sessions with a coarse clock: of those that end at the same tick it is
/// not known which lie in which".
#[must_use]
pub fn unordered_notice(dump: &Dump) -> Option<String> {
    let threads = match unordered(dump).count() {
        0 => return None,
        1 => "1 thread has".to_owned(),
        several => format!("{several} threads have"),
    };
    Some(format!(
        "{threads} records of several sessions with a coarse clock: of those that end at the same tick it is not known \
         which lie in which"
    ))
}
