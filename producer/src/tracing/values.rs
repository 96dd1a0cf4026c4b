//! The values of one event, gathered on the stack: nothing is reserved while a `Debug`
//! implementation of the program runs. Only texts that are too long for that are written again, straight
//! into their record.
//!
//! # Invariant
//!
//! 1. The first `count` of the words were written.

use core::fmt::{self, Write};
use core::mem::MaybeUninit;

use tracing_core::field::{Field, Visit};

use super::kinds::{ABSENT, BOOL, BYTES, F64, FIELDS_MAX, I64, I128, Kinds, STR, U64, U128};
use super::texts::{Sink, Stack};

/// A wide number has two words; the text of all further fields is the last.
const WORDS_MAX: usize = 2 * (FIELDS_MAX + 1);

/// The values, in the order of their fields, and where their texts go. Neither is in here: to move them costs
/// more than to fill them.
pub(super) struct Values<'v, 'w, S = Stack> {
    pub(super) of: &'v mut Gathered<'w>,
    pub(super) texts: &'v mut S,
}

/// Which of an event's values are gathered, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pass {
    /// Fields come in the order of their indices, but in `record_all!`, and there they may come twice. Those
    /// up to the next one that comes too late are a run, and each run gets a record. This is its number.
    pub(super) run: usize,
    /// Each value is turned into text.
    pub(super) as_text: bool,
}

impl Pass {
    pub(super) const FIRST: Self = Self {
        run: 0,
        as_text: false,
    };
}

/// All of them but their texts. `words` up to `count` are there.
pub(super) struct Gathered<'w> {
    pub(super) kinds: Kinds,
    pub(super) pass: Pass,
    /// The run that the visitor is in.
    run: usize,
    /// Index of the field after the last one that came in another run.
    after: usize,
    /// Index of the next field; [`NEVER`] in another run.
    next: usize,
    /// The fields after those that have a place of their own are begun.
    has_further: bool,
    count: usize,
    /// Words that are places of texts.
    places: u128,
    words: &'w mut Words,
}

/// Room for the words of all values.
pub(super) type Words = [MaybeUninit<u64>; WORDS_MAX];
/// As it is at first.
pub(super) const NO_WORDS: Words = [const { MaybeUninit::uninit() }; WORDS_MAX];

/// No field has this index.
const NEVER: usize = usize::MAX;

/// What is done with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    /// It is the next one.
    Next,
    /// It is one of the further fields, which are one text.
    Further,
    /// It is of another run.
    Other,
}

impl<'w> Gathered<'w> {
    /// No values yet, for those of this pass, with their words there.
    #[inline(always)]
    pub(super) fn new(words: &'w mut Words, pass: Pass) -> Self {
        Self {
            kinds: Kinds::NONE,
            pass,
            run: 0,
            after: 0,
            next: if pass.run == 0 { 0 } else { NEVER },
            has_further: false,
            count: 0,
            places: 0,
            words,
        }
    }

    /// Whether there is a run after this one.
    pub(super) fn has_more(&self) -> bool {
        self.run > self.pass.run
    }

    /// The words of all values. The place of a text counts from the start of the texts.
    #[inline(always)]
    pub(super) fn words(&self) -> &[u64] {
        let written = &self.words[..self.count];
        // SAFETY: invariant 1, and MaybeUninit<u64> has the layout of u64.
        unsafe { core::slice::from_raw_parts(written.as_ptr().cast(), written.len()) }
    }

    /// Which of the words are places of texts, lowest bit first.
    #[inline(always)]
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        let mut left = self.places;
        core::iter::from_fn(move || {
            let first = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            (first < u128::BITS).then_some(first as usize)
        })
    }

    /// Whether this word is the place of a text.
    pub(super) fn is_place(&self, at: usize) -> bool {
        self.places >> at & 1 == 1
    }

    /// Goes on to `field`.
    #[inline(always)]
    fn advance(&mut self, field: &Field, code: u8) -> Done {
        let index = field.index();
        if index != self.next || index >= FIELDS_MAX {
            return self.advance_far(index, code);
        }
        self.kinds.add(index, code);
        self.next = index + 1;
        Done::Next
    }

    /// The same where the field is not the one after the last, or one of many.
    #[cold]
    fn advance_far(&mut self, index: usize, code: u8) -> Done {
        let is_wanted = self.run == self.pass.run;
        if index < if is_wanted { self.next } else { self.after } {
            self.run += 1;
            self.next = NEVER;
            if self.run == self.pass.run {
                self.next = 0;
            }
        }
        if self.run != self.pass.run {
            self.after = index + 1;
            return Done::Other;
        }
        while self.next < index.min(FIELDS_MAX) {
            self.kinds.add(self.next, ABSENT);
            self.next += 1;
        }
        if index >= FIELDS_MAX {
            self.next = index + 1;
            return Done::Further;
        }
        self.kinds.add(index, code);
        self.next = index + 1;
        Done::Next
    }

    #[inline(always)]
    fn push(&mut self, word: u64) {
        if let Some(place) = self.words.get_mut(self.count) {
            place.write(word);
            self.count += 1;
        }
    }
}

impl<S: Sink> Values<'_, '_, S> {
    /// No values and texts again, for another pass.
    pub(super) fn restart(&mut self, texts: S, pass: Pass) {
        self.of.kinds = Kinds::NONE;
        self.of.pass = pass;
        (self.of.run, self.of.after) = (0, 0);
        self.of.next = if pass.run == 0 { 0 } else { NEVER };
        self.of.has_further = false;
        (self.of.count, self.of.places) = (0, 0);
        *self.texts = texts;
    }

    /// Takes what `visit` gives. Called once for each pass.
    #[inline(always)]
    pub(super) fn gather(&mut self, visit: &dyn Fn(&mut dyn Visit)) {
        if self.of.pass.as_text {
            visit(&mut AsText(self));
        } else {
            visit(self);
        }
        if self.of.has_further {
            self.push_place();
        }
    }

    #[inline(always)]
    fn put(&mut self, field: &Field, code: u8, word: u64, value: &dyn fmt::Debug) {
        match self.of.advance(field, code) {
            Done::Next => self.of.push(word),
            done => self.put_further(done, field, value),
        }
    }

    fn put_wide(&mut self, field: &Field, code: u8, number: u128, value: &dyn fmt::Debug) {
        match self.of.advance(field, code) {
            Done::Next => {
                self.of.push(number as u64);
                self.of.push((number >> 64) as u64);
            }
            done => self.put_further(done, field, value),
        }
    }

    #[inline(always)]
    fn put_text(&mut self, field: &Field, code: u8, write: impl FnOnce(&mut Text<'_, S>)) {
        match self.of.advance(field, code) {
            Done::Next => {
                self.texts.begin();
                write(&mut Text(self.texts));
                self.push_place();
            }
            Done::Further => {
                self.begin_further(field);
                write(&mut Text(self.texts));
            }
            Done::Other => {}
        }
    }

    #[inline(always)]
    fn push_place(&mut self) {
        let place = self.texts.end();
        self.of.places |= 1 << self.of.count;
        self.of.push(place);
    }

    #[cold]
    #[inline(never)]
    fn put_further(&mut self, done: Done, field: &Field, value: &dyn fmt::Debug) {
        if done == Done::Further {
            self.begin_further(field);
            // A formatter that fails leaves what it wrote so far.
            let _ = write!(Text(self.texts), "{value:?}");
        }
    }

    /// Goes on with the text of the further fields: `name=value name=value`.
    #[cold]
    fn begin_further(&mut self, field: &Field) {
        if !self.of.has_further {
            self.of.has_further = true;
            self.of.kinds.add(FIELDS_MAX, STR);
            self.texts.begin();
        } else {
            self.texts.push(" ");
        }
        self.texts.push(field.name());
        self.texts.push("=");
    }
}

impl<S: Sink> Visit for Values<'_, '_, S> {
    #[inline]
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, U64, value, &value);
    }

    #[inline]
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, I64, value as u64, &value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, F64, value.to_bits(), &value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, BOOL, u64::from(value), &value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.put_wide(field, U128, value, &value);
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.put_wide(field, I128, value as u128, &value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_text(field, STR, |text| text.0.push(value));
    }

    fn record_bytes(&mut self, field: &Field, value: &[u8]) {
        self.put_text(field, BYTES, |text| text.0.push_bytes(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put_text(field, STR, |text| {
            // A formatter that fails leaves what it wrote so far.
            let _ = write!(text, "{value}");
            let mut source = value.source();
            while let Some(error) = source {
                let _ = write!(text, ": {error}");
                source = error.source();
            }
        });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put_text(field, STR, |text| {
            let _ = write!(text, "{value:?}");
        });
    }
}

/// Turns every value into text: for the rare site whose fields change their types again and again.
struct AsText<'a, 'v, 'w, S>(&'a mut Values<'v, 'w, S>);

impl<S: Sink> Visit for AsText<'_, '_, '_, S> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.record_str(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.0.record_error(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.record_debug(field, value);
    }
}

/// One text that is being written.
struct Text<'s, S>(&'s mut S);

impl<S: Sink> Write for Text<'_, S> {
    #[inline]
    fn write_str(&mut self, more: &str) -> fmt::Result {
        self.0.push(more);
        Ok(())
    }
}
