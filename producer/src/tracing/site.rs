//! What is known of one call site of `tracing`, and how its records are written.
//!
//! `tracing` does not say which types the fields of a site have. So each combination of kinds that
//! really comes is an event type of its own, registered when it first comes: almost always one.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use ringmark_format::TypeId;
use ringmark_ring::Reservation;
use ringmark_ring::published_static::Published;
use tracing_core::field::Visit;

use super::direct::Direct;
use super::kinds::{Kinds, Numbers};
use super::values::{AsText, Values};
use crate::description::Now;
use crate::description::{
    Description, EventType, Field, Kind, Level, Place, Shape, TypeState, semantic,
};
use crate::event::emit::reserve_words;
use crate::session;

/// Combinations of kinds that get a type; the last one is "everything as text".
const VARIANTS: usize = 12;

/// Facts about a place in the program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub(super) name: &'static str,
    pub(super) target: &'static str,
    pub(super) level: Level,
    pub(super) file: &'static str,
    pub(super) line: u32,
}

/// A call site. Lives for ever.
pub(super) struct Site {
    pub(super) facts: Facts,
    pub(super) is_span: bool,
    /// Whether it is a call site of the bridge from `log`.
    pub(super) is_log: bool,
    /// Its hash in its table.
    pub(super) hash: u64,
    /// Names of its fields, in the order of their indices.
    fields: Box<[&'static str]>,
    on: AtomicBool,
    /// For an event: without and with an explicit parent. For a span: made, late values.
    variants: [Variants; 2],
}

/// Which records of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// An event whose parent follows from what its thread has entered.
    Event,
    /// An event that names its parent.
    EventOf,
    /// A span was made.
    SpanNew,
    /// Late values of a span.
    SpanRecord,
}

impl What {
    const fn list(self) -> usize {
        match self {
            Self::Event | Self::SpanNew => 0,
            Self::EventOf | Self::SpanRecord => 1,
        }
    }

    const fn shape(self) -> Shape {
        match self {
            Self::Event | Self::EventOf => Shape::Instant,
            Self::SpanNew => Shape::SpanNew,
            Self::SpanRecord => Shape::SpanRecord,
        }
    }

    /// The words in front of the fields.
    const fn head(self) -> &'static [(&'static str, u32)] {
        const SPAN: (&str, u32) = ("span_id", semantic::SPAN_ID);
        const PARENT: (&str, u32) = ("parent_id", semantic::PARENT_ID);
        match self {
            Self::Event => &[],
            Self::EventOf => &[PARENT],
            Self::SpanNew => &[SPAN, PARENT],
            Self::SpanRecord => &[SPAN],
        }
    }
}

#[derive(Default)]
struct Variants {
    /// Packed [`Numbers`] while there is one variant, and it has nothing but numbers; else 0.
    numbers: AtomicU64,
    all: [Published<Variant>; VARIANTS],
    states: [TypeState; VARIANTS],
}

/// One event type of a site.
struct Variant {
    kinds: Kinds,
    state: &'static TypeState,
}

thread_local! {
    /// This thread is registering a type: an event that comes in between (from an allocator, from
    /// a signal handler) must not do the same.
    static REGISTERING: Cell<bool> = const { Cell::new(false) };
}

impl Site {
    pub(super) fn new(hash: u64, facts: Facts, fields: Box<[&'static str]>) -> Self {
        Self {
            facts,
            is_span: false,
            is_log: false,
            hash,
            fields,
            on: AtomicBool::new(false),
            variants: Default::default(),
        }
    }

    /// Whether the site was on when the filter last changed.
    pub(super) fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// Asks the session whether the site is on.
    pub(super) fn look(&self) -> bool {
        static UNUSED: TypeState = TypeState::new();
        let what = if self.is_span {
            What::SpanNew
        } else {
            What::Event
        };
        let on = session::is_wanted(&self.event_type(what, &UNUSED));
        self.on.store(on, Relaxed);
        on
    }

    /// Whether its records are known to be off, without a lock.
    pub(super) fn is_known_off(&self, what: What) -> bool {
        let first = self.variants[what.list()].all[0].current();
        first.is_some_and(|variant| variant.state.enabled() == 0)
    }

    /// The event type of its spans while a thread is in them; 0: they are disabled, or none was made.
    /// Spans whose values have other types are shown under it, too: they have the same name.
    #[inline(always)]
    pub(super) fn span_type(&self) -> u32 {
        let first = self.variants[What::SpanNew.list()].all[0].current();
        first.map_or(0, |variant| variant.state.enabled())
    }

    /// Writes one record: `head`, then the values that `visit` gives.
    #[inline(always)]
    pub(super) fn record<const N: usize>(
        &'static self,
        what: What,
        now: Now,
        head: [u64; N],
        visit: impl Fn(&mut dyn Visit),
    ) {
        if !self.record_numbers(what, now, head, &visit) {
            self.record_any(what, now, head, &visit);
        }
    }

    /// Does so if the site gave nothing but numbers so far, and does again. `false`: it does not.
    #[inline(always)]
    pub(super) fn record_numbers<const N: usize>(
        &'static self,
        what: What,
        now: Now,
        head: [u64; N],
        visit: impl FnOnce(&mut dyn Visit),
    ) -> bool {
        let list = &self.variants[what.list()];
        let Some(expected) = Numbers::unpack(list.numbers.load(Relaxed)) else {
            return false;
        };
        let id = list.states[0].enabled();
        if id == 0 {
            return true;
        }
        let words = (N + expected.fields()) as u64;
        let Some(mut to) = reserve_words(TypeId(id), words, now) else {
            return true;
        };
        set_head(&mut to, head);
        let mut direct = Direct::new(to, N, expected);
        visit(&mut direct);
        direct.finish()
    }

    /// Gathers the values, then writes the record.
    #[inline(never)]
    pub(super) fn record_any<const N: usize>(
        &'static self,
        what: What,
        now: Now,
        head: [u64; N],
        visit: &dyn Fn(&mut dyn Visit),
    ) {
        let mut values = Values::new();
        visit(&mut values);
        let Some(variant) = self.variant(what, &mut values, visit) else {
            return;
        };
        let id = variant.state.enabled();
        if id != 0 {
            write(TypeId(id), now, head, &values);
        }
    }

    #[inline(always)]
    fn variant(
        &'static self,
        what: What,
        values: &mut Values,
        visit: &dyn Fn(&mut dyn Visit),
    ) -> Option<&'static Variant> {
        match self.variants[what.list()].all[0].current() {
            Some(variant) if variant.kinds == values.kinds => Some(variant),
            _ => self.other_variant(what, values, visit),
        }
    }

    /// Finds or registers the type for these kinds. `None`: lost, because this thread is
    /// registering a type already.
    #[cold]
    #[inline(never)]
    fn other_variant(
        &'static self,
        what: What,
        values: &mut Values,
        visit: &dyn Fn(&mut dyn Visit),
    ) -> Option<&'static Variant> {
        let list = &self.variants[what.list()];
        let (last, typed) = list.all.split_last()?;
        for (number, (slot, state)) in typed.iter().zip(&list.states).enumerate() {
            let is_new = slot.current().is_none();
            let variant = self.get_or_register(what, slot, state, values.kinds)?;
            if is_new {
                let only = (number == 0)
                    .then(|| variant.kinds.only_numbers())
                    .flatten();
                list.numbers.store(only.map_or(0, Numbers::pack), Relaxed);
            }
            if variant.kinds == values.kinds {
                return Some(variant);
            }
        }
        *values = Values::new();
        let mut texts = AsText(values);
        visit(&mut texts);
        texts.finish(self.fields.len());
        let kinds = Kinds::all_texts(self.fields.len());
        self.get_or_register(what, last, list.states.last()?, kinds)
    }

    fn get_or_register(
        &'static self,
        what: What,
        slot: &'static Published<Variant>,
        state: &'static TypeState,
        kinds: Kinds,
    ) -> Option<&'static Variant> {
        if let Some(variant) = slot.current() {
            return Some(variant);
        }
        if REGISTERING.replace(true) {
            session::count_nested();
            return None;
        }
        let variant = self.register(what, slot, state, kinds);
        REGISTERING.set(false);
        Some(variant)
    }

    fn register(
        &self,
        what: What,
        slot: &'static Published<Variant>,
        state: &'static TypeState,
        kinds: Kinds,
    ) -> &'static Variant {
        let mut fields = Vec::with_capacity(2 + self.fields.len());
        for (name, semantic) in what.head() {
            push_field(&mut fields, name, Kind::U64, *semantic);
        }
        for (index, kind) in kinds.iter() {
            push_field(&mut fields, self.fields.get(index).unwrap_or(&""), kind, 0);
        }
        let description = Description {
            event: self.event_type(what, state),
            fields: &fields,
            fixed_bytes: fields.last().map_or(0, end),
        };
        session::register_once(&description, slot, || Box::new(Variant { kinds, state }))
    }

    fn event_type(&self, what: What, state: &'static TypeState) -> EventType {
        let Facts {
            name,
            target,
            level,
            file,
            line,
        } = self.facts;
        EventType {
            name,
            target,
            category: "",
            level,
            shape: what.shape(),
            file,
            line,
            state,
        }
    }
}

/// End of a field that starts at a whole word, as all do.
fn end(field: &Field) -> u32 {
    field.place.offset + field.place.kind.fixed_bytes().max(8) as u32
}

fn push_field(fields: &mut Vec<Field>, name: &'static str, kind: Kind, semantic: u32) {
    let offset = fields.last().map_or(0, end);
    let count = 0;
    fields.push(Field {
        name,
        place: Place {
            kind,
            count,
            offset,
            optional: false,
        },
        semantic,
        unit: "",
        redacted: false,
    });
}

#[inline(always)]
fn set_head<const N: usize>(to: &mut Reservation<'_>, head: [u64; N]) {
    for (at, word) in head.into_iter().enumerate() {
        to.set_word(at, word);
    }
}

/// Writes one record: `head`, the values, their texts.
#[inline(always)]
fn write<const N: usize>(id: TypeId, now: Now, head: [u64; N], values: &Values) {
    let (words, texts) = (values.words(), values.texts());
    let fixed_words = N + words.len();
    let all = (fixed_words + texts.len() / 8) as u64;
    let Some(mut to) = reserve_words(id, all, now) else {
        return;
    };
    set_head(&mut to, head);
    for (at, word) in words.iter().enumerate() {
        to.set_word(N + at, *word);
    }
    if !texts.is_empty() {
        for at in values.places() {
            to.set_word(N + at, words[at] + 8 * fixed_words as u64);
        }
        to.set_bytes(fixed_words, texts);
    }
    to.commit();
}
