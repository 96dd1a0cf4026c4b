//! Kinds of the fields of one event, four bits each.

use ringmark_format::schema::Kind;

/// Fields of one event that have a kind of their own; further ones are one text together, which is the last.
pub(super) const FIELDS_MAX: usize = FIELDS_PER_WORD * WORDS - 1;
const FIELDS_PER_WORD: usize = 15;
const WORDS: usize = 4;

/// Which fields are there, and of what kind: in each word a leading 1, then four bits a field, the
/// last field lowest. 0: not there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kinds([u64; WORDS]);

impl PartialEq for Kinds {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        // Word by word: both were just stored, and one wide load would wait for the stores.
        let is_full = self.0[0] >> (4 * FIELDS_PER_WORD) != 0;
        self.0[0] == other.0[0] && (!is_full || self.0[1..] == other.0[1..])
    }
}

impl Kinds {
    /// No field yet.
    pub(super) const NONE: Self = Self([1; WORDS]);
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

    /// The code of each field up to the last that is there, [`ABSENT`] among them.
    pub(super) fn codes(self) -> impl Iterator<Item = u8> {
        self.0.into_iter().flat_map(codes).map(|code| code as u8)
    }

    /// Index and kind of each field that is there.
    pub(super) fn iter(self) -> impl Iterator<Item = (usize, Kind)> {
        let kinds = self.codes().map(kind_of).enumerate();
        kinds.filter_map(|(index, kind)| Some((index, kind?)))
    }

    /// The kinds in the order of their fields, if all fields up to the last are numbers of one word.
    pub(super) fn only_numbers(self) -> Option<Numbers> {
        if self.0[0] >> (4 * FIELDS_PER_WORD) != 0 {
            return None;
        }
        Numbers::of(codes(self.0[0]))
    }

    /// Each field that is there is of the kind that it has in `all`.
    pub(super) fn are_among(self, all: Self) -> bool {
        let mut all = all.codes();
        self.codes()
            .all(|code| all.next().is_some_and(|one| code == ABSENT || code == one))
    }

    /// The first `fields` of these, and of `before` those that are not among them.
    pub(super) fn completed(
        self,
        fields: usize,
        before: impl Iterator<Item = Self> + Clone,
    ) -> Self {
        let mut all = Self::NONE;
        for index in 0..fields.min(FIELDS_MAX + 1) {
            let code = |kinds: Self| kinds.codes().nth(index).filter(|code| *code != ABSENT);
            let known = code(self).or_else(|| before.clone().find_map(code));
            all.add(index, known.unwrap_or(ABSENT));
        }
        all
    }

    /// So many fields, all of them texts.
    pub(super) fn all_texts(fields: usize) -> Self {
        let mut kinds = Self::NONE;
        (0..fields.min(FIELDS_MAX + 1)).for_each(|index| kinds.add(index, STR));
        kinds
    }

    /// Adds the field with the next index.
    #[inline(always)]
    pub(super) fn add(&mut self, index: usize, code: u8) {
        let word = if index < FIELDS_PER_WORD {
            &mut self.0[0]
        } else {
            &mut self.0[(index / FIELDS_PER_WORD).min(WORDS - 1)]
        };
        *word = *word << 4 | u64::from(code);
    }
}

/// `None`: the field is not there.
pub(super) fn kind_of(code: u8) -> Option<Kind> {
    Kinds::KINDS.get(usize::from(code).wrapping_sub(1)).copied()
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
