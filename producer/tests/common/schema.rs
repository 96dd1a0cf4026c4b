//! The schema stream, taken apart.

use ringmark_format::attribute::{Attributes, tag};
use ringmark_format::schema::{
    EntryHeader, EventEntry, FieldEntry, Kind, Level, OPTIONAL, Shape, entry_kind,
};
use zerocopy::FromBytes;

/// An event type as the schema describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeInfo {
    pub id: u32,
    pub name: String,
    pub target: String,
    pub category: String,
    pub level: Level,
    pub shape: Shape,
    pub file: String,
    pub line: u32,
    pub fixed_bytes: u32,
    pub fields: Vec<FieldInfo>,
}

/// A field as the schema describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldInfo {
    pub name: String,
    pub kind: Kind,
    pub count: u16,
    pub offset: u32,
    pub optional: bool,
    pub semantic: u32,
    pub unit: String,
    pub redacted: bool,
}

impl TypeInfo {
    /// The field with this name.
    pub fn field(&self, name: &str) -> &FieldInfo {
        let found = self.fields.iter().find(|f| f.name == name);
        found.unwrap_or_else(|| panic!("{} has no field {name}", self.name))
    }

    /// Name, kind, count and offset of each field: `a:u8x4@0 b:str@8`.
    pub fn layout(&self) -> String {
        let one = |f: &FieldInfo| match f.count {
            0 if f.optional => format!("{}:{}?@{}", f.name, f.kind.name(), f.offset),
            0 => format!("{}:{}@{}", f.name, f.kind.name(), f.offset),
            n => format!("{}:{}x{n}@{}", f.name, f.kind.name(), f.offset),
        };
        self.fields.iter().map(one).collect::<Vec<_>>().join(" ")
    }
}

/// Every event type in the stream. Two with one id are a mistake.
pub fn parse(mut stream: &[u8]) -> Vec<TypeInfo> {
    let mut types: Vec<TypeInfo> = Vec::new();
    while !stream.is_empty() {
        let (header, behind) = EntryHeader::read_from_prefix(stream).expect("an entry");
        let (entry, rest) = stream.split_at(header.bytes as usize);
        if header.kind == entry_kind::EVENT {
            let (event, _) = EventEntry::read_from_prefix(behind).expect("an event entry");
            let attributes = &entry[EntryHeader::BYTES + usize::from(header.fixed_bytes)..];
            assert!(
                types.iter().all(|t| t.id != header.id),
                "id {} twice",
                header.id
            );
            types.push(event_type(header.id, &event, attributes));
        }
        stream = rest;
    }
    types
}

fn event_type(id: u32, event: &EventEntry, attributes: &[u8]) -> TypeInfo {
    let all = Attributes::new(attributes);
    let text = |tag| text(&all, tag);
    let fields = all
        .clone()
        .filter(|a| a.tag == tag::FIELD)
        .map(|a| field(a.value));
    TypeInfo {
        id,
        name: text(tag::NAME),
        target: text(tag::TARGET),
        category: text(tag::CATEGORY),
        level: Level::from_u8(event.level).expect("a level"),
        shape: Shape::from_u8(event.shape).expect("a shape"),
        file: text(tag::FILE),
        line: number(&all, tag::LINE),
        fixed_bytes: event.fixed_payload_bytes,
        fields: fields.collect(),
    }
}

fn field(value: &[u8]) -> FieldInfo {
    let (entry, attributes) = FieldEntry::read_from_prefix(value).expect("a field entry");
    let kind = Kind::from_u8(entry.kind).expect("a kind");
    let optional = entry.flags & OPTIONAL != 0;
    let halves = if optional { 2 } else { 1 };
    assert_eq!(entry.bytes as usize, halves * kind.fixed_bytes());
    let all = Attributes::new(attributes);
    FieldInfo {
        name: text(&all, tag::NAME),
        kind,
        count: entry.count,
        optional,
        offset: entry.offset,
        semantic: number(&all, tag::SEMANTIC),
        unit: text(&all, tag::UNIT),
        redacted: all.find(tag::REDACTED).is_some(),
    }
}

fn text(all: &Attributes<'_>, tag: u16) -> String {
    let value = all.clone().find(tag).unwrap_or_default();
    String::from_utf8(value.to_vec()).expect("UTF-8")
}

fn number(all: &Attributes<'_>, tag: u16) -> u32 {
    let value = all.clone().find(tag).unwrap_or_default();
    value.try_into().map_or(0, u32::from_le_bytes)
}
