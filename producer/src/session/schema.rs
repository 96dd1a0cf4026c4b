//! Schema entries of the event types, and where in the file they go.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::attribute::{self, tag};
use ringmark_format::schema::{EntryHeader, EventEntry, FieldEntry, OPTIONAL, entry_kind};
use ringmark_format::session::{Extent, SCHEMA_INCOMPLETE, SessionState};
use ringmark_ring::SchemaLog;
use zerocopy::{FromBytes, IntoBytes};

use super::core::Core;
use super::layout::EXTENT_BYTES;
use super::memory;
use crate::description::{Description, EventType, Field, Place};

/// Appends entries to the schema stream, with more extents if need be: as many as there is room for.
/// Records of the others stay readable as raw ones; a flag marks that, and readers pass it on.
pub(super) fn publish(core: &Core, schema: &[u8]) -> bool {
    let log = core.file.schema_log();
    while add_room(core, &log, schema.len() as u64) {}
    let room = log.capacity().saturating_sub(log.published());
    let fits = whole_entries(schema, room);
    let all = log.append(fits).is_ok() && fits.len() == schema.len();
    if !all {
        core.state_word(offset_of!(SessionState, flags))
            .fetch_or(SCHEMA_INCOMPLETE, Relaxed);
    }
    all
}

/// Adds an extent if the schema stream lacks one for these bytes. `false`: it does not, or there is
/// no room. What cannot be had whole takes no more than the half that rings have the wanted size in.
fn add_room(core: &Core, log: &SchemaLog<'_>, bytes: u64) -> bool {
    let missing = (log.published() + bytes).saturating_sub(log.capacity());
    if missing == 0 {
        return false;
    }
    // There are few extents: each is at least half as large as all before.
    let bytes = missing
        .max(log.capacity() / 2)
        .next_multiple_of(EXTENT_BYTES);
    let left = core.half.saturating_sub(memory::taken(core)) / EXTENT_BYTES * EXTENT_BYTES;
    let take = |bytes| memory::take(core, bytes).map(|offset| Extent { offset, bytes });
    let extent = take(bytes).or_else(|| take(left.min(bytes)).filter(|_| left > 0));
    extent.is_some_and(|extent| log.add_extent(extent).is_ok())
}

/// The entries from the first one on that fit into this many bytes.
fn whole_entries(schema: &[u8], room: u64) -> &[u8] {
    let mut end = 0;
    while let Ok((header, _)) = EntryHeader::read_from_prefix(&schema[end..]) {
        let next = end + header.bytes as usize;
        if header.bytes == 0 || next as u64 > room || next > schema.len() {
            break;
        }
        end = next;
    }
    &schema[..end]
}

/// Writes the entry of an event type.
pub(super) fn push_entry(out: &mut Vec<u8>, id: u32, description: &Description<'_>) {
    let start = out.len();
    let header = EntryHeader {
        bytes: 0,
        kind: entry_kind::EVENT,
        fixed_bytes: EventEntry::BYTES as u16,
        id,
        reserved: 0,
    };
    out.extend_from_slice(header.as_bytes());
    let event = &description.event;
    let fixed = EventEntry {
        level: event.level as u8,
        shape: event.shape as u8,
        flags: 0,
        fixed_payload_bytes: description.fixed_bytes,
    };
    out.extend_from_slice(fixed.as_bytes());
    push_attributes(out, event);
    for field in description.fields {
        push_field(out, field);
    }
    let bytes = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&bytes.to_le_bytes());
}

fn push_attributes(out: &mut Vec<u8>, event: &EventType) {
    attribute::push(out, tag::NAME, event.name.as_bytes());
    attribute::push(out, tag::TARGET, event.target.as_bytes());
    if !event.category.is_empty() {
        attribute::push(out, tag::CATEGORY, event.category.as_bytes());
    }
    if !event.file.is_empty() {
        attribute::push(out, tag::FILE, event.file.as_bytes());
        attribute::push(out, tag::LINE, &event.line.to_le_bytes());
    }
}

fn push_field(out: &mut Vec<u8>, field: &Field) {
    let place = &field.place;
    let one_value = Place { count: 0, ..*place };
    let entry = FieldEntry {
        kind: place.kind as u8,
        flags: if place.optional { OPTIONAL } else { 0 },
        count: place.count,
        offset: place.offset,
        bytes: one_value.bytes(),
        reserved: 0,
    };
    let mut value = entry.as_bytes().to_vec();
    attribute::push(&mut value, tag::NAME, field.name.as_bytes());
    if field.semantic != 0 {
        attribute::push(&mut value, tag::SEMANTIC, &field.semantic.to_le_bytes());
    }
    if !field.unit.is_empty() {
        attribute::push(&mut value, tag::UNIT, field.unit.as_bytes());
    }
    if field.redacted {
        attribute::push(&mut value, tag::REDACTED, &[]);
    }
    attribute::push(out, tag::FIELD, &value);
}
