//! Days and hours, in UTC.

use super::faults;

/// An hour, in ns.
pub(crate) const HOUR_NS: u64 = 3600 * 1_000_000_000;

/// Now by the clock of this machine, in ns since 1970.
pub(crate) fn now_ns() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX));
    now.saturating_add_signed(faults::clock_ahead_ns())
}

/// Date, as `2026-01-31`, and hour of the day, of an hour since 1970.
pub(crate) fn date_and_hour(hour: u64) -> (String, u32) {
    // Years that begin in March have their leap day at the end: "days_from_civil", turned round.
    let days = hour / 24 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + 400 * era + u64::from(month <= 2);
    (format!("{year:04}-{month:02}-{day:02}"), (hour % 24) as u32)
}

/// The hour since 1970 of a text such as `2026-01-31-23`; `None`: it is none.
pub(crate) fn hour_of(text: &str) -> Option<u64> {
    let mut parts = text.split('-').map(|part| part.parse::<u64>().ok());
    let mut next = || parts.next().flatten();
    let (year, month, day, hour) = (next()?, next()?, next()?, next()?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let month = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * month + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + of_year;
    Some((days - 719_468) * 24 + hour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (hour, date, of_day) in [
            (0, "1970-01-01", 0),
            (23, "1970-01-01", 23),
            (24 * 59, "1970-03-01", 0),
            (24 * 11_016, "2000-02-29", 0),
            (24 * 11_017, "2000-03-01", 0),
            (24 * 20_783 + 19, "2026-11-26", 19),
            (24 * 47_540, "2100-02-28", 0),
            (24 * 47_541, "2100-03-01", 0),
            (24 * 20_454 - 1, "2025-12-31", 23),
            (24 * 20_454, "2026-01-01", 0),
        ] {
            assert_eq!(date_and_hour(hour), (date.to_owned(), of_day));
            assert_eq!(hour_of(&format!("{date}-{of_day:02}")), Some(hour));
        }
    }
}
