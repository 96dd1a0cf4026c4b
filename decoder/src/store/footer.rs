//! The footer of a segment that is an object: its sessions, their hosts, and when their events were.

use std::cmp::Reverse;
use std::io;
use std::ops::Range;

use ringmark_format::Uuid;
use ringmark_format::attribute::{self, Attributes, tag};
use ringmark_format::block::{CONTENT_BYTES_MAX, kind};
use ringmark_format::block_at::Blocks;
use ringmark_format::codec::write;
use ringmark_format::objects::{FOOTER_MAGIC, Footer, FooterEnd, FooterSession, GROUPED};
use zerocopy::{FromBytes, IntoBytes};

use super::index::SegmentIndex;
use super::object_source::{ListedObject, ObjectSource};

/// Largest footer that is read, in bytes: that of a block.
const BYTES_MAX: u64 = CONTENT_BYTES_MAX as u64 + 128;
/// As much is read of the end of an object at first. Few footers are longer.
pub(super) const END_BYTES: u64 = 16 << 10;

/// What a segment holds of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FooterEntry {
    /// The session.
    pub session: Uuid,
    /// The proved host that sent it.
    pub host: Vec<u8>,
    /// Its service, or the name of its process.
    pub service: Vec<u8>,
    /// Bytes of the schema stream that its pages need, from its start.
    pub schema_bytes: u64,
    /// Number of the connection that brought it; 0: not known.
    pub epoch: u32,
    /// Bytes of its blocks in the segment; 0: not known.
    pub bytes: u32,
    /// When its events were; `None`: not known.
    pub index: Option<SegmentIndex>,
}

/// The footer of a segment.
///
/// It stands in a FOOTER block at the end of the object, whose last bytes say how long it is. So a
/// reader gets it with two short reads, wherever the object is. A footer says which sessions of which
/// hosts the segment has, and when their events were, and nothing that is not in the segment: without
/// it the segment is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SegmentFooter {
    /// Bytes before the footer.
    pub segment_bytes: u64,
    /// Its sessions.
    pub sessions: Vec<FooterEntry>,
    /// The blocks of each session lie together, in this order.
    pub is_grouped: bool,
}

impl SegmentFooter {
    /// The FOOTER block. Where indexes are too much for a block, the largest are left out. It is empty if there are
    /// too many sessions for a block.
    #[must_use]
    pub fn block(&self) -> Vec<u8> {
        if self.content_bytes() <= CONTENT_BYTES_MAX as usize {
            return self.whole_block();
        }
        let mut short = self.clone();
        let mut bytes = short.content_bytes();
        let mut largest: Vec<_> = short.sessions.iter_mut().collect();
        largest.sort_by_key(|entry| Reverse(entry.index_bytes()));
        for entry in largest {
            if bytes <= CONTENT_BYTES_MAX as usize {
                break;
            }
            bytes -= entry.index_bytes();
            entry.index = None;
        }
        short.whole_block()
    }

    /// Bytes of the content of its block.
    fn content_bytes(&self) -> usize {
        let entries = self.sessions.iter().map(FooterEntry::bytes);
        Footer::BYTES + entries.sum::<usize>() + FooterEnd::BYTES
    }

    fn whole_block(&self) -> Vec<u8> {
        let head = Footer {
            segment_bytes: self.segment_bytes,
            sessions: self.sessions.len() as u32,
            flags: if self.is_grouped { GROUPED } else { 0 },
        };
        let mut content = head.as_bytes().to_vec();
        for entry in &self.sessions {
            entry.push_to(&mut content);
        }
        let whole = ringmark_format::block::BlockHeader::BYTES + content.len() + FooterEnd::BYTES;
        let end = FooterEnd {
            block_bytes: whole as u64,
            magic: FOOTER_MAGIC,
        };
        content.extend_from_slice(end.as_bytes());
        let mut block = Vec::with_capacity(whole);
        let header = write::header(kind::FOOTER, Uuid([0; 16]));
        let _ = write::block(&mut block, header, &content);
        block
    }

    /// Reads the footer from the end of an object, in one short read, or two if it is long. `None`: it has
    /// none, or a damaged one.
    ///
    /// # Errors
    /// The object cannot be read.
    pub fn of_object(source: &dyn ObjectSource, object: &ListedObject) -> io::Result<Option<Self>> {
        let end = source.get(&object.name, object.end(END_BYTES))?;
        Self::of_end(source, object, end)
    }

    /// The footer of an object, of which this is the end. A long one is read again. `None`: it has none, or a
    /// damaged one.
    ///
    /// # Errors
    /// The object cannot be read.
    pub(super) fn of_end(
        source: &dyn ObjectSource,
        object: &ListedObject,
        mut end: Vec<u8>,
    ) -> io::Result<Option<Self>> {
        let ListedObject { name, bytes } = object;
        let last = end.len().saturating_sub(FooterEnd::BYTES);
        let Some(size) = block_bytes(&end[last..]).filter(|size| size <= bytes) else {
            return Ok(None);
        };
        if size > end.len() as u64 {
            end = source.get(name, bytes - size..*bytes)?;
        }
        let begin = end.len().saturating_sub(size as usize);
        let read = Self::read(&end[begin..]);
        Ok(read.filter(|footer| footer.segment_bytes == bytes - size))
    }

    /// Where the blocks of each session lie, in the order of the sessions. `None`: they do not lie together, or
    /// not as the footer says.
    pub(super) fn ranges(&self) -> Option<Vec<Range<u64>>> {
        let mut end = 0_u64;
        let ranges = self.sessions.iter().map(|entry| {
            let begin = end;
            end += u64::from(entry.bytes);
            begin..end
        });
        let ranges = ranges.collect();
        (self.is_grouped && end == self.segment_bytes).then_some(ranges)
    }

    /// Bytes of the FOOTER block at the end of an object; `None`: it has none.
    #[must_use]
    pub fn end_bytes(object: &[u8]) -> Option<usize> {
        let end = object.len().checked_sub(FooterEnd::BYTES)?;
        let bytes = usize::try_from(block_bytes(&object[end..])?).ok()?;
        (bytes <= object.len()).then_some(bytes)
    }

    /// Reads a FOOTER block. `None`: it is damaged, or none.
    #[must_use]
    pub fn read(block: &[u8]) -> Option<Self> {
        let first = Blocks::new(block).next()?;
        let content = first
            .content()
            .ok()
            .filter(|_| first.header.kind == kind::FOOTER)?;
        let (head, mut rest) = Footer::read_from_prefix(content).ok()?;
        let mut sessions = Vec::new();
        for _ in 0..head.sessions {
            let (entry, after) = FooterEntry::read(rest)?;
            sessions.push(entry);
            rest = after;
        }
        Some(Self {
            segment_bytes: head.segment_bytes,
            sessions,
            is_grouped: head.flags & GROUPED != 0,
        })
    }
}

/// Size of the FOOTER block, by the last bytes of an object; `None`: it has no footer.
fn block_bytes(end: &[u8]) -> Option<u64> {
    let end = FooterEnd::read_from_bytes(end).ok()?;
    let is_footer = end.magic == FOOTER_MAGIC && end.block_bytes <= BYTES_MAX;
    is_footer.then_some(end.block_bytes)
}

impl FooterEntry {
    fn attributes(&self) -> Vec<u8> {
        let mut attributes = Vec::new();
        attribute::push(&mut attributes, tag::HOST, &self.host);
        attribute::push(&mut attributes, tag::SERVICE_NAME, &self.service);
        attributes
    }

    fn index_bytes(&self) -> usize {
        self.index.as_ref().map_or(0, SegmentIndex::content_bytes)
    }

    fn bytes(&self) -> usize {
        FooterSession::BYTES + self.attributes().len() + self.index_bytes()
    }

    /// Appends the entry: its fixed part, its attributes, and the content of its index.
    fn push_to(&self, content: &mut Vec<u8>) {
        let attributes = self.attributes();
        let index = self.index.as_ref().map(SegmentIndex::content);
        let index = index.unwrap_or_default();
        let head = FooterSession {
            session: self.session.0,
            schema_bytes: self.schema_bytes,
            epoch: self.epoch,
            attributes_bytes: attributes.len() as u32,
            index_bytes: index.len() as u32,
            bytes: self.bytes,
        };
        content.extend_from_slice(head.as_bytes());
        content.extend_from_slice(&attributes);
        content.extend_from_slice(&index);
    }

    /// Reads the entry at the start of `content`; returns it and what follows it. `None`: it says
    /// more than there is.
    fn read(content: &[u8]) -> Option<(Self, &[u8])> {
        let (head, rest) = FooterSession::read_from_prefix(content).ok()?;
        let (attributes, rest) = rest.split_at_checked(head.attributes_bytes as usize)?;
        let (index, rest) = rest.split_at_checked(head.index_bytes as usize)?;
        let find = |tag| {
            Attributes::new(attributes)
                .find(tag)
                .unwrap_or_default()
                .to_vec()
        };
        let session = Uuid(head.session);
        let entry = Self {
            session,
            host: find(tag::HOST),
            service: find(tag::SERVICE_NAME),
            schema_bytes: head.schema_bytes,
            epoch: head.epoch,
            bytes: head.bytes,
            index: SegmentIndex::of_content(session, index),
        };
        Some((entry, rest))
    }
}

#[cfg(test)]
mod tests {
    use ringmark_format::store::{Index, IndexSlot};
    use zerocopy::FromZeros;

    use super::*;

    fn footer() -> SegmentFooter {
        let session = Uuid([3; 16]);
        let slots = vec![IndexSlot {
            slot: 4,
            next_page: 9,
            ..IndexSlot::new_zeroed()
        }];
        let about = Index {
            slots: 1,
            last_ns: 77,
            ..Index::new_zeroed()
        };
        let entry = |host: &[u8], index| FooterEntry {
            session,
            host: host.to_vec(),
            service: b"shop".to_vec(),
            schema_bytes: 512,
            epoch: 3,
            bytes: 900,
            index,
        };
        let index = SegmentIndex {
            session,
            about,
            slots,
        };
        SegmentFooter {
            segment_bytes: 1000,
            sessions: vec![entry(b"web-1", Some(index)), entry(b"", None)],
            is_grouped: true,
        }
    }

    #[test]
    fn what_was_written_is_read_and_any_damage_is_found() {
        let written = footer();
        let block = written.block();
        assert_eq!(SegmentFooter::read(&block), Some(written));
        let end = &block[block.len() - FooterEnd::BYTES..];
        assert_eq!(block_bytes(end), Some(block.len() as u64));
        for at in 0..block.len() {
            let mut damaged = block.clone();
            damaged[at] ^= 0x10;
            assert_eq!(SegmentFooter::read(&damaged), None, "byte {at}");
            assert_eq!(SegmentFooter::read(&block[..at]), None, "{at} bytes");
        }
    }

    #[test]
    fn too_much_for_a_block_leaves_out_the_largest_indexes() {
        let mut written = footer();
        let small = written.sessions[0].clone();
        for slots in [50_000, 60_000, 70_000] {
            let mut large = small.clone();
            let index = large.index.as_mut().unwrap();
            index.slots = vec![index.slots[0]; slots];
            index.about.slots = slots as u32;
            written.sessions.push(large);
        }
        let read = SegmentFooter::read(&written.block()).expect("a footer");
        let has_index = read.sessions.iter().map(|entry| entry.index.is_some());
        let has_index: Vec<_> = has_index.collect();
        assert_eq!(has_index, [true, false, true, false, false]);
        let names = |footer: &SegmentFooter| {
            let sessions = footer.sessions.iter();
            sessions.map(|entry| entry.host.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&read), names(&written));
    }

    #[test]
    fn a_footer_that_says_more_than_it_has_is_none() {
        let mut content = Footer {
            segment_bytes: 0,
            sessions: u32::MAX,
            flags: 0,
        }
        .as_bytes()
        .to_vec();
        content.extend_from_slice(&[0xFF; 64]);
        let mut block = Vec::new();
        let header = write::header(kind::FOOTER, Uuid([0; 16]));
        write::block(&mut block, header, &content).unwrap();
        assert_eq!(SegmentFooter::read(&block), None);
    }
}
