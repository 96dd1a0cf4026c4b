//! What the values of a type's fields have around them in each line, made once per type.
//!
//! Lines share most of their text, so a line costs little more than copying these pieces. The value
//! itself is written between key and unit.

use crate::trace_file::field::Field;
use crate::trace_file::schema::EventType;
use crate::words::escape;

/// What stands around the value of a field, escaped.
#[derive(Debug)]
pub(super) struct FieldPieces {
    /// The field's place in its type.
    pub(super) place: usize,
    /// ` name=`.
    pub(super) key: Vec<u8>,
    /// Its unit, which follows the value; empty: it has none.
    pub(super) unit: Vec<u8>,
    /// It is one unsigned number that is written as it is.
    pub(super) is_plain: bool,
}

impl FieldPieces {
    /// The pieces of all fields that lines show, in their order. Fields that carry structure are
    /// not among them.
    pub(super) fn of(ty: &EventType) -> Vec<Self> {
        let fields = ty.fields.iter().enumerate();
        let shown = fields.filter(|(place, _)| ty.shows(*place));
        shown
            .map(|(place, field)| Self::new(place, field))
            .collect()
    }

    fn new(place: usize, field: &Field) -> Self {
        let (mut key, mut unit) = (b" ".to_vec(), Vec::new());
        escape::text(&field.name, &mut key);
        key.push(b'=');
        escape::text(&field.unit, &mut unit);
        let is_plain = field.is_plain_number() && field.base == 10 && field.labels.is_empty();
        Self {
            place,
            key,
            unit,
            is_plain,
        }
    }
}
