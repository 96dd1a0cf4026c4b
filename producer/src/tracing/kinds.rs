//! Kinds of the fields of one event, four bits each.

use ringmark_format::schema::Kind;

/// Fields of one event that are recorded; later ones are not.
pub(super) const FIELDS_MAX: usize = 2 * FIELDS_PER_WORD;
const FIELDS_PER_WORD: usize = 15;

/// Which fields are there, and of what kind: in each word a leading 1, then four bits a field, the
/// last field lowest. 0: not there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kinds {
    first: u64,
    second: u64,
}

impl PartialEq for Kinds {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        // Word by word: both were just stored, and one wide load would wait for the two stores.
        let second_counts = self.first >> (4 * FIELDS_PER_WORD) != 0;
        self.first == other.first && (!second_counts || self.second == other.second)
    }
}

impl Kinds {
    /// No field yet.
    pub(super) const NONE: Self = Self {
        first: 1,
        second: 1,
    };
    const KINDS: [Kind; 8] = [
        Kind::U64,
        Kind::I64,
        Kind::F64,
        Kind::Bool,
        Kind::U128,
        Kind::I128,
        Kind::Str,
        Kind::Bytes,
    ];

    /// Index and kind of each field that is there.
    pub(super) fn iter(self) -> impl Iterator<Item = (usize, Kind)> {
        let codes = codes(self.first).chain(codes(self.second)).enumerate();
        codes.filter_map(|(index, code)| {
            let kind = Self::KINDS.get((code as usize).wrapping_sub(1))?;
            Some((index, *kind))
        })
    }

    /// The kinds in the order of their fields, if all fields up to the last are numbers of one word.
    pub(super) fn only_numbers(self) -> Option<Numbers> {
        if self.first >> (4 * FIELDS_PER_WORD) != 0 {
            return None;
        }
        Numbers::of(codes(self.first))
    }

    /// `fields` fields, all of them texts.
    pub(super) fn all_texts(fields: usize) -> Self {
        let mut kinds = Self::NONE;
        (0..fields.min(FIELDS_MAX)).for_each(|index| kinds.add(index, STR));
        kinds
    }

    /// Adds the field with the next index.
    #[inline(always)]
    pub(super) fn add(&mut self, index: usize, code: u8) {
        let word = if index < FIELDS_PER_WORD {
            &mut self.first
        } else {
            &mut self.second
        };
        *word = *word << 4 | u64::from(code);
    }
}

fn codes(word: u64) -> impl Iterator<Item = u64> {
    let fields = (63 - word.leading_zeros()) / 4;
    (0..fields)
        .rev()
        .map(move |field| (word >> (4 * field)) & 15)
}

/// Codes of kinds in [`Kinds`] and [`Numbers`]; this one: the field is not there.
pub(super) const ABSENT: u8 = 0;
pub(super) const U64: u8 = 1;
pub(super) const I64: u8 = 2;
pub(super) const F64: u8 = 3;
pub(super) const BOOL: u8 = 4;
pub(super) const U128: u8 = 5;
pub(super) const I128: u8 = 6;
pub(super) const STR: u8 = 7;
pub(super) const BYTES: u8 = 8;

/// After the last kind; no kind has this code.
pub(super) const END: u64 = 15;

/// Most fields that are written this way.
const NUMBERS_MAX: usize = 13;

/// Kinds of the fields, all numbers of one word: four bits each, the first field lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    codes: u64,
    fields: usize,
}

impl Numbers {
    /// From the codes of the fields; `None`: something is no number, or there are too many.
    pub(super) fn of(codes: impl Iterator<Item = u64>) -> Option<Self> {
        let mut numbers = Self {
            codes: 0,
            fields: 0,
        };
        for code in codes {
            if numbers.fields == NUMBERS_MAX || !(u64::from(U64)..=u64::from(BOOL)).contains(&code)
            {
                return None;
            }
            numbers.codes |= code << (4 * numbers.fields);
            numbers.fields += 1;
        }
        numbers.codes |= END << (4 * numbers.fields);
        Some(numbers)
    }

    /// As one word, never 0: the codes above the number of fields.
    pub(super) fn pack(self) -> u64 {
        self.codes << 8 | self.fields as u64
    }

    #[inline(always)]
    pub(super) fn unpack(word: u64) -> Option<Self> {
        // The mask tells the compiler that the record is short.
        let fields = (word & 15) as usize;
        let codes = word >> 8;
        (word != 0).then_some(Self { codes, fields })
    }

    /// The codes as one word, the first field's lowest, END after the last one's.
    #[inline(always)]
    pub(super) fn codes(self) -> u64 {
        self.codes
    }

    /// Number of fields.
    #[inline(always)]
    pub(super) fn fields(self) -> usize {
        self.fields
    }
}
