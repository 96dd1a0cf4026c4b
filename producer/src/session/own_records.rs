//! What this thread has recorded, read back from its own rings: for tests of the program.

use ringmark_format::PageNumber;
use ringmark_format::page::PageHeader;
use ringmark_format::record::{self, Header};
use ringmark_ring::observe::{self, HEADER_WORDS, PageRead, copy_open};

use super::life::Session;
use super::process::own_thread;

/// A record of this thread.
pub(super) struct OwnRecord {
    pub(super) type_id: u32,
    pub(super) payload: Vec<u8>,
}

impl Session {
    /// How many records each ring got so far.
    pub(crate) fn reservations(&self) -> Vec<u64> {
        self.ring_counts().iter().map(|ring| ring.records).collect()
    }

    /// This thread's records after the first `from` of each ring, and how many of them are not there any more.
    pub(super) fn own_records(&self, from: &[u64]) -> (Vec<OwnRecord>, u64) {
        let (mut records, mut gone) = (Vec::new(), 0);
        let slots =
            (0..self.core.file.slots_used()).zip(from.iter().copied().chain(core::iter::repeat(0)));
        for (slot, from) in slots {
            gone += self.read_ring(slot, from, &mut records);
        }
        (records, gone)
    }

    fn read_ring(&self, slot: u32, from: u64, records: &mut Vec<OwnRecord>) -> u64 {
        let file = &self.core.file;
        let Some(slot) = file.slot(slot) else {
            return 0;
        };
        let (geometry, produced, (tid, _)) = (slot.geometry(), slot.produced(), own_thread());
        let Some(pages) = file.pages(geometry) else {
            return 0;
        };
        let page_words = geometry.page_bytes as usize / 8;
        let mut copy = vec![0; page_words];
        let oldest = produced.saturating_sub(geometry.pages.into());
        let mut gone = 0;
        for number in oldest..produced {
            let first = (number % u64::from(geometry.pages)) as usize * page_words;
            let (page, number) = (&pages[first..first + page_words], PageNumber(number));
            let header = observe::header(page, number).filter(|header| header.tid == tid);
            if let (Some(header), PageRead::Copied(copied)) =
                (header, copy_open(page, number, &mut copy))
            {
                if number.0 == oldest {
                    gone = gone_before(&header, from);
                }
                records_in(&copy[..copied.words], header.first_event, from, records);
            }
        }
        gone
    }
}

/// Records of the thread that were overwritten: those before its oldest page, if it did not begin there.
fn gone_before(header: &PageHeader, from: u64) -> u64 {
    let is_first = header.flags & ringmark_format::page::FIRST_OF_CLAIM != 0;
    let before = header.first_event.saturating_sub(from);
    if is_first { 0 } else { before }
}

/// The records of a page whose number is at least `from`; `number` is that of the first.
fn records_in(copy: &[u64], mut number: u64, from: u64, records: &mut Vec<OwnRecord>) {
    let mut at = HEADER_WORDS;
    while let Some(word) = copy.get(at) {
        let header = record::unpack(*word);
        let Some(words) = header.words(|| copy.get(at + 1).copied()) else {
            return;
        };
        let end = at.saturating_add(words as usize);
        if let Header::Record {
            type_id,
            payload_words,
            ..
        } = header
        {
            if type_id.0 == record::TIME_EXTEND {
                at = end;
                continue;
            }
            let payload = at + if payload_words.is_some() { 1 } else { 2 };
            let payload = copy.get(payload..end).unwrap_or_default();
            if number >= from {
                records.push(OwnRecord {
                    type_id: type_id.0,
                    payload: payload.iter().flat_map(|word| word.to_le_bytes()).collect(),
                });
            }
        }
        number += 1;
        at = end;
    }
}
