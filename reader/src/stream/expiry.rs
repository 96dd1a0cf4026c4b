//! When a certificate ends, and whether its owner is to be told by now.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use x509_parser::time::ASN1Time;

/// The longest time before the end at which its owner is told.
const TOLD_BEFORE_MAX: Duration = Duration::from_secs(14 * 24 * 3600);
/// A certificate is to be renewed in the last part of its life: one in this many.
const PARTS: u32 = 10;

/// When a certificate is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    from: SystemTime,
    until: SystemTime,
}

impl Expiry {
    /// That of the first certificate in a chain; `None`: it cannot be read.
    pub(super) fn of(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let (_, certificate) = x509_parser::parse_x509_certificate(chain.first()?).ok()?;
        let validity = certificate.validity();
        Some(Self {
            from: moment(validity.not_before),
            until: moment(validity.not_after),
        })
    }

    /// When it ends, in seconds since 1970.
    #[must_use]
    pub fn timestamp(&self) -> u64 {
        let since = self.until.duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs())
    }

    /// Whether it is over at the time `now`.
    #[must_use]
    pub fn is_over(&self, now: SystemTime) -> bool {
        self.until <= now
    }

    /// When it is to be renewed, in seconds since 1970: in the last tenth of its life, two weeks
    /// before its end at most.
    #[must_use]
    pub fn renewal_timestamp(&self) -> u64 {
        self.timestamp()
            .saturating_sub(self.told_before().as_secs())
    }

    /// For how long before its end its owner is told.
    fn told_before(&self) -> Duration {
        let life = self.until.duration_since(self.from).unwrap_or_default();
        (life / PARTS).min(TOLD_BEFORE_MAX)
    }

    /// What its owner is to be told at the time `now`; `None`: nothing yet.
    #[must_use]
    pub fn warning(&self, now: SystemTime) -> Option<String> {
        match self.until.duration_since(now) {
            Ok(left) if left > self.told_before() => None,
            Ok(left) => Some(format!("the certificate ends in {}", rough(left))),
            Err(_) => Some("the certificate has ended".to_owned()),
        }
    }
}

/// A time of a certificate; what is before 1970 counts as its begin.
fn moment(time: ASN1Time) -> SystemTime {
    let since = u64::try_from(time.timestamp()).unwrap_or(0);
    UNIX_EPOCH + Duration::from_secs(since)
}

/// How often the owner is told.
const TOLD_EVERY: Duration = Duration::from_secs(24 * 3600);

/// Warnings of the end of a certificate, one a day for each.
#[derive(Debug, Default)]
pub struct ExpiryWarnings {
    /// The certificate that the last one was about, and when.
    told: Option<(Expiry, Instant)>,
}

impl ExpiryWarnings {
    /// The warning for a certificate, if one is due.
    pub fn due(&mut self, expiry: Option<Expiry>) -> Option<String> {
        let expiry = expiry?;
        let was_told = |(of, at): (Expiry, Instant)| of == expiry && at.elapsed() < TOLD_EVERY;
        if self.told.is_some_and(was_told) {
            return None;
        }
        let warning = expiry.warning(SystemTime::now())?;
        self.told = Some((expiry, Instant::now()));
        Some(warning)
    }
}

/// A time to the next smaller whole unit.
fn rough(time: Duration) -> String {
    let minutes = time.as_secs() / 60;
    match (minutes / (24 * 60), minutes / 60) {
        (0, 0) => format!("{minutes} min"),
        (0, hours) => format!("{hours} h"),
        (days, _) => format!("{days} d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn the_owner_is_told_in_the_last_tenth_and_two_weeks_at_most() {
        let from = UNIX_EPOCH + 1000 * HOUR;
        let warning = |life: u32, left: u32| {
            let until = from + life * HOUR;
            Expiry { from, until }.warning(until - left * HOUR)
        };
        assert_eq!(warning(365 * 24, 15 * 24), None);
        let told = warning(365 * 24, 13 * 24);
        assert_eq!(told.as_deref(), Some("the certificate ends in 13 d"));
        assert_eq!(warning(24, 3), None);
        let told = warning(24, 2);
        assert_eq!(told.as_deref(), Some("the certificate ends in 2 h"));
        let expiry = Expiry {
            from,
            until: from + HOUR,
        };
        let told = expiry.warning(from + 2 * HOUR);
        assert_eq!(told.as_deref(), Some("the certificate has ended"));
        assert_eq!(expiry.timestamp(), 1001 * 3600);
        assert!(expiry.is_over(from + HOUR) && !expiry.is_over(from));
        let mut warnings = ExpiryWarnings::default();
        assert!(warnings.due(Some(expiry)).is_some());
        assert!(warnings.due(Some(expiry)).is_none(), "once a day");
        let next = Expiry {
            from,
            until: from + 2 * HOUR,
        };
        assert!(warnings.due(Some(next)).is_some(), "one that lives shorter");
        assert_eq!(next.renewal_timestamp(), next.timestamp() - 12 * 60);
    }
}
