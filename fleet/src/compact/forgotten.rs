//! Sessions of which only is known that they were over: pages of theirs that still come get no rows, because they may have
//! some already.

use std::collections::{BTreeMap, BTreeSet};

use ringmark_format::Uuid;
use serde_json::{Value, json};

use super::time::HOUR_NS;

/// For how many days they are known.
const DAYS: u64 = 90;

/// By day since 1970, sessions that were forgotten on it: a number of 64 bits for each.
#[derive(Debug, Default)]
pub(crate) struct Forgotten(BTreeMap<u64, BTreeSet<u64>>);

impl Forgotten {
    /// Adds a session of a host.
    pub(crate) fn add(&mut self, (host, session): (&[u8], Uuid), now_ns: u64) {
        let of_day = self.0.entry(day(now_ns)).or_default();
        of_day.insert(number(host, session));
    }

    /// Whether a session of a host was forgotten.
    pub(crate) fn has(&self, (host, session): (&[u8], Uuid)) -> bool {
        let number = number(host, session);
        self.0.values().any(|of_day| of_day.contains(&number))
    }

    /// Drops those that were forgotten long ago.
    pub(crate) fn expire(&mut self, now_ns: u64) {
        self.0.retain(|of, _| of + DAYS > day(now_ns));
    }

    /// A list of days, each with its numbers in hexadecimal, one after the other.
    pub(crate) fn to_value(&self) -> Value {
        let days = self.0.iter().map(|(day, numbers)| {
            let numbers = numbers.iter().map(|number| format!("{number:016x}"));
            json!([day, numbers.collect::<String>()])
        });
        days.collect()
    }

    /// Reads them; `None`: they are none.
    pub(crate) fn of_value(value: &Value) -> Option<Self> {
        let mut forgotten = Self::default();
        for of_day in value.as_array()? {
            let digits = of_day[1].as_str()?.as_bytes();
            let numbers = digits.chunks(16).map(|digits| {
                let digits = std::str::from_utf8(digits).ok()?;
                u64::from_str_radix(digits, 16).ok()
            });
            let numbers = numbers.collect::<Option<_>>()?;
            forgotten.0.insert(of_day[0].as_u64()?, numbers);
        }
        Some(forgotten)
    }
}

fn day(ns: u64) -> u64 {
    ns / (24 * HOUR_NS)
}

/// FNV-1a of the session and its host.
fn number(host: &[u8], session: Uuid) -> u64 {
    let bytes = session.0.iter().chain(host);
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_known_for_ninety_days() {
        let mut forgotten = Forgotten::default();
        let begun = 20_000 * 24 * HOUR_NS;
        let of = |number: u8| (&b"web-1"[..], Uuid([number; 16]));
        (0..5).for_each(|number| forgotten.add(of(number), begun));
        forgotten.add(of(5), begun + 24 * HOUR_NS);
        let mut read = Forgotten::of_value(&forgotten.to_value()).expect("what was written");
        assert_eq!(read.0, forgotten.0);
        assert!((0..6).all(|number| read.has(of(number))) && !read.has(of(6)));
        assert!(!read.has((b"web-2", Uuid([1; 16]))));
        read.expire(begun + 90 * 24 * HOUR_NS);
        assert!(!read.has(of(4)) && read.has(of(5)));
    }
}
