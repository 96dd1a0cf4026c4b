//! Wall-clock times as RFC 3339 text in UTC, and back.

use crate::words::number::{nine_digits, two_digits};

/// Bytes of a timestamp with nine digits and `Z`.
pub const TIMESTAMP_BYTES: usize = 30;

/// Year, month and day of a day since 1970 (proleptic Gregorian).
///
/// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": years from March on, in eras of
/// 400 years.
const fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + (month <= 2) as u64;
    (year, month, of_month)
}

/// Days since 1970 of a date; the reverse of [`civil`].
const fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Writes timestamps.
///
/// Neighbouring events mostly share their second, so the text of the latest one is kept and only
/// the nine digits after the dot are written anew.
#[derive(Debug, Clone)]
pub struct Stamper {
    second: u64,
    text: [u8; TIMESTAMP_BYTES],
}

impl Default for Stamper {
    fn default() -> Self {
        Self {
            second: u64::MAX,
            text: *b"1970-01-01T00:00:00.000000000Z",
        }
    }
}

impl Stamper {
    /// Writes a time in ns since 1970 as `2026-11-21T01:42:03.123456789Z`. The latest time that
    /// fits is in the year 2554.
    #[inline]
    pub fn stamp(&mut self, ns: u64) -> &[u8; TIMESTAMP_BYTES] {
        let second = ns / 1_000_000_000;
        if second != self.second {
            self.begin(second);
        }
        let rest = (ns - second * 1_000_000_000) as u32;
        self.text[20..29].copy_from_slice(&nine_digits(rest));
        &self.text
    }

    #[cold]
    fn begin(&mut self, second: u64) {
        self.second = second;
        let (year, month, day) = civil(second / 86_400);
        let of_day = second % 86_400;
        let pairs = [
            (0, year / 100),
            (2, year),
            (5, month),
            (8, day),
            (11, of_day / 3600),
            (14, of_day / 60 % 60),
            (17, of_day % 60),
        ];
        for (at, n) in pairs {
            self.text[at..at + 2].copy_from_slice(&two_digits(n));
        }
    }
}

/// Reads an RFC 3339 timestamp in UTC, in ns since 1970.
///
/// The form is `2026-11-21T01:42:03`; up to nine digits may follow after a dot, `Z` is optional,
/// and a space may stand in place of `T`. `None` for any other text, and for years before 1970.
#[must_use]
pub fn parse(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<u64> {
        let digits = bytes.get(from..to)?;
        let all = digits.iter().all(u8::is_ascii_digit);
        all.then(|| digits.iter().fold(0, |n, d| 10 * n + u64::from(d - b'0')))
    };
    let marks = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    let shaped = marks.iter().all(|(at, mark)| bytes.get(*at) == Some(mark));
    if !shaped || !matches!(bytes.get(10), Some(b'T' | b't' | b' ')) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let in_range = year >= 1970 && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !in_range || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let ns = match bytes.get(19) {
        None => 0,
        Some(b'.') if bytes.len() <= 29 => {
            let scale = 10u64.pow(29 - bytes.len() as u32);
            number(20, bytes.len())? * scale
        }
        Some(_) => return None,
    };
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        let mut stamper = Stamper::default();
        for (ns, text) in [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (951_782_400_000_000_001, "2000-02-29T00:00:00.000000001Z"),
            (1_795_225_323_123_456_789, "2026-11-21T01:42:03.123456789Z"),
            (u64::MAX, "2554-07-21T23:34:33.709551615Z"),
        ] {
            assert_eq!(std::str::from_utf8(stamper.stamp(ns)), Ok(text));
            assert_eq!(parse(text), Some(ns));
        }
    }

    #[test]
    fn every_day_comes_back() {
        for day in 0..200_000 {
            let (year, month, of_month) = civil(day);
            assert_eq!(days(year, month, of_month), day);
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "now",
            "2026-13-01T00:00:00Z",
            "2026-11-21T01:42",
            "2026-11-21T01:42:03+01:00",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
