//! The notice about spans and calls of which it is not known what they lie in.

/// What is said of so many of them, with `shown` for the number; `None`: there are none.
#[must_use]
pub fn unplaced_notice(number: u64, shown: &str) -> Option<String> {
    let what = match number {
        0 => return None,
        1 => "span or call began and ended",
        _ => "spans and calls began and ended",
    };
    Some(format!(
        "{shown} {what} within one tick of the clock: what they lie in is not known, so they stand beside it"
    ))
}
