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

/// Reads an RFC 3339 timestamp, in ns since 1970; UTC unless it says an offset.
///
/// The form is `2026-11-21T01:42:03`; up to nine digits may follow after a dot, then `Z` or an offset such
/// as `+01:00`, and a space may stand in place of `T`. `None` for any other text, and for years before 1970.
#[must_use]
pub fn parse(text: &str) -> Option<u64> {
    let (ns, offset_s) = parse_anywhere(text)?;
    let offset_ns = i128::from(offset_s.unwrap_or(0)) * 1_000_000_000;
    u64::try_from(i128::from(ns) - offset_ns).ok()
}

/// As [`parse`], but with the time as it is written, as if it were UTC, and the offset from UTC that it says, in
/// seconds.
#[must_use]
pub fn parse_anywhere(text: &str) -> Option<(u64, Option<i32>)> {
    if let Some(text) = text.strip_suffix(['Z', 'z']) {
        return Some((date_and_time(text)?, Some(0)));
    }
    let sign = text.len().checked_sub("+00:00".len());
    let split = sign.and_then(|sign| text.split_at_checked(sign));
    match split.and_then(|(front, offset)| Some((front, offset_s(offset)?))) {
        Some((front, offset)) => Some((date_and_time(front)?, Some(offset))),
        None => Some((date_and_time(text)?, None)),
    }
}

/// `+01:00`, `-05:30` in seconds.
fn offset_s(text: &str) -> Option<i32> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let number = |digits: &str| -> Option<i32> {
        let is_number = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
        digits.parse().ok().filter(|_| is_number)
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Date and time without an offset, in ns since 1970 as if they were UTC.
fn date_and_time(text: &str) -> Option<u64> {
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
    let is_date = in_range && civil(days(year, month, day)) == (year, month, day);
    if !is_date || hour > 23 || minute > 59 || second > 60 {
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
    fn offsets_are_those_of_rfc_3339() {
        let utc = parse("2026-11-21T01:42:03.5Z");
        for text in [
            "2026-11-21T02:42:03.5+01:00",
            "2026-11-20T20:12:03.5-05:30",
            "2026-11-21 01:42:03.5",
        ] {
            assert_eq!(parse(text), utc, "{text}");
        }
        let (written, offset) = parse_anywhere("2026-11-21T02:42:03.5+01:00").unwrap();
        assert_eq!(
            (written - utc.unwrap(), offset),
            (3_600_000_000_000, Some(3600))
        );
        assert_eq!(parse_anywhere("2026-11-21T02:42:03").unwrap().1, None);
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
            "2026-02-31T00:00:00Z",
            "2026-11-21T01:42:03+1:00",
            "2026-11-21T01:42:03+24:00",
            "+01:00",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
