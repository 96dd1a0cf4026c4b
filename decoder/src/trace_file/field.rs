//! Fields of event types: where their values lie in a payload, and how they are read.

use ringmark_format::attribute::{Attribute, Attributes, tag};
use ringmark_format::schema::{FieldEntry, Kind, OPTIONAL, semantic};
use zerocopy::FromBytes;

use crate::trace_file::value::Value;
use crate::words::escape;

/// A field of an event type.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its name, as found: not known to be UTF-8.
    pub name: Vec<u8>,
    /// How its bytes are read. `None`: the kind is not known here, or its values have another
    /// size; then the bytes are shown raw.
    pub kind: Option<Kind>,
    /// 0: one value; n: an array of n values.
    pub count: u16,
    /// Offset of the first value in the payload, in bytes.
    pub offset: u32,
    /// Bytes of one value in the payload's fixed part.
    pub bytes: u32,
    /// Whether the value may be absent.
    pub optional: bool,
    /// Unit of the value ("ns", "bytes"), or empty.
    pub unit: Vec<u8>,
    /// Base in which text shows the value: 2, 8, 10 or 16. Default: 10, and 16 for addresses.
    pub base: u32,
    /// What the value means; see [`ringmark_format::schema::semantic`].
    pub semantic: Option<u32>,
    /// Labels of values, by ascending value, each value once.
    pub labels: Vec<(u64, Vec<u8>)>,
    /// Whether the producer replaced the value to keep it out of the trace.
    pub redacted: bool,
    /// `"name":`, as JSON has it.
    pub(crate) key: Vec<u8>,
}

impl Field {
    /// A field with one value of this kind, at the start of a payload.
    #[must_use]
    pub fn new(name: &[u8], kind: Kind) -> Self {
        let mut field = Self {
            name: name.to_vec(),
            ..Self::unnamed(Some(kind), kind.fixed_bytes() as u32)
        };
        field.finish();
        field
    }

    const fn unnamed(kind: Option<Kind>, bytes: u32) -> Self {
        Self {
            name: Vec::new(),
            kind,
            count: 0,
            offset: 0,
            bytes,
            optional: false,
            unit: Vec::new(),
            base: 10,
            semantic: None,
            labels: Vec::new(),
            redacted: false,
            key: Vec::new(),
        }
    }

    /// Reads a FIELD attribute's value.
    pub(crate) fn read(value: &[u8]) -> Result<Self, &'static str> {
        let (entry, attributes) =
            FieldEntry::read_from_prefix(value).map_err(|_| "a field is too short")?;
        let optional = entry.flags & OPTIONAL != 0 && entry.count == 0;
        let halves = if optional { 2 } else { 1 };
        let known = Kind::from_u8(entry.kind);
        let kind = known.filter(|kind| halves * kind.fixed_bytes() == entry.bytes as usize);
        let mut field = Self {
            count: entry.count,
            offset: entry.offset,
            optional,
            ..Self::unnamed(kind, entry.bytes)
        };
        Attributes::new(attributes).for_each(|a| field.take(&a));
        field.finish();
        Ok(field)
    }

    fn take(&mut self, attribute: &Attribute<'_>) {
        match attribute.tag {
            tag::NAME => self.name = attribute.value.to_vec(),
            tag::UNIT => self.unit = attribute.value.to_vec(),
            tag::DISPLAY_BASE => self.base = attribute.as_u32().unwrap_or(10),
            tag::SEMANTIC => self.semantic = attribute.as_u32(),
            tag::REDACTED => self.redacted = true,
            tag::ENUM_LABEL => {
                if let Some((value, text)) = attribute.value.split_first_chunk() {
                    self.labels
                        .push((u64::from_le_bytes(*value), text.to_vec()));
                }
            }
            _ => {}
        }
    }

    fn finish(&mut self) {
        escape::json(&self.name, &mut self.key);
        self.key.push(b':');
        if self.semantic == Some(semantic::ADDRESS) && self.base == 10 {
            self.base = 16;
        }
        // The first of several labels of one value counts.
        self.labels.sort_by_key(|(value, _)| *value);
        self.labels.dedup_by_key(|(value, _)| *value);
    }

    /// One unsigned number.
    pub(crate) fn is_plain_number(&self) -> bool {
        let number = matches!(
            self.kind,
            Some(Kind::U64 | Kind::U32 | Kind::U16 | Kind::U8)
        );
        self.count == 0 && !self.optional && number
    }

    /// The value of one unsigned number, as [`Self::value`] reads it; `None`: the payload is too
    /// short, or the field is something else.
    #[inline]
    pub(crate) fn plain_number(&self, payload: &[u8]) -> Option<u64> {
        let at = payload.get(self.offset as usize..)?;
        match self.kind? {
            Kind::U64 => Some(u64::from_le_bytes(*at.first_chunk()?)),
            Kind::U32 => Some(u32::from_le_bytes(*at.first_chunk()?).into()),
            Kind::U16 => Some(u16::from_le_bytes(*at.first_chunk()?).into()),
            Kind::U8 => Some((*at.first()?).into()),
            _ => None,
        }
    }

    /// The label of a value, for output in place of the number; `None`: it has none.
    #[must_use]
    pub fn label(&self, value: u64) -> Option<&[u8]> {
        let place = self.labels.partition_point(|(v, _)| *v < value);
        let (found, label) = self.labels.get(place)?;
        (*found == value).then_some(label)
    }

    /// Reads the field's value from `payload`, the payload of one of its type's records.
    /// [`Value::Missing`] if the payload is too short.
    #[inline]
    #[must_use]
    pub fn value<'a>(&self, payload: &'a [u8]) -> Value<'a> {
        // Most are words. This is short enough to become a part of its user.
        if self.kind == Some(Kind::U64) && !self.optional && self.count == 0 {
            let word = payload.get(self.offset as usize..);
            let word = word.and_then(|fixed| fixed.first_chunk());
            return word.map_or(Value::Missing, |word| Value::U64(u64::from_le_bytes(*word)));
        }
        self.any_value(payload)
    }

    /// As [`Self::value`], for all fields.
    #[inline(never)]
    fn any_value<'a>(&self, payload: &'a [u8]) -> Value<'a> {
        let Some(kind) = self.kind else {
            return self.unreadable(payload);
        };
        if self.optional && self.is_absent(kind, payload) {
            return Value::None;
        }
        if self.count == 0 {
            return payload
                .get(self.offset as usize..)
                .and_then(|fixed| Value::read(kind, fixed, payload))
                .unwrap_or(Value::Missing);
        }
        let bytes = kind.fixed_bytes() * usize::from(self.count);
        let end = (self.offset as usize).saturating_add(bytes);
        match payload.get(self.offset as usize..end) {
            Some(items) => Value::Array(kind, items, payload),
            None => Value::Missing,
        }
    }

    /// Whether the presence after an optional value is 0.
    fn is_absent(&self, kind: Kind, payload: &[u8]) -> bool {
        let start = (self.offset as usize).saturating_add(kind.fixed_bytes());
        let presence = payload.get(start..start.saturating_add(kind.fixed_bytes()));
        presence.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
    }

    /// The bytes of a field whose kind is not known here.
    fn unreadable<'a>(&self, payload: &'a [u8]) -> Value<'a> {
        let bytes = (self.bytes as usize).saturating_mul(usize::from(self.count.max(1)));
        let end = (self.offset as usize).saturating_add(bytes);
        let there = payload.get(self.offset as usize..end);
        there.map_or(Value::Missing, Value::Bytes)
    }

    /// The value as an unsigned number, if it is one.
    #[inline]
    pub(crate) fn number(&self, payload: &[u8]) -> Option<u64> {
        match self.value(payload) {
            Value::U64(number) => Some(number),
            _ => None,
        }
    }
}
