//! The arguments of rows: which have a column of their own, and what its values are.

use ringmark_format::schema::{Kind, semantic};

use crate::events::filter::Filter;
use crate::rows::cell;
use crate::rows::row::{Args, Row};
use crate::show::json_args;
use crate::trace_file::dump::Dump;
use crate::trace_file::field::Field;
use crate::trace_file::value::Value;

/// Arguments that have a column of their own, at most.
const COLUMNS_MAX: usize = 256;

/// An argument with a column of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgColumn {
    /// Its name.
    pub name: Vec<u8>,
    /// What its values are.
    pub kind: ArgKind,
}

/// What the values of an argument are, in all events that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgKind {
    /// Integers of up to 64 bits.
    Integer,
    /// Numbers with a fraction.
    Float,
    /// True or false.
    Bool,
    /// Anything else, or of several kinds.
    Text,
}

impl ArgKind {
    fn of(field: &Field) -> Self {
        match field.kind {
            _ if field.count > 0 || field.semantic == Some(semantic::ADDRESS) => Self::Text,
            Some(Kind::U64 | Kind::U32 | Kind::U16 | Kind::U8) => Self::Integer,
            Some(Kind::I64 | Kind::I32 | Kind::I16 | Kind::I8) => Self::Integer,
            Some(Kind::F32 | Kind::F64) => Self::Float,
            Some(Kind::Bool) => Self::Bool,
            _ => Self::Text,
        }
    }
}

impl Dump {
    /// The arguments of the events and spans that are in the pages and whose names pass the filter: in the
    /// order of their declaration, each once, at most 256. None, if the filter names nothing.
    #[must_use]
    pub fn arg_columns(&self, filter: &Filter) -> Vec<ArgColumn> {
        let mut columns: Vec<ArgColumn> = Vec::new();
        if !filter.has_names() {
            return columns;
        }
        let schemas = self.sessions.iter().map(|session| &session.schema);
        let types = schemas.flat_map(|schema| schema.types());
        let types = types.filter(|ty| ty.occurs && ty.function.is_none());
        for ty in types.filter(|ty| filter.name_passes(&ty.origin.target, &ty.name)) {
            let shown = ty.fields.iter().enumerate().filter(|(at, _)| ty.shows(*at));
            for (_, field) in shown {
                let kind = ArgKind::of(field);
                let known = columns.iter().position(|column| column.name == field.name);
                match known {
                    Some(known) if columns[known].kind != kind => {
                        columns[known].kind = ArgKind::Text
                    }
                    None if columns.len() < COLUMNS_MAX => columns.push(ArgColumn {
                        name: field.name.clone(),
                        kind,
                    }),
                    _ => {}
                }
            }
        }
        columns
    }
}

/// Appends the value of an argument as text: texts as they are, all else as CSV has it, without quotes. `budget`:
/// bytes of text that may still be written. Returns whether there is a value.
pub fn value_text(
    (field, value): (Option<&Field>, Value<'_>),
    budget: &mut usize,
    out: &mut Vec<u8>,
) -> bool {
    match value.within(budget) {
        Value::None | Value::Missing => return false,
        Value::Str(text) => out.extend_from_slice(text),
        Value::Char(char) => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        array @ Value::Array(..) => cell::array((field, array), budget, out),
        // Text that is within the budget is not counted twice.
        value => {
            let mut enough = usize::MAX;
            cell::value((field, value), &mut enough, out);
        }
    }
    true
}

impl Row<'_, '_> {
    /// Appends all arguments as one JSON object, if there are any: as [`Self::split_args`] does without columns.
    pub fn json_args(&self, out: &mut Vec<u8>) {
        let Args::Event(event) = &self.args else {
            return self.split_args(&[], |_, _, _| false, out);
        };
        if !event.ty.known {
            return self.split_args(&[], |_, _, _| false, out);
        }
        let (mut budget, from) = (event.payload.len(), out.len());
        for (place, field) in event.ty.fields.iter().enumerate() {
            if event.ty.shows(place) {
                if out.len() == from {
                    out.push(b'{');
                }
                json_args::of_field(field, &event.payload, &mut budget, out);
            }
        }
        if out.len() > from {
            out.push(b'}');
        }
    }

    /// Takes the arguments apart. `take` gets each that has a column: the place of the column, field and
    /// value, and how many bytes of text may still be written. It returns whether the value fits there. All others are appended to `others` as one JSON object, if there
    /// are any. If two arguments have one name, the second is among the others.
    pub fn split_args(
        &self,
        columns: &[ArgColumn],
        mut take: impl FnMut(usize, (Option<&Field>, Value<'_>), &mut usize) -> bool,
        others: &mut Vec<u8>,
    ) {
        let (mut budget, from) = (self.payload_bytes(), others.len());
        // A bit for each column.
        let mut taken = [0_u64; COLUMNS_MAX.div_ceil(64)];
        let bit = |place: usize| (place / 64, 1 << (place % 64));
        self.args(|name, field, value| {
            let place = columns.iter().position(|column| column.name == name);
            if let Some(place) = place
                && let (word, bit) = bit(place)
                && taken[word] & bit == 0
                && take(place, (field, value), &mut budget)
            {
                taken[word] |= bit;
                return;
            }
            if others.len() == from {
                others.push(b'{');
            }
            json_args::pair(name, (field, value), &mut budget, others);
        });
        if others.len() > from {
            others.push(b'}');
        }
    }
}
