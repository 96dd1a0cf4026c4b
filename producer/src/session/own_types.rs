//! Records as a test of the program wants them: names and fields, by what the session's schema says.

use ringmark_format::attribute::{Attributes, tag};
use ringmark_format::schema::{
    EntryHeader, EventEntry, FieldEntry, Kind, OPTIONAL, entry_kind, semantic,
};
use zerocopy::FromBytes;

use super::life::Session;
use crate::recorded::Recorded;

impl Session {
    /// This thread's events after the first `from` records of each ring, and how many are not there any more.
    pub(crate) fn own_events(&self, from: &[u64]) -> (Vec<Recorded>, u64) {
        let (records, gone) = self.own_records(from);
        let types = types_of(&self.core.file.schema_log().read(0));
        let find = |id| types.iter().rev().find(|ty| ty.id == id);
        let events = records.iter().filter_map(|record| {
            let ty = find(record.type_id)?;
            let fields = ty
                .fields
                .iter()
                .filter_map(|field| field.text(&record.payload));
            Some(Recorded {
                name: ty.name.clone(),
                fields: fields.collect(),
            })
        });
        (events.collect(), gone)
    }
}

/// An event type, as the session describes it.
struct TypeOf {
    id: u32,
    name: String,
    fields: Vec<FieldOf>,
}

struct FieldOf {
    name: String,
    entry: FieldEntry,
}

fn types_of(mut schema: &[u8]) -> Vec<TypeOf> {
    let mut types = Vec::new();
    while let Ok((header, after)) = EntryHeader::read_from_prefix(schema) {
        let bytes = header.bytes as usize;
        if bytes < EntryHeader::BYTES || bytes > schema.len() {
            break;
        }
        if header.kind == entry_kind::EVENT {
            let rest = &after[..bytes - EntryHeader::BYTES];
            let attributes = Attributes::new(rest.get(EventEntry::BYTES..).unwrap_or_default());
            types.push(TypeOf {
                id: header.id,
                name: name_in(attributes.clone()),
                fields: attributes
                    .filter(|a| a.tag == tag::FIELD)
                    .filter_map(|a| field_of(a.value))
                    .collect(),
            });
        }
        schema = &schema[bytes..];
    }
    types
}

fn name_in(attributes: Attributes<'_>) -> String {
    String::from_utf8_lossy(attributes.find(tag::NAME).unwrap_or_default()).into_owned()
}

/// `None`: it says what the library adds.
fn field_of(value: &[u8]) -> Option<FieldOf> {
    let (entry, rest) = FieldEntry::read_from_prefix(value).ok()?;
    let attributes = Attributes::new(rest);
    let mut own = attributes.clone().filter(|a| a.tag == tag::SEMANTIC);
    let meaning = own.find_map(|a| a.as_u32()).unwrap_or(0);
    let is_added = [semantic::DURATION, semantic::SPAN_ID, semantic::PARENT_ID].contains(&meaning);
    (!is_added).then(|| FieldOf {
        name: name_in(attributes),
        entry,
    })
}

impl FieldOf {
    /// Name and value; `None`: it is absent.
    fn text(&self, payload: &[u8]) -> Option<(String, String)> {
        let FieldEntry {
            kind,
            flags,
            count,
            offset,
            bytes,
            ..
        } = self.entry;
        let kind = Kind::from_u8(kind)?;
        let (at, bytes) = (offset as usize, bytes as usize);
        let one = |at: usize| value(kind, payload.get(at..at + kind.fixed_bytes())?, payload);
        if flags & OPTIONAL != 0
            && payload
                .get(at + bytes / 2..at + bytes)?
                .iter()
                .all(|byte| *byte == 0)
        {
            return None;
        }
        let text = match count {
            0 => one(at)?,
            count => {
                let values = (0..usize::from(count)).map(|n| one(at + n * bytes));
                format!("[{}]", values.collect::<Option<Vec<_>>>()?.join(", "))
            }
        };
        Some((self.name.clone(), text))
    }
}

/// One value as text.
fn value(kind: Kind, bytes: &[u8], payload: &[u8]) -> Option<String> {
    macro_rules! number {
        ($type:ty) => {
            <$type>::from_le_bytes(bytes.try_into().ok()?).to_string()
        };
    }
    Some(match kind {
        Kind::U8 => number!(u8),
        Kind::U16 => number!(u16),
        Kind::U32 => number!(u32),
        Kind::U64 => number!(u64),
        Kind::U128 => number!(u128),
        Kind::I8 => number!(i8),
        Kind::I16 => number!(i16),
        Kind::I32 => number!(i32),
        Kind::I64 => number!(i64),
        Kind::I128 => number!(i128),
        Kind::F32 => number!(f32),
        Kind::F64 => number!(f64),
        Kind::Bool => (bytes[0] != 0).to_string(),
        Kind::Char => char::from_u32(u32::from_le_bytes(bytes.try_into().ok()?))?.to_string(),
        Kind::Str => String::from_utf8_lossy(long(bytes, payload)?).into_owned(),
        Kind::Bytes => format!("{:?}", long(bytes, payload)?),
    })
}

/// The bytes that a field of no fixed size points to.
fn long<'p>(place: &[u8], payload: &'p [u8]) -> Option<&'p [u8]> {
    let (words, _) = place.as_chunks::<4>();
    let [at, bytes] = [0, 1].map(|n| words.get(n).map(|word| u32::from_le_bytes(*word) as usize));
    payload.get(at?..at?.checked_add(bytes?)?)
}
