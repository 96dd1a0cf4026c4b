//! How many bytes of pages each service may send, and which pages are left out for that.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ringmark_format::block::kind;
use ringmark_format::block_at::BlockAt;
use ringmark_format::page::PageHeader;
use ringmark_format::policy::Budget;
use ringmark_format::record::{self, Header, TIME_EXTEND};
use zerocopy::FromBytes;

use crate::stream::positions::page_of;

/// Parts of a byte: a byte in an hour is one of them in a millisecond.
const PARTS: i128 = 3_600_000;

/// The budgets of all services that have one.
#[derive(Debug, Default)]
pub(in crate::stream) struct Budgets {
    buckets: HashMap<String, Bucket>,
}

/// A page that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::stream) struct LeftOut {
    pub(in crate::stream) slot: u32,
    pub(in crate::stream) page: u64,
    /// Reservations in it.
    pub(in crate::stream) events: u64,
}

/// What one service may still send.
#[derive(Debug)]
struct Bucket {
    budget: Budget,
    /// What may be sent now, in parts of a byte, [`PARTS`] each; less than 0: the last page took more.
    left: i128,
    /// Up to when that was earned.
    earned_to: Instant,
}

impl Bucket {
    fn new(budget: Budget, now: Instant) -> Self {
        Self {
            budget,
            left: parts(burst(budget)),
            earned_to: now,
        }
    }

    /// Takes the bytes of a page, if any are left.
    fn take(&mut self, bytes: u64, now: Instant) -> bool {
        self.earn(now);
        let is_allowed = self.left > 0;
        if is_allowed {
            self.left -= parts(bytes);
        }
        is_allowed
    }

    fn earn(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.earned_to).as_millis();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        let rate = self.budget.bytes_per_hour.unwrap_or(u64::MAX);
        let earned = i128::from(rate).saturating_mul(i128::from(passed));
        let most = parts(burst(self.budget));
        self.left = self.left.saturating_add(earned).min(most);
        // Less than a millisecond counts with the next one.
        self.earned_to += Duration::from_millis(passed);
    }
}

const fn parts(bytes: u64) -> i128 {
    bytes as i128 * PARTS
}

/// Bytes that may be sent at once.
fn burst(budget: Budget) -> u64 {
    let usual = budget.bytes_per_hour.map_or(u64::MAX, |bytes| bytes / 10);
    budget.burst.unwrap_or(usual)
}

impl Budgets {
    /// Sets the budget of a service. What is left of the one before is not more afterwards.
    pub(in crate::stream) fn set(&mut self, service: &str, budget: Budget) {
        self.set_at(service, budget, Instant::now());
    }

    fn set_at(&mut self, service: &str, budget: Budget, now: Instant) {
        if budget.bytes_per_hour.is_none() {
            self.buckets.remove(service);
            return;
        }
        match self.buckets.get_mut(service) {
            Some(bucket) if bucket.budget == budget => {}
            Some(bucket) => {
                bucket.earn(now);
                let left = bucket.left.min(parts(burst(budget)));
                (bucket.budget, bucket.left) = (budget, left);
            }
            None => {
                let bucket = Bucket::new(budget, now);
                self.buckets.insert(service.to_owned(), bucket);
            }
        }
    }

    /// Whether a service has a budget.
    pub(in crate::stream) fn bounds(&self, service: &str) -> bool {
        self.buckets.contains_key(service)
    }

    /// Counts a block of a service that is to be sent, and says what becomes of it. `is_last`: open pages
    /// will not come again.
    pub(in crate::stream) fn count(
        &mut self,
        service: &str,
        block: &BlockAt<'_>,
        is_last: bool,
    ) -> Verdict {
        self.count_at(service, block, is_last, Instant::now())
    }

    fn count_at(
        &mut self,
        service: &str,
        block: &BlockAt<'_>,
        is_last: bool,
        now: Instant,
    ) -> Verdict {
        let Some(bucket) = self.buckets.get_mut(service) else {
            return Verdict::Sent;
        };
        let Ok((page, _)) = PageHeader::read_from_prefix(block.stored()) else {
            return Verdict::Sent;
        };
        if block.header.kind != kind::PAGE {
            return Verdict::Sent;
        }
        let is_sealed = page_of(block).is_some();
        match bucket.take(block.bytes.len() as u64, now) {
            true => Verdict::Sent,
            false if !is_sealed && !is_last => Verdict::NotNow,
            false => Verdict::LeftOut(LeftOut {
                slot: page.slot,
                page: block.header.page_number,
                events: reservations(block.stored()),
            }),
        }
    }
}

/// What becomes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::stream) enum Verdict {
    /// It is sent.
    Sent,
    /// It is left out for good.
    LeftOut(LeftOut),
    /// This copy of an open page is not sent; the page will come again.
    NotNow,
}

/// Reservations in a page: all its records, and what stands in their place.
fn reservations(page: &[u8]) -> u64 {
    let words = page.get(PageHeader::BYTES..).unwrap_or_default();
    let word = |at: usize| {
        let bytes = words.get(at * 8..at * 8 + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let (mut at, mut found) = (0_usize, 0);
    while let Some(header) = word(at).map(record::unpack) {
        let Some(length) = header.words(|| word(at + 1)) else {
            break;
        };
        let is_time = matches!(header, Header::Record { type_id, .. } if type_id.0 == TIME_EXTEND);
        found += u64::from(!is_time);
        at = at.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        if at > words.len() / 8 {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(bytes: u64, burst: Option<u64>) -> Budget {
        Budget {
            bytes_per_hour: Some(bytes),
            burst,
        }
    }

    #[test]
    fn no_more_than_budget_and_burst_in_any_hour() {
        let begun = Instant::now();
        let at = |s: u64| begun + Duration::from_secs(s);
        let mut bucket = Bucket::new(budget(3600, None), begun);
        assert!(bucket.take(300, at(0)));
        assert!(bucket.take(100, at(0)), "a page is sent as a whole");
        assert!(!bucket.take(1, at(30)), "40 bytes were too many, 30 earned");
        assert!(bucket.take(100, at(41)));
        assert!(!bucket.take(1, at(41)));
        assert!(!bucket.take(1, at(140)));
        // A day of silence earns a burst, and no more.
        assert!(bucket.take(360, at(90_000)));
        assert!(!bucket.take(1, at(90_000)));
        // Looked at often, what is less than a byte is not lost.
        let mut bucket = Bucket::new(budget(3600, Some(1)), begun);
        assert!(bucket.take(2, at(0)));
        let allowed = (1..=30_000).filter(|ms| bucket.take(1, begun + Duration::from_millis(*ms)));
        assert_eq!(allowed.count(), 29);
    }

    #[test]
    fn a_budget_that_changes_gives_no_new_burst() {
        let now = Instant::now();
        let mut budgets = Budgets::default();
        budgets.set_at("a", budget(1000, Some(100)), now);
        let left = |budgets: &Budgets| budgets.buckets.get("a").map(|bucket| bucket.left / PARTS);
        assert!(budgets.buckets.get_mut("a").unwrap().take(300, now));
        budgets.set_at("a", budget(1000, Some(100)), now);
        assert_eq!(left(&budgets), Some(-200));
        budgets.set_at("a", budget(9000, Some(9000)), now);
        assert_eq!(left(&budgets), Some(-200));
        budgets.set_at("a", Budget::default(), now);
        assert_eq!(left(&budgets), None);
        budgets.set_at("a", budget(0, None), now);
        assert!(
            !budgets
                .buckets
                .get_mut("a")
                .unwrap()
                .take(1, now + Duration::from_secs(9999))
        );
    }
}
