//! Finds an event type by its id: every record is looked up here.

use std::collections::HashMap;

use ringmark_format::TypeId;
use ringmark_format::function::FunctionType;

/// Ids below this are looked up in a table, as long as the table is not much larger than the
/// number of types. A hostile input may have one large id in each of many sessions.
const TABLE_IDS_MAX: usize = 1 << 16;
/// Entries of a table that may be empty, beyond seven for each type or function.
const FREE: usize = 64;
/// Type ids for each number of a function type: entry, exit, and both without the other; the same
/// on other stacks.
const IDS_PER_NUMBER: usize = 8;

/// Places of event types, by their ids. Small ids have a place in a table.
#[derive(Debug, Default)]
pub(crate) struct TypeIds {
    /// Place + 1, by id; 0: none.
    plain: Vec<u32>,
    /// Place + 1, by number, slot, exit and loose.
    of_functions: Vec<u32>,
    others: HashMap<u32, u32>,
    count: usize,
}

impl TypeIds {
    /// The place of the type with this id.
    #[inline]
    pub(crate) fn place(&self, id: TypeId) -> Option<usize> {
        let entry = match FunctionType::unpack(id.0) {
            None => self.plain.get(id.0 as usize),
            Some(ty) => self.of_functions.get(index(ty)),
        };
        let place = match entry {
            Some(place) if *place != 0 => *place,
            _ => *self.others.get(&id.0)?,
        };
        (place as usize).checked_sub(1)
    }

    /// Adds a type that has no place yet. `functions`: how many functions the schema describes.
    pub(crate) fn add(&mut self, id: TypeId, place: usize, functions: usize) {
        self.count += 1;
        let (table, at, limit) = match FunctionType::unpack(id.0) {
            None => {
                let limit = TABLE_IDS_MAX.min(FREE + 8 * self.count);
                (&mut self.plain, id.0 as usize, limit)
            }
            Some(ty) => {
                let numbers = FREE + 8 * functions;
                (&mut self.of_functions, index(ty), IDS_PER_NUMBER * numbers)
            }
        };
        let place = place as u32 + 1;
        if at >= limit.max(table.len()) {
            self.others.insert(id.0, place);
            return;
        }
        if table.len() <= at {
            table.resize(at + 1, 0);
        }
        table[at] = place;
    }
}

/// The place of a function type in its table.
#[inline]
const fn index(ty: FunctionType) -> usize {
    let what = 4 * ty.has_slot as usize + 2 * ty.exit as usize + ty.loose as usize;
    IDS_PER_NUMBER * ty.number as usize + what
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_found_and_tables_stay_small() {
        let function = |number, exit, loose, has_slot| {
            let ty = FunctionType {
                number,
                exit,
                loose,
                has_slot,
            };
            TypeId(ty.pack())
        };
        let mut ids: Vec<_> = [0, 1, 60, 70_000, 1 << 22].map(TypeId).to_vec();
        for number in [0, 1, 500, 1_000_000] {
            for bits in 0..8 {
                ids.push(function(
                    number,
                    bits & 1 != 0,
                    bits & 2 != 0,
                    bits & 4 != 0,
                ));
            }
        }
        let mut known = TypeIds::default();
        for (place, id) in ids.iter().enumerate() {
            assert_eq!(known.place(*id), None);
            known.add(*id, place, 100);
        }
        for (place, id) in ids.iter().enumerate() {
            assert_eq!(known.place(*id), Some(place), "{id:?}");
        }
        assert_eq!(known.place(TypeId(2)), None);
        assert_eq!(known.place(function(2, true, false, true)), None);
        assert!(known.plain.len() <= FREE + 8 * ids.len());
        assert_eq!(known.of_functions.len(), IDS_PER_NUMBER * 501);
        assert_eq!(known.others.len(), 10);
    }
}
