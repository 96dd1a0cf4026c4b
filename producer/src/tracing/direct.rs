//! The shortest way: a site that so far gave nothing but numbers, always of the same kinds, writes
//! them straight into its reservation. No code of the program runs while it is open.

use core::fmt;

use ringmark_ring::Reservation;
use tracing_core::field::{Field, Visit};

use super::kinds::{BOOL, END, F64, I64, Numbers, U64};

/// A value that was not expected came.
const WRONG: u64 = u64::MAX;

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
            expected: numbers.codes(),
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
