//! The event types of a session, and how its schema stream is read.
//!
//! The stream is one, append-only. It is read from its start up to the first gap.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use ringmark_format::attribute::{Attributes, tag};
use ringmark_format::record::{FIRST_TYPE, FUNCTION_BIT};
use ringmark_format::schema::{EntryHeader, EventEntry, Kind, Level, Shape, entry_kind, semantic};
use ringmark_format::{TypeId, align8};
use zerocopy::FromBytes;

use crate::blocks::damage::Fault;
use crate::trace_file::field::Field;
use crate::trace_file::functions::{FunctionUse, Functions};
use crate::trace_file::type_ids::TypeIds;

/// An event type: what all of its events share, and how their payloads are read.
#[derive(Debug, Clone)]
pub struct EventType {
    /// Its number in the session: bits `32..56` of a record's header word.
    pub id: TypeId,
    /// Its name, as found. Empty for function records: their names are the functions', see
    /// [`crate::Event::name`].
    pub name: Vec<u8>,
    /// The part of the program that it belongs to. Types of one part share it.
    pub origin: Arc<Origin>,
    /// Source line, or 0.
    pub line: u32,
    /// Severity; `None` for a number that is not known here.
    pub level: Option<Level>,
    /// What kind of thing a record says; `None` for a number that is not known here.
    pub shape: Option<Shape>,
    /// Bytes of the payload's fixed part; texts and byte strings follow it.
    pub fixed_payload_bytes: u32,
    /// Its fields in the order of their declaration. Types that are described alike share them.
    pub fields: Arc<[Field]>,
    /// Whether a schema entry describes the type; if none does, payloads are shown raw.
    pub known: bool,
    /// Whether a page has a record of it.
    pub(crate) occurs: bool,
    /// What a function record means; `None` for all other types.
    pub function: Option<FunctionUse>,
    pub(crate) duration: Option<u16>,
    pub(crate) span_id: Option<u16>,
    pub(crate) parent_id: Option<u16>,
    /// Its place in [`Schema::types`].
    pub(crate) number: u32,
}

/// A part of a program, as event types name it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The target (module path), or empty.
    pub target: Vec<u8>,
    /// The category, or empty.
    pub category: Vec<u8>,
    /// Source file, or empty.
    pub file: Vec<u8>,
}

/// That of types which name none.
static NO_ORIGIN: LazyLock<Arc<Origin>> = LazyLock::new(Arc::default);

impl EventType {
    /// The kind as output names it: "event", "span", … "function_entry", … "unknown".
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.shape {
            _ if self.id.0 & FUNCTION_BIT != 0 => self.function.map_or("function", |f| f.kind()),
            Some(shape) => shape.name(),
            None => "unknown",
        }
    }

    /// Whether output shows the field at this place among the arguments. Duration, span id and
    /// parent id carry structure and are shown elsewhere.
    #[inline]
    #[must_use]
    pub fn shows(&self, field: usize) -> bool {
        let hidden = [self.duration, self.span_id, self.parent_id];
        !hidden.contains(&Some(field as u16))
    }

    /// The place of the field `message`, if the event has no other name than its place in the
    /// source: so `tracing` calls an event that was given none, and `log` all of them.
    #[must_use]
    pub fn message(&self) -> Option<usize> {
        let is_place = self.name.starts_with(b"event ") || self.name == b"log event";
        let mut fields = self.fields.iter();
        let place = fields.position(|field| field.name == b"message")?;
        let field = &self.fields[place];
        let is_text = field.kind == Some(Kind::Str) && field.count == 0;
        (is_place && is_text && self.shape == Some(Shape::Instant)).then_some(place)
    }

    /// Whether its records are bookkeeping of a span that another type names.
    #[must_use]
    pub const fn is_bookkeeping(&self) -> bool {
        matches!(
            self.shape,
            Some(
                Shape::SpanEnter
                    | Shape::SpanExit
                    | Shape::SpanClose
                    | Shape::SpanRecord
                    | Shape::SpanFollows
            )
        )
    }

    /// A type that nothing describes.
    fn unknown(id: TypeId) -> Self {
        let name = match id.0 {
            n if n & FUNCTION_BIT != 0 => format!("function#{}", n & !FUNCTION_BIT),
            n if n < FIRST_TYPE => format!("reserved#{n}"),
            n => format!("type#{n}"),
        };
        let mut new = Self::bare(id);
        new.name = name.into_bytes();
        new.finish();
        new
    }

    /// A type of function records, if it is described. Many types may share one long name, so
    /// none keeps a copy of it.
    fn of_function(id: TypeId, functions: &Functions) -> Option<Self> {
        let mut new = Self::bare(id);
        new.known = true;
        new.function = Some(functions.meaning(id)?);
        Some(new)
    }

    fn bare(id: TypeId) -> Self {
        Self {
            id,
            name: Vec::new(),
            origin: NO_ORIGIN.clone(),
            line: 0,
            level: None,
            shape: None,
            fixed_payload_bytes: 0,
            fields: Arc::default(),
            known: false,
            occurs: false,
            function: None,
            duration: None,
            span_id: None,
            parent_id: None,
            number: 0,
        }
    }

    fn take(&mut self, tag: u16, value: &[u8], origin: &mut Origin) {
        match tag {
            tag::NAME => self.name = value.to_vec(),
            tag::TARGET => origin.target = value.to_vec(),
            tag::CATEGORY => origin.category = value.to_vec(),
            tag::FILE => origin.file = value.to_vec(),
            tag::LINE => self.line = value.try_into().map_or(0, u32::from_le_bytes),
            _ => {}
        }
    }

    /// Bytes of the names that every event of this type shows. They are bounded, because a hostile
    /// input could otherwise multiply its size in the output.
    fn names_bytes(&self) -> usize {
        let fields = self.fields.iter().map(|f| f.name.len() + f.unit.len());
        let of = &self.origin;
        let own = self.name.len() + of.target.len() + of.category.len() + of.file.len();
        own + fields.sum::<usize>()
    }

    /// Bounds the names and finds the fields that carry structure. Only plain unsigned numbers can
    /// carry it.
    fn finish(&mut self) {
        self.name.truncate(NAMES_BYTES_MAX);
        let with = |fields: &[Field], wanted| {
            let place = fields.iter().position(|f| f.semantic == Some(wanted));
            let place = place.filter(|p| fields[*p].is_plain_number());
            place.and_then(|place| u16::try_from(place).ok())
        };
        self.duration = with(&self.fields, semantic::DURATION);
        self.span_id = with(&self.fields, semantic::SPAN_ID);
        self.parent_id = with(&self.fields, semantic::PARENT_ID);
    }

    /// Reads the bytes of an EVENT entry that follow its header.
    fn read(header: &EntryHeader, body: &[u8], known: &mut Known) -> Result<Self, &'static str> {
        let (entry, _) =
            EventEntry::read_from_prefix(body).map_err(|_| "fixed part of an event too short")?;
        let attributes = body
            .get(align8(header.fixed_bytes.into())..)
            .ok_or("attributes start after the entry's end")?;
        let mut new = Self::bare(TypeId(header.id));
        new.known = true;
        new.level = Level::from_u8(entry.level);
        new.shape = Shape::from_u8(entry.shape);
        new.fixed_payload_bytes = entry.fixed_payload_bytes;
        new.fields = known.fields(attributes)?;
        let mut origin = Origin::default();
        let mut attributes = Attributes::new(attributes);
        for attribute in attributes.by_ref() {
            new.take(attribute.tag, attribute.value, &mut origin);
        }
        if !attributes.rest().is_empty() {
            return Err("an attribute reaches past the entry's end");
        }
        new.origin = known.origin(origin);
        if new.fields.len() > FIELDS_MAX {
            return Err("more than 1024 fields");
        }
        if new.names_bytes() > NAMES_BYTES_MAX {
            return Err("names of more than 16384 bytes");
        }
        new.finish();
        Ok(new)
    }
}

/// What types may share, and each is kept once.
#[derive(Debug, Default)]
struct Known {
    origins: HashSet<Arc<Origin>>,
    /// Lists of fields, by the bytes that describe them.
    lists: HashMap<Vec<u8>, Arc<[Field]>>,
    /// Memory for the bytes of one list.
    bytes: Vec<u8>,
}

impl Known {
    /// The origin that is the same as this one and was met first: this one, if none is.
    fn origin(&mut self, new: Origin) -> Arc<Origin> {
        if let Some(known) = self.origins.get(&new) {
            return known.clone();
        }
        let new = Arc::new(new);
        self.origins.insert(new.clone());
        new
    }

    /// The fields among these attributes, in their order. They are compared as bytes: fields that are
    /// described alike are the same.
    fn fields(&mut self, attributes: &[u8]) -> Result<Arc<[Field]>, &'static str> {
        let attributes = Attributes::new(attributes);
        let fields = attributes.filter(|attribute| attribute.tag == tag::FIELD);
        self.bytes.clear();
        for field in fields.clone() {
            let length = field.value.len() as u64;
            self.bytes.extend_from_slice(&length.to_le_bytes());
            self.bytes.extend_from_slice(field.value);
        }
        if let Some(list) = self.lists.get(&self.bytes) {
            return Ok(list.clone());
        }
        let read: Result<Vec<_>, _> = fields.map(|field| Field::read(field.value)).collect();
        let list: Arc<[Field]> = read?.into();
        self.lists.insert(self.bytes.clone(), list.clone());
        Ok(list)
    }
}

/// The event types of one session, and what is known about its functions.
#[derive(Debug, Default)]
pub struct Schema {
    types: Vec<EventType>,
    ids: TypeIds,
    /// Bit n: a type with shape n is described.
    shapes: u64,
    functions: Functions,
    /// Bytes of the stream that were read; the next entry starts there.
    pub bytes: u64,
}

/// Most fields of a type, and most bytes of its names: every event shows them all.
const FIELDS_MAX: usize = 1024;
const NAMES_BYTES_MAX: usize = 16 << 10;

impl Schema {
    /// Reads the stream from its start. An entry that is damaged is skipped if its size is sound;
    /// else it ends the reading, and the types before it stand.
    pub(crate) fn read(
        (stream, gap): &(Vec<u8>, Option<(u64, u64)>),
        faults: &mut Vec<Fault>,
    ) -> Self {
        let (mut schema, mut known) = (Self::default(), Known::default());
        let mut at = 0usize;
        while let Some(rest) = stream.get(at..).filter(|rest| !rest.is_empty()) {
            match schema.read_entry(rest, &mut known) {
                Ok(bytes) => at += bytes,
                Err((what, skip)) => {
                    let place = at as u64;
                    faults.push(Fault::SchemaEntry { at: place, what });
                    let Some(bytes) = skip else { break };
                    at += bytes;
                }
            }
        }
        schema.bytes = at as u64;
        if let Some((from, to)) = *gap {
            faults.push(Fault::SchemaGap { from, to });
        }
        schema
    }

    /// Reads the entry at the front; returns its size, or why not and the size to skip if known.
    fn read_entry(
        &mut self,
        rest: &[u8],
        known: &mut Known,
    ) -> Result<usize, (&'static str, Option<usize>)> {
        let (header, _) = EntryHeader::read_from_prefix(rest)
            .map_err(|_| ("ends inside an entry's header", None))?;
        let bytes = header.bytes as usize;
        if bytes < EntryHeader::BYTES || !bytes.is_multiple_of(8) {
            return Err(("size is no multiple of 8 of at least 16", None));
        }
        let entry = rest
            .get(..bytes)
            .ok_or(("reaches past the end of the stream", None))?;
        if header.kind == entry_kind::EVENT {
            let new = EventType::read(&header, &entry[EntryHeader::BYTES..], known)
                .map_err(|what| (what, Some(bytes)))?;
            if new.id.0 < FIRST_TYPE || new.id.0 >> 24 != 0 {
                return Err(("type id out of range", Some(bytes)));
            }
            self.add(new);
        } else {
            let body = &entry[EntryHeader::BYTES..];
            let taken = self.functions.take(&header, body);
            taken.map_err(|what| (what, Some(bytes)))?;
        }
        Ok(bytes)
    }

    /// Adds a type. The first of two descriptions of one type counts: records were written under
    /// it.
    fn add(&mut self, mut new: EventType) {
        if self.ids.place(new.id).is_some() {
            return;
        }
        if let Some(shape) = new.shape {
            self.shapes |= 1 << (shape as u8 & 63);
        }
        let place = self.types.len();
        self.ids.add(new.id, place, self.functions.len());
        new.number = place as u32;
        self.types.push(new);
    }

    /// Notes that a page has a record of this type. Makes sure that [`Self::find`] has a type with
    /// this id, described or not.
    pub(crate) fn cover(&mut self, id: TypeId) {
        let place = self.ids.place(id).unwrap_or_else(|| {
            let function = EventType::of_function(id, &self.functions);
            self.add(function.unwrap_or_else(|| EventType::unknown(id)));
            self.types.len() - 1
        });
        self.types[place].occurs = true;
    }

    /// What the schema says about modules, functions and function tracers.
    #[must_use]
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// The type with this id. Every id that occurs in the session's pages has one, described or
    /// not; `None` for any other id.
    #[inline]
    #[must_use]
    pub fn find(&self, id: TypeId) -> Option<&EventType> {
        self.types.get(self.ids.place(id)?)
    }

    /// The name under which output shows records of a type; `None`: they are shown under another.
    pub(crate) fn name_shown<'s>(&'s self, ty: &'s EventType) -> Option<&'s [u8]> {
        match &ty.function {
            Some(meaning) => Some(&self.functions.of_use(meaning)?.name),
            None => (!ty.is_bookkeeping()).then_some(&ty.name),
        }
    }

    /// The types in the order of the stream; then those that occur without being described.
    #[must_use]
    pub fn types(&self) -> &[EventType] {
        &self.types
    }

    /// Whether a type with this shape is described.
    pub(crate) fn has(&self, shape: Shape) -> bool {
        self.shapes & 1 << (shape as u8 & 63) != 0
    }
}
