//! Times as a person has them: as the screen shows them, as logs write them, before now, since the start.
//!
//! | text | which time |
//! | --- | --- |
//! | `1.5s`, `200ms` | since the session's start |
//! | `-10m`, `now` | before now |
//! | `2026-01-31T12:00:00Z`, `… +01:00` | that one |
//! | `2026-01-31 12:00:00` | that one in local time; with --utc in UTC |
//! | `12:00:00.25`, `12:00` | that time of day, the last one before the end of the trace; with --to, the first one after --from |
//! | `@1769860800`, `1769860800250` | since 1970: in seconds, and without @ by its digits in ms, us or ns, too |

use std::borrow::Cow;

use ringmark_console::now_ns;
use ringmark_console::units::parse_duration;
use ringmark_decoder::{duration_ns, parse_anywhere};
use time::{OffsetDateTime, UtcOffset};

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;

/// What is understood, for errors.
pub(crate) const EXPECTED: &str =
    "a time such as 2026-01-31T12:00:00Z, 12:00:00 or -10m, or 1.5s after the start";

/// A time that an option names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// ns since 1970.
    Wall(u64),
    /// ns since the session's start.
    SinceStart(u64),
    /// ns since midnight, on a day that the trace says.
    OfDay(u64),
}

impl Moment {
    /// Reads a time; `None`: it is none. `is_utc`: what says no offset is UTC, not local time.
    pub(crate) fn parse(text: &str, is_utc: bool) -> Option<Self> {
        let text = text.trim();
        if let Some(before) = text.strip_prefix("now") {
            return Self::before_now(before);
        }
        if text.starts_with('-') {
            return Self::before_now(text);
        }
        if let Some(ns) = text.strip_prefix('@').map(seconds) {
            return ns.map(Self::Wall);
        }
        if let Some((ns, offset)) = parse_anywhere(&with_seconds(text)) {
            return match offset {
                Some(offset_s) => shifted(ns, offset_s).map(Self::Wall),
                None if is_utc => Some(Self::Wall(ns)),
                None => local(ns).map(Self::Wall),
            };
        }
        let since_start = duration_ns(text.strip_prefix('+').unwrap_or(text));
        let epoch = || epoch_ns(text).map(Self::Wall);
        let of_day = || of_day_ns(text).map(Self::OfDay);
        let since_start = since_start.map(Self::SinceStart);
        since_start.or_else(epoch).or_else(of_day)
    }

    fn before_now(text: &str) -> Option<Self> {
        let now_ns = now_ns();
        match text.strip_prefix('-') {
            None if text.is_empty() => Some(Self::Wall(now_ns)),
            None => None,
            Some(text) => {
                let before = parse_duration(text).ok()?;
                let before_ns = u64::try_from(before.as_nanos()).ok()?;
                Some(Self::Wall(now_ns.saturating_sub(before_ns)))
            }
        }
    }

    /// The same as a time since 1970, if it is one since a start that is known, in ns since 1970.
    pub(crate) fn since(self, start_ns: Option<u64>) -> Self {
        match (self, start_ns) {
            (Self::SinceStart(ns), Some(start_ns)) => Self::Wall(start_ns.saturating_add(ns)),
            _ => self,
        }
    }

    /// The same with its day: the last one on which it is not after the end of a trace. Where it is before the start then, and
    /// nearer to the end on the next day, it is that of the next day. `range`: start, if it is known, and end, in ns since 1970.
    pub(crate) fn on_day(self, range: (Option<u64>, u64), is_utc: bool) -> Self {
        let Self::OfDay(of_day_ns) = self else {
            return self;
        };
        let shown = |ns| if is_utc { ns } else { as_local(ns) };
        let (start_ns, end_ns) = (range.0.map_or(0, shown), shown(range.1));
        let mut ns = end_ns - end_ns % DAY_NS + of_day_ns;
        // The screen cuts the digits of the last event's time, and a bound may lie a little after it.
        if ns > end_ns + SECOND_NS {
            let before = ns.saturating_sub(DAY_NS);
            let is_nearer = start_ns.saturating_sub(before) > ns - end_ns;
            ns = if is_nearer { ns } else { before };
        }
        match is_utc {
            true => Self::Wall(ns),
            false => Self::Wall(local(ns).unwrap_or(ns)),
        }
    }

    /// The same on the next day, if it is of a day and not after another time.
    pub(crate) fn after(self, from: Option<Self>, placed: Self) -> Self {
        match (self, from, placed) {
            (Self::OfDay(_), Some(Self::Wall(from)), Self::Wall(ns)) if ns <= from => {
                Self::Wall(ns.saturating_add(DAY_NS))
            }
            _ => placed,
        }
    }

    /// The same, so much earlier or later.
    pub(crate) fn moved(self, by_ns: u64, is_later: bool) -> Self {
        let by = |ns: u64| match is_later {
            true => ns.saturating_add(by_ns),
            false => ns.saturating_sub(by_ns),
        };
        match self {
            Self::Wall(ns) => Self::Wall(by(ns)),
            Self::SinceStart(ns) => Self::SinceStart(by(ns)),
            Self::OfDay(ns) => Self::OfDay(by(ns)),
        }
    }
}

fn shifted(ns: u64, offset_s: i32) -> Option<u64> {
    let ns = i128::from(ns) - i128::from(offset_s) * i128::from(SECOND_NS);
    u64::try_from(ns).ok()
}

/// Offset from UTC here at a time in ns since 1970.
fn offset_s(ns: u64) -> i32 {
    let second = i64::try_from(ns / SECOND_NS).unwrap_or(i64::MAX);
    let utc = OffsetDateTime::from_unix_timestamp(second);
    let offset = utc
        .ok()
        .and_then(|utc| UtcOffset::local_offset_at(utc).ok());
    offset.map_or(0, UtcOffset::whole_seconds)
}

/// A local time, written as if it were UTC, in ns since 1970.
fn local(written_ns: u64) -> Option<u64> {
    // The offset of the wrong moment is that of the right one, unless a change lies between.
    let near = shifted(written_ns, offset_s(written_ns))?;
    shifted(written_ns, offset_s(near))
}

/// The time that is written here at a moment, as if it were UTC.
fn as_local(ns: u64) -> u64 {
    shifted(ns, -offset_s(ns)).unwrap_or(ns)
}

/// Seconds since 1970, perhaps with digits after a dot, in ns.
fn seconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    if whole.is_empty() || part.len() > 9 || !is_number(whole) || !is_number(part) {
        return None;
    }
    let part: u64 = format!("{part:0<9}").parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(SECOND_NS)?
        .checked_add(part)
}

/// A number since 1970: its digits say whether in s, ms, us or ns. Nothing else is that long.
fn epoch_ns(text: &str) -> Option<u64> {
    let scale = match text
        .split_once('.')
        .map_or(text.len(), |(whole, _)| whole.len())
    {
        10 => return seconds(text),
        13 => 1_000_000,
        16 => 1_000,
        19 => 1,
        _ => return None,
    };
    text.parse::<u64>().ok()?.checked_mul(scale)
}

/// A date with hours and minutes alone gets its seconds: `2026-01-31T12:00Z`.
fn with_seconds(text: &str) -> Cow<'_, str> {
    match text.split_at_checked("2026-01-31T12:00".len()) {
        Some((minute, rest))
            if minute.matches(':').count() == 1
                && (rest.is_empty() || rest.starts_with(['Z', 'z', '+', '-'])) =>
        {
            format!("{minute}:00{rest}").into()
        }
        _ => text.into(),
    }
}

/// `12:00:00.25`, `12:00` in ns since midnight.
fn of_day_ns(text: &str) -> Option<u64> {
    let text = match text.matches(':').count() {
        1 => format!("{text}:00"),
        _ => text.to_owned(),
    };
    let (ns, offset) = parse_anywhere(&format!("1970-01-01T{text}"))?;
    offset.is_none().then_some(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_one_moment() {
        let wall = Moment::Wall(1_769_860_800_250_000_000);
        for text in [
            "2026-01-31T12:00:00.25Z",
            "2026-01-31 13:00:00.250+01:00",
            "2026-01-31T12:00:00.25",
            "@1769860800.25",
            "1769860800.25",
            "1769860800250",
            "1769860800250000",
            "1769860800250000000",
        ] {
            assert_eq!(Moment::parse(text, true), Some(wall), "{text}");
        }
        for text in [
            "2026-01-31T12:00",
            "2026-01-31 12:00Z",
            "2026-01-31T13:00+01:00",
        ] {
            let wall = Some(Moment::Wall(1_769_860_800_000_000_000));
            assert_eq!(Moment::parse(text, true), wall, "{text}");
        }
        let since = Moment::SinceStart(1_500_000_000);
        for text in ["1.5s", "+1500ms", "1500000us"] {
            assert_eq!(Moment::parse(text, true), Some(since), "{text}");
        }
        for text in [
            "",
            "-",
            "12",
            "12:0",
            "2026-01-31T12",
            "2026-01-31T12:0",
            "2026-01-31T12:00x",
            "2026-01-31T12:00.5Z",
            "25:00",
            "now+1s",
            "yesterday",
            "@",
            "-5",
        ] {
            assert_eq!(Moment::parse(text, true), None, "{text}");
        }
    }

    #[test]
    fn a_time_of_day_is_the_last_one_in_the_trace() {
        let Some(Moment::Wall(end)) = Moment::parse("2026-01-31T12:00:00.25Z", true) else {
            panic!("a time");
        };
        for (text, expected) in [
            ("11:59:59.5", "2026-01-31T11:59:59.5Z"),
            ("12:00:00.5", "2026-01-31T12:00:00.5Z"),
            ("12:01", "2026-01-30T12:01:00Z"),
        ] {
            let found = Moment::parse(text, true).map(|at| at.on_day((None, end), true));
            assert_eq!(found, Moment::parse(expected, true), "{text}");
        }
        // A trace of a few minutes: what is a little after its end is not of the day before.
        let start = end - 300 * SECOND_NS;
        for (text, expected) in [
            ("11:54", "2026-01-31T11:54:00Z"),
            ("12:01", "2026-01-31T12:01:00Z"),
            ("23:00", "2026-01-31T23:00:00Z"),
            ("00:30", "2026-01-31T00:30:00Z"),
        ] {
            let found = Moment::parse(text, true).map(|at| at.on_day((Some(start), end), true));
            assert_eq!(found, Moment::parse(expected, true), "{text}");
        }
    }

    #[test]
    fn before_now_is_before_now() {
        let now = now_ns();
        let Some(Moment::Wall(before)) = Moment::parse("-10m", true) else {
            panic!("a time");
        };
        assert!(before + 600 * SECOND_NS >= now && before < now);
    }
}
