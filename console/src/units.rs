//! Sizes, durations and times: how people write them, and how they are shown.

use std::time::Duration;

const SIZES: [(&str, u32); 5] = [("", 0), ("K", 10), ("M", 20), ("G", 30), ("T", 40)];
const DURATIONS: [(&str, f64); 8] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
    ("d", 86_400.0),
    ("w", 604_800.0),
];

/// A size in bytes, as in `4096`, `64K`, `1.5M`, `2GiB`: powers of 1024, at least 1.
///
/// # Errors
/// What was found and what is expected.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("found {text:?}, expected a size such as 65536, 64K, 16M or 2G");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let unit = unit.to_ascii_uppercase();
    let unit = unit.trim_end_matches('B').trim_end_matches('I');
    let (_, shift) = SIZES.iter().find(|s| s.0 == unit).ok_or_else(wrong)?;
    let bytes = match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(1 << shift),
        Err(_) => Some(
            (number.parse::<f64>().map_err(|_| wrong())?
                * f64::from(1 << 10).powi(*shift as i32 / 10)) as u64,
        ),
    };
    match bytes {
        Some(0) => Err(format!("found {text:?}, expected at least one byte")),
        Some(bytes) if bytes < 1 << 60 => Ok(bytes),
        _ => Err(format!("found {text:?}, expected less than 1048576T")),
    }
}

/// A duration, as in `10s`, `500ms`, `1.5m`; a unit is required, zero is not a duration.
///
/// # Errors
/// What was found and what is expected.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("found {text:?}, expected a duration such as 10s, 500ms, 2m or 7d");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let (_, seconds) = DURATIONS.iter().find(|d| d.0 == unit).ok_or_else(wrong)?;
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let duration = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
    if duration.is_zero() {
        return Err(format!("found {text:?}, expected more than zero"));
    }
    Ok(duration)
}

/// The shortest duration that is wanted, as in `100us`, or 0.
///
/// # Errors
/// What was found and what is expected.
pub fn parse_min_time(text: &str) -> Result<Duration, String> {
    match text {
        "0" => Ok(Duration::ZERO),
        _ => parse_duration(text),
    }
}

/// A duration in ns, at most what a `u64` holds.
pub fn whole_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Splits a text into number and unit. The number begins with a digit.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    number
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some((number, unit.trim()))
}

/// `1234567` bytes as `1.2 MiB`.
pub fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit < 4 {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ if value < 10.0 => format!("{value:.1} {}iB", SIZES[unit].0),
        _ => format!("{value:.0} {}iB", SIZES[unit].0),
    }
}

/// Nanoseconds as `1.23 ms`.
pub fn duration(ns: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let Some((unit, name)) = UNITS.iter().find(|(unit, _)| ns >= *unit) else {
        return format!("{ns} ns");
    };
    let value = ns as f64 / *unit as f64;
    match value {
        v if v < 10.0 => format!("{v:.2} {name}"),
        v if v < 100.0 => format!("{v:.1} {name}"),
        v => format!("{v:.0} {name}"),
    }
}

/// `1 page`, `1,234 pages`.
pub fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", count(number))
}

/// What follows a count of lost events: `; 1,234 events were overwritten`, or nothing.
pub fn overwritten(events: u64) -> String {
    match events {
        0 => String::new(),
        events => format!("; {} were overwritten", counted(events, "event")),
    }
}

/// `1234567` as `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("64K"), Ok(65536));
        assert_eq!(parse_size("1.5MiB"), Ok(3 << 19));
        assert_eq!(parse_size("2gb"), Ok(2 << 30));
        for bad in ["", "0", "0K", "K", "-1", "1X", "1.2.3K", "99999999T", "ten"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("7d"), Ok(Duration::from_secs(604_800)));
        for bad in ["", "0s", "10", "10 parsecs", "-1s", "1e999s"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shortest_durations() {
        let ns = |text| parse_min_time(text).map(whole_ns);
        assert_eq!(ns("100us"), Ok(100_000));
        assert_eq!((ns("1.5us"), ns("0")), (Ok(1500), Ok(0)));
        for bad in ["-1", "1.5", "inf", "nan", "1e13", "0s", "ten", ""] {
            assert!(ns(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shown() {
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(16 << 20), "16 MiB");
        assert_eq!(duration(999), "999 ns");
        assert_eq!(duration(1_234_000), "1.23 ms");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(12), "12");
        assert_eq!(counted(1, "page"), "1 page");
        assert_eq!(counted(0, "page"), "0 pages");
    }
}
