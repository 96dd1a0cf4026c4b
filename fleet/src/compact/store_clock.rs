//! What time it is for a store: not what this machine's clock says, which may be wrong by days.
//!
//! Collectors name each segment after the hour of its upload. The newest hour says how late it was when they last stored
//! something; this machine's clock counts as far as the two agree.

use std::collections::BTreeMap;

use ringmark_decoder::store::raw_hour;

use super::time::{HOUR_NS, date_and_hour, hour_of, now_ns};

/// By how much the clock of this machine may differ from the newest hour before nothing is given up.
const OFF_NS: u64 = 10 * 60 * 1_000_000_000;

/// The clock of a store, at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreClock {
    /// What this machine's clock says.
    machine_ns: u64,
    /// The hour since 1970 of the newest upload; `None`: there is none.
    newest: Option<u64>,
}

impl StoreClock {
    /// The clock of a store with these segments.
    pub(crate) fn of(segments: &BTreeMap<String, u64>) -> Self {
        Self::at(now_ns(), segments)
    }

    fn at(machine_ns: u64, segments: &BTreeMap<String, u64>) -> Self {
        let hours = segments.keys().filter_map(|name| hour_of(raw_hour(name)?));
        Self {
            machine_ns,
            newest: hours.max(),
        }
    }

    /// A time that has come, in ns since 1970: nothing is deleted or forgotten because a clock runs ahead.
    pub(crate) fn now_ns(self) -> u64 {
        let ended = self.newest.map(|hour| start(hour + 1));
        ended.map_or(self.machine_ns, |ended| ended.min(self.machine_ns))
    }

    /// What something that happens now is dated with: it is not old too early because a clock runs behind.
    pub(crate) fn stamp_ns(self) -> u64 {
        let ended = self
            .newest
            .filter(|_| !self.is_near())
            .map(|hour| start(hour + 1));
        ended.map_or(self.machine_ns, |ended| ended.max(self.machine_ns))
    }

    /// When a host was silent for so long; 0: this machine's clock is too far from what collectors stored last to say it.
    pub(crate) fn silent_since(self, silent_ns: u64) -> u64 {
        match self.is_near() {
            true => self.now_ns().saturating_sub(silent_ns),
            false => 0,
        }
    }

    fn is_near(self) -> bool {
        self.newest.is_some_and(|hour| {
            let begin = start(hour).saturating_sub(OFF_NS);
            (begin..start(hour + 1).saturating_add(OFF_NS)).contains(&self.machine_ns)
        })
    }

    /// Why no host is given up; `None`: some may be.
    pub(crate) fn doubt(self) -> Option<String> {
        let hour = self.newest.filter(|_| !self.is_near())?;
        let text = |hour| {
            let (date, hour) = date_and_hour(hour);
            format!("{date} {hour:02}:00")
        };
        Some(format!(
            "no host is given up: this machine's clock is in the hour of {}, the newest segment in that of {}, both UTC; \
             expected them within 10 minutes: set the clock, or run compact while collectors store",
            text(self.machine_ns / HOUR_NS),
            text(hour)
        ))
    }
}

/// When an hour begins. The year 2554 has the last one.
fn start(hour: u64) -> u64 {
    hour.saturating_mul(HOUR_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringmark_decoder::store::raw_object;
    use ringmark_format::Uuid;

    const MINUTE_NS: u64 = 60 * 1_000_000_000;

    fn clock(machine_ns: u64) -> StoreClock {
        let names = ["2026-11-28-14", "2026-11-28-13"];
        let names = names.map(|hour| (raw_object(hour, Uuid([7; 16]), 1), 9));
        StoreClock::at(machine_ns, &names.into_iter().collect())
    }

    #[test]
    fn nothing_is_given_up_or_old_because_a_clock_is_wrong() {
        let begun = hour_of("2026-11-28-14").expect("an hour") * HOUR_NS;
        let silent_ns = 24 * HOUR_NS;
        for near in [-9, 0, 30, 60, 69] {
            let now = begun.saturating_add_signed(near * MINUTE_NS as i64);
            let clock = clock(now);
            assert_eq!(clock.now_ns(), now.min(begun + HOUR_NS), "{near}");
            assert_eq!(
                clock.silent_since(silent_ns),
                clock.now_ns() - silent_ns,
                "{near}"
            );
            assert_eq!((clock.doubt(), clock.stamp_ns()), (None, now), "{near}");
        }
        for hours in [-8 * 24, -25, -1, 2, 25, 8 * 24] {
            let clock = clock(begun.saturating_add_signed(hours * HOUR_NS as i64));
            assert!(clock.now_ns() <= begun + HOUR_NS, "{hours}");
            assert_eq!(clock.silent_since(silent_ns), 0, "{hours}");
            assert!(clock.doubt().is_some(), "{hours}");
            assert!(clock.stamp_ns() >= begun + HOUR_NS, "{hours}");
        }
        let empty = StoreClock::at(begun, &BTreeMap::new());
        assert_eq!((empty.now_ns(), empty.silent_since(1)), (begun, 0));
        assert_eq!(empty.doubt(), None);
    }
}
