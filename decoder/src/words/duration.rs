//! Durations as a person writes them.

/// `1.5s`, `200ms` in ns; `None`: it has no unit, or is no duration.
#[must_use]
pub fn nanoseconds(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 8] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    let mut units = UNITS.iter();
    let (digits, unit) = units.find_map(|(name, ns)| Some((text.strip_suffix(name)?, *ns)))?;
    let digits = digits.trim();
    if let Ok(whole) = digits.parse::<u64>() {
        return whole.checked_mul(unit);
    }
    let number: f64 = digits.parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some((number * unit as f64) as u64)
}
