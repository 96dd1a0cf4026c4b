//! The hours by which what came is filed.

use ringmark_decoder::Stamper;

/// The hour of a moment in UTC, `YYYY-MM-DD-HH`.
pub(super) fn hour_of(ns: u64) -> String {
    let mut stamper = Stamper::default();
    let text = String::from_utf8_lossy(&stamper.stamp(ns)[..13]).into_owned();
    text.replacen(['T', ' '], "-", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_named() {
        assert_eq!(hour_of(1_795_720_296_240_882_128), "2026-11-26-19");
    }
}
