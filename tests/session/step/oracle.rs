//! What must hold at any instant, the program killed there: told from the program's own ledger
//! and from what was readable one instruction before.

use std::collections::BTreeSet;

use ringmark_format::counters::SlotCounters;

use super::image::{Image, Page, Record};
use super::types::{CONTEXTS, split};

/// Calls of each context: begun, and returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Calls {
    pub(crate) begun: [u64; CONTEXTS],
    pub(crate) returned: [u64; CONTEXTS],
}

impl Calls {
    pub(crate) fn begun_in_all(&self) -> u64 {
        self.begun.iter().sum()
    }

    pub(crate) fn returned_in_all(&self) -> u64 {
        self.returned.iter().sum()
    }
}

/// What one session must look like.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    discard: bool,
    exact: bool,
    before: Image,
    /// Most calls that were open at once.
    pub(crate) depth: u64,
}

/// Reservations made and not committed at hand, and all that were ever made.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    busy: u64,
    reservations: u64,
}

impl Oracle {
    /// `discard`: full rings lose the newest events. `exact`: one thread without handlers, so the
    /// place of every event is known.
    pub(crate) fn new(discard: bool, exact: bool) -> Self {
        Self {
            discard,
            exact,
            ..Self::default()
        }
    }

    /// Checks an image against the calls; leaves the image before in its place.
    pub(crate) fn check(&mut self, image: &mut Image, calls: &Calls) -> Result<(), String> {
        let mut sums = Sums::default();
        for index in 0..image.slots.len() {
            self.check_slot(image, index, calls, &mut sums)
                .map_err(|e| format!("slot {}: {e}", image.slots[index].slot))?;
        }
        if image.slots.len() > 1 {
            nothing_twice(image)?;
        }
        self.check_sums(image, calls, sums)?;
        self.check_nothing_vanished(image)?;
        std::mem::swap(image, &mut self.before);
        Ok(())
    }

    /// Every call that returned is there, overwritten, or counted as lost; what is more than that
    /// is calls that are under way.
    fn check_sums(&mut self, image: &Image, calls: &Calls, sums: Sums) -> Result<(), String> {
        let (begun, returned) = (calls.begun_in_all(), calls.returned_in_all());
        self.depth = self.depth.max(begun - returned);
        let known = sums.reservations + image.lost;
        if returned > known - sums.busy {
            return Err(format!(
                "{returned} calls returned, {} reservations ({} of them not committed), {} lost",
                sums.reservations, sums.busy, image.lost
            ));
        }
        if known > begun {
            return Err(format!(
                "{begun} calls begun, {} reservations, {} lost",
                sums.reservations, image.lost
            ));
        }
        Ok(())
    }

    fn check_slot(
        &self,
        image: &Image,
        index: usize,
        calls: &Calls,
        sums: &mut Sums,
    ) -> Result<(), String> {
        let entry = &image.slots[index];
        let pages = pages_of(image, entry.slot);
        self.check_pages(image, index, pages)?;
        let lost: u64 = entry.lost.iter().sum();
        let mut last = [None; CONTEXTS];
        for (n, page) in pages.iter().enumerate() {
            let records = image.records_of(page);
            if page.lost_before > lost {
                return Err(format!("page {} lost more than all", page.number));
            }
            if let Some(next) = pages.get(n + 1) {
                let through = page.first_event + records.len() as u64;
                if through != next.first_event || page.lost_before > next.lost_before {
                    return Err(format!("page {page:?} ends at {through}, then {next:?}"));
                }
            }
            sums.busy += self.check_records(page, records, calls, &mut last)?;
        }
        let through = pages
            .last()
            .map_or(0, |p| p.first_event + image.records_of(p).len() as u64);
        if entry.events != through {
            return Err(format!("{} counted, {through} found", entry.events));
        }
        sums.reservations += through;
        Ok(())
    }

    /// All pages are there that must be.
    fn check_pages(&self, image: &Image, index: usize, pages: &[Page]) -> Result<(), String> {
        let entry: &SlotCounters = &image.slots[index];
        let oldest = entry.produced.saturating_sub(image.ring_pages[index]);
        // The oldest one may be on its way out: released, or the next to be overwritten.
        let first = if self.discard {
            entry.consumed.max(oldest)
        } else if oldest == 0 && entry.produced < image.ring_pages[index] {
            0
        } else {
            oldest + 1
        };
        let there: BTreeSet<_> = pages.iter().map(|p| p.number).collect();
        if let Some(missing) = (first..entry.produced).find(|n| !there.contains(n)) {
            let produced = entry.produced;
            return Err(format!(
                "page {missing} of {oldest}..{produced} is not there"
            ));
        }
        let open = entry.produced - u64::from(!image.ended[index] && entry.produced > 0);
        match pages.iter().find(|p| p.sealed != (p.number < open)) {
            Some(page) => Err(format!("sealed or not: {page:?}, {open} pages are")),
            None => Ok(()),
        }
    }

    /// Returns how many are not committed.
    fn check_records(
        &self,
        page: &Page,
        records: &[Record],
        calls: &Calls,
        last: &mut [Option<u64>; CONTEXTS],
    ) -> Result<u64, String> {
        let mut busy = 0;
        for (i, record) in records.iter().enumerate() {
            let place = || format!("record {i} of page {} is {record:x?}", page.number);
            match *record {
                Record::Busy if page.sealed => return Err(format!("sealed, and {}", place())),
                Record::Busy => busy += 1,
                Record::Nameless | Record::Cancelled => {}
                Record::Event(id) => {
                    let (context, number) = split(id).ok_or_else(place)?;
                    if number >= calls.begun[context] {
                        return Err(format!("never begun: {}", place()));
                    }
                    if last[context].replace(number) >= Some(number) {
                        return Err(format!("again, or in the wrong order: {}", place()));
                    }
                    let expected = page.first_event + i as u64 + page.lost_before;
                    if self.exact && number != expected {
                        return Err(format!("expected event {expected}: {}", place()));
                    }
                }
            }
        }
        if busy > calls.begun_in_all() - calls.returned_in_all() {
            return Err(format!("{busy} not committed in page {}", page.number));
        }
        Ok(busy)
    }

    /// What was there one instruction before is there, but for pages released or overwritten.
    fn check_nothing_vanished(&self, image: &Image) -> Result<(), String> {
        let mut now = image.pages.iter().peekable();
        for page in &self.before.pages {
            let key = (page.slot, page.number);
            while now.next_if(|p| (p.slot, p.number) < key).is_some() {}
            // One that is not there at all: `check_pages` said that it need not be.
            let Some(same) = now.peek().filter(|p| (p.slot, p.number) == key) else {
                continue;
            };
            let before = self.before.records_of(page);
            let after = image.records_of(same).get(..before.len());
            let kept = |(a, b): (&Record, &Record)| a == b || *a == Record::Busy;
            if !after.is_some_and(|after| before.iter().zip(after).all(kept)) {
                return Err(format!("events of page {page:?} are gone: {same:?}"));
            }
        }
        Ok(())
    }

    /// At the end nothing is under way.
    pub(crate) fn check_end(&self, calls: &Calls) -> Result<(), String> {
        let image = &self.before;
        let reservations: u64 = image.slots.iter().map(|s| s.events).sum();
        let busy = image.records.iter().filter(|r| **r == Record::Busy).count();
        let begun = calls.begun_in_all();
        if calls.begun != calls.returned || busy != 0 || begun != reservations + image.lost {
            return Err(format!(
                "at the end: {calls:?}, {reservations} reservations, {busy} not committed, {} lost",
                image.lost
            ));
        }
        Ok(())
    }

    /// What was checked last.
    pub(crate) fn last(&self) -> &Image {
        &self.before
    }
}

fn pages_of(image: &Image, slot: u32) -> &[Page] {
    let first = image.pages.partition_point(|p| p.slot < slot);
    let end = image.pages.partition_point(|p| p.slot <= slot);
    &image.pages[first..end]
}

fn nothing_twice(image: &Image) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for record in &image.records {
        if let Record::Event(id) = record
            && !seen.insert(id)
        {
            return Err(format!("event {id:x} is in two rings"));
        }
    }
    Ok(())
}
