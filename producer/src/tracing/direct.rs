//! The shortest way: a site that so far gave nothing but numbers, always of the same kinds, writes
//! them straight into its reservation. No code of the program runs while it is open.

use core::fmt;

use ringmark_ring::Reservation;
use tracing_core::field::{Field, Visit};

use super::values::{BOOL, F64, I64, U64};

/// Behind the last kind; no kind has this code.
const END: u64 = 15;
/// A value that was not expected came.
const WRONG: u64 = u64::MAX;

/// Most fields that are written this way.
const FIELDS_MAX: usize = 13;

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
            if numbers.fields == FIELDS_MAX || !(u64::from(U64)..=u64::from(BOOL)).contains(&code) {
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

    /// How many fields there are.
    #[inline(always)]
    pub(super) fn fields(self) -> usize {
        self.fields
    }
}

/// Writes the values as they come.
pub(super) struct Direct<'w> {
    to: Reservation<'w>,
    /// Payload word of the first field.
    first: usize,
    next: usize,
    expected: u64,
}

impl<'w> Direct<'w> {
    #[inline(always)]
    pub(super) fn new(to: Reservation<'w>, first: usize, numbers: Numbers) -> Self {
        Self {
            to,
            first,
            next: 0,
            expected: numbers.codes,
        }
    }

    /// Commits if exactly the expected values came, else cancels. `false`: cancelled.
    #[inline(always)]
    pub(super) fn finish(self) -> bool {
        let complete = self.expected == END;
        if complete {
            self.to.commit();
        }
        complete
    }

    #[inline(always)]
    fn put(&mut self, field: &Field, code: u8, word: u64) {
        let index = self.next;
        if self.expected & 15 == u64::from(code) && field.index() == index {
            self.to.set_word(self.first + index, word);
            self.next = index + 1;
            self.expected >>= 4;
        } else {
            self.expected = WRONG;
        }
    }
}

impl Visit for Direct<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, U64, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, I64, value as u64);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, F64, value.to_bits());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, BOOL, u64::from(value));
    }

    fn record_u128(&mut self, _field: &Field, _value: u128) {
        self.expected = WRONG;
    }

    fn record_i128(&mut self, _field: &Field, _value: i128) {
        self.expected = WRONG;
    }

    fn record_str(&mut self, _field: &Field, _value: &str) {
        self.expected = WRONG;
    }

    fn record_bytes(&mut self, _field: &Field, _value: &[u8]) {
        self.expected = WRONG;
    }

    fn record_error(&mut self, _field: &Field, _value: &(dyn std::error::Error + 'static)) {
        self.expected = WRONG;
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn fmt::Debug) {
        self.expected = WRONG;
    }
}
