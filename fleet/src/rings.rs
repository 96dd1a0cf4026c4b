//! Rows with those of each ring together: what is the same for all of a ring, or counts on in it, takes no
//! room then.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, DataType};
use arrow_select::take::take;

/// A ring: its session, and its id.
type Ring = (usize, u64);

/// The rings of rows, by number of the row.
#[derive(Default)]
pub(crate) struct Rings {
    /// The number of each ring, in the order in which they were met.
    numbers: HashMap<Ring, u32>,
    /// The number of the ring of each row.
    rows: Vec<u32>,
}

impl Rings {
    /// Adds the ring of the next row.
    pub(crate) fn push(&mut self, ring: Ring) {
        let next = self.numbers.len() as u32;
        self.rows.push(*self.numbers.entry(ring).or_insert(next));
    }

    /// The rows in the order of their rings; those of one ring stay in theirs.
    pub(crate) fn sort(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let order = UInt32Array::from(self.order());
        let columns = batch
            .columns()
            .iter()
            .map(|column| match is_constant(column) {
                true => Ok(column.clone()),
                false => take(column, &order, None),
            });
        let columns: Result<Vec<ArrayRef>, _> = columns.collect();
        RecordBatch::try_new(batch.schema(), columns?)
    }

    /// Numbers of the rows, sorted by counting.
    fn order(&self) -> Vec<u32> {
        let mut next = vec![0_u32; self.numbers.len() + 1];
        for ring in &self.rows {
            next[*ring as usize + 1] += 1;
        }
        for ring in 1..next.len() {
            next[ring] += next[ring - 1];
        }
        let mut order = vec![0; self.rows.len()];
        for (row, ring) in self.rows.iter().enumerate() {
            let place = &mut next[*ring as usize];
            order[*place as usize] = row as u32;
            *place += 1;
        }
        order
    }
}

/// Whether a column of texts has one text, or none, in all rows: then any order is the same.
fn is_constant(column: &ArrayRef) -> bool {
    if column.null_count() == column.len() {
        return true;
    }
    if column.null_count() > 0 || column.data_type() != &DataType::Utf8 {
        return false;
    }
    let texts = column.as_string::<i32>();
    let first = texts.value_length(0);
    let offsets = texts.value_offsets();
    let (begin, end) = (offsets[0] as usize, offsets[texts.len()] as usize);
    let is_even = offsets.windows(2).all(|pair| pair[1] - pair[0] == first);
    let (all, first) = (&texts.value_data()[begin..end], first as usize);
    is_even && (first == 0 || all[..all.len() - first] == all[first..])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, StringArray};
    use arrow_schema::{Field, Schema};

    use super::*;

    #[test]
    fn rows_of_a_ring_are_together_in_their_order() {
        let mut rings = Rings::default();
        for ring in [(1, 5), (1, 6), (2, 5), (1, 5), (2, 5), (1, 6)] {
            rings.push(ring);
        }
        let schema = Schema::new(vec![
            Field::new("n", DataType::Int64, false),
            Field::new("same", DataType::Utf8, true),
            Field::new("text", DataType::Utf8, true),
        ]);
        let texts = ["aa", "aa", "ab", "aa", "aa", "b"];
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(0..6)),
            Arc::new(StringArray::from(vec!["aa"; 6])),
            Arc::new(StringArray::from(texts.to_vec())),
        ];
        assert!(is_constant(&columns[1]) && !is_constant(&columns[2]));
        let batch = RecordBatch::try_new(Arc::new(schema), columns).expect("columns");
        let sorted = rings.sort(&batch).expect("rows");
        let numbers = sorted
            .column(0)
            .as_primitive::<arrow_array::types::Int64Type>();
        assert_eq!(numbers.values()[..], [0, 3, 1, 5, 2, 4]);
        let found: Vec<_> = sorted
            .column(2)
            .as_string::<i32>()
            .iter()
            .flatten()
            .collect();
        assert_eq!(found, ["aa", "aa", "aa", "b", "ab", "aa"]);
        let empty = StringArray::from(vec![""; 3]);
        assert!(is_constant(&(Arc::new(empty) as ArrayRef)));
    }
}
