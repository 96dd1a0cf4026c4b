//! The types that records have, before the schema is known.

use ringmark_format::TypeId;

/// Ids in one piece of the set.
const PIECE: usize = 1 << 15;

/// A set of type ids: a bit for each, in pieces of 4 KiB that are made when they are needed.
#[derive(Debug, Default)]
pub(crate) struct TypeSet(Vec<Option<Box<[u64; PIECE / 64]>>>);

impl TypeSet {
    #[inline]
    pub(crate) fn add(&mut self, id: TypeId) {
        let (piece, bit) = (id.0 as usize / PIECE, id.0 as usize % PIECE);
        match self.0.get_mut(piece) {
            Some(Some(bits)) => bits[bit / 64] |= 1 << (bit % 64),
            _ => self.begin(piece, bit),
        }
    }

    #[cold]
    fn begin(&mut self, piece: usize, bit: usize) {
        if self.0.len() <= piece {
            self.0.resize_with(piece + 1, || None);
        }
        let bits = self.0[piece].get_or_insert_with(|| Box::new([0; PIECE / 64]));
        bits[bit / 64] |= 1 << (bit % 64);
    }

    /// The ids, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = TypeId> {
        let pieces = self.0.iter().enumerate();
        let pieces = pieces.filter_map(|(number, piece)| Some((number, piece.as_ref()?)));
        pieces.flat_map(|(number, piece)| {
            let has = |bit: &usize| piece[bit / 64] & (1 << (bit % 64)) != 0;
            let bits = (0..PIECE).filter(has);
            bits.map(move |bit| TypeId((number * PIECE + bit) as u32))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_once_and_ascend() {
        let mut set = TypeSet::default();
        let ids = [
            7,
            1 << 23,
            7,
            64,
            PIECE as u32 - 1,
            PIECE as u32,
            (1 << 24) - 1,
        ];
        ids.iter().for_each(|id| set.add(TypeId(*id)));
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let found: Vec<u32> = set.iter().map(|id| id.0).collect();
        assert_eq!(found, sorted);
        // 24 bits of ids.
        assert_eq!(set.0.len(), 512);
    }
}
