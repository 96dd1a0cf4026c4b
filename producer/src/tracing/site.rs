//! What is known of one call site of `tracing`, and how its records are written.
//!
//! `tracing` does not say which types the fields of a site have. So each combination of kinds that
//! really comes is an event type of its own, registered when it first comes: almost always one. After a few
//! of them a type is for many combinations: it has all fields of the site, and each may be absent.

use core::cell::Cell;
use core::sync::atomic::Ordering::{self, Relaxed};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use ringmark_format::TypeId;
use ringmark_format::counters::Cause;
use ringmark_ring::Reservation;
use ringmark_ring::published_static::Published;
use tracing_core::field::Visit;

use super::direct::Direct;
use super::kinds::{ABSENT, FIELDS_MAX, Kinds, Numbers, kind_of};
use super::texts::{InRecord, Rooms, Stack};
use super::values::{Gathered, NO_WORDS, Pass, Values};
use crate::description::Now;
use crate::description::{
    Description, EventType, Field, Kind, Level, Place, Shape, TypeState, semantic,
};
use crate::event::emit::reserve_words;
use crate::session;
use crate::session::span_gate::{self, EVERYWHERE};

/// Combinations of kinds that get a type of their own.
const EXACT: usize = 4;
/// Types for many combinations, one for each field whose kind was not known before, or changes. In the last
/// one everything is text.
const OPTIONAL: usize = FIELDS_MAX + 1;
/// The session was not asked yet whether a site is on.
const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;
/// It is on inside certain spans only, or it is a span and the filter asks for some.
const WATCHED: u8 = 3;
/// What the fields after the last one that is typed are called together.
const FURTHER: &str = "…";

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
    /// [`UNKNOWN`], [`OFF`], [`ON`] or [`WATCHED`].
    state: AtomicU8,
    /// The bits of the spans inside which it is on.
    bits: AtomicU32,
    /// For an event: without and with a span that it names. For a span: made, late values.
    variants: [Variants; 2],
}

/// Which records of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// An event whose span follows from what its thread has entered.
    Event,
    /// An event that names its span.
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
            Self::EventOf => &[SPAN],
            Self::SpanNew => &[SPAN, PARENT],
            Self::SpanRecord => &[SPAN],
        }
    }
}

#[derive(Default)]
struct Variants {
    /// Packed [`Numbers`] while there is one variant, and it has nothing but numbers; else 0.
    numbers: AtomicU64,
    all: [Published<Variant>; EXACT],
    states: [TypeState; EXACT],
    optional: Published<Optional>,
}

/// One event type of a site.
struct Variant {
    kinds: Kinds,
    /// Each field may be absent; else those that `kinds` has are there.
    is_optional: bool,
    state: &'static TypeState,
}

/// A type for many combinations, and the next one.
struct Optional {
    variant: Variant,
    next: Published<Self>,
}

impl Variant {
    fn fits(&self, kinds: Kinds) -> bool {
        match self.is_optional {
            true => kinds.are_among(self.kinds),
            false => kinds == self.kinds,
        }
    }

    /// Words of all fields of a record.
    fn words(&self, values: &Gathered<'_>) -> usize {
        match self.is_optional {
            true => self.kinds.iter().map(|(_, kind)| 2 * words_of(kind)).sum(),
            false => values.words().len(),
        }
    }

    /// Writes the fields from payload word `at` on; places of texts count from byte `texts`.
    #[inline(always)]
    fn write(&self, to: &mut Reservation<'_>, at: usize, values: &Gathered<'_>, texts: usize) {
        if self.is_optional {
            return self.write_optional(to, at, values, texts);
        }
        let words = values.words();
        for (index, word) in words.iter().enumerate() {
            to.set_word(at + index, *word);
        }
        for index in values.places() {
            to.set_word(at + index, words[index] + texts as u64);
        }
    }

    /// The same where the second half of each field says whether it is there.
    #[cold]
    #[inline(never)]
    fn write_optional(
        &self,
        to: &mut Reservation<'_>,
        mut at: usize,
        values: &Gathered<'_>,
        texts: usize,
    ) {
        let mut there = values.kinds.codes();
        let (words, mut next) = (values.words(), 0);
        for kind in self.kinds.codes().map(kind_of) {
            let is_there = there.next().is_some_and(|code| code != ABSENT);
            let Some(count) = kind.map(words_of) else {
                continue;
            };
            if is_there {
                for (index, word) in words[next..next + count].iter().enumerate() {
                    let from = if values.is_place(next) {
                        texts as u64
                    } else {
                        0
                    };
                    to.set_word(at + index, *word + from);
                }
                to.set_word(at + count, 1);
                next += count;
            }
            at += 2 * count;
        }
    }
}

/// Words of a value of this kind in a record of ours.
fn words_of(kind: Kind) -> usize {
    kind.fixed_bytes().div_ceil(8)
}

thread_local! {
    /// This thread has the session's lock, to register a type or to ask for a site: an event that comes in
    /// between (from an allocator, from a signal handler) must not take it.
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
            state: AtomicU8::new(UNKNOWN),
            bits: AtomicU32::new(0),
            variants: Default::default(),
        }
    }

    /// Whether the site was simply on when the filter last changed. A thread that comes while another one registers
    /// the call site, and a child that was forked at that moment, ask the session here.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        match self.state.load(Relaxed) {
            UNKNOWN => self.look_first(),
            state => state == ON,
        }
    }

    /// Whether it was so inside certain spans, or is a span that may be asked for.
    #[inline(always)]
    pub(super) fn is_watched(&self) -> bool {
        self.state.load(Relaxed) == WATCHED
    }

    /// Whether its records are wanted inside spans with these bits.
    pub(super) fn is_permitted_in(&self, inside: u32) -> bool {
        let bits = self.bits.load(Relaxed);
        bits == EVERYWHERE || bits & inside != 0
    }

    #[cold]
    fn look_first(&self) -> bool {
        let Some(bits) = self.ask() else {
            session::count_lost(Cause::Nested);
            return false;
        };
        let state = self.state_of(bits);
        // Whoever was asked since knows of a later filter.
        if (self.state)
            .compare_exchange(UNKNOWN, state, Relaxed, Relaxed)
            .is_ok()
        {
            self.bits.store(bits, Relaxed);
        }
        state == ON
    }

    /// Asks the session whether the site is on somewhere. `None`: this thread is registering a type; it asks later.
    pub(super) fn look(&self) -> Option<bool> {
        let bits = self.ask()?;
        self.bits.store(bits, Relaxed);
        self.state.store(self.state_of(bits), Relaxed);
        Some(bits != 0)
    }

    fn state_of(&self, bits: u32) -> u8 {
        match bits {
            0 => OFF,
            EVERYWHERE if !(self.is_span && span_gate::is_on()) => ON,
            _ => WATCHED,
        }
    }

    fn ask(&self) -> Option<u32> {
        static UNUSED: TypeState = TypeState::new();
        let what = if self.is_span {
            What::SpanNew
        } else {
            What::Event
        };
        if REGISTERING.replace(true) {
            return None;
        }
        let bits = session::bits_wanted(&self.event_type(what, &UNUSED));
        REGISTERING.set(false);
        Some(bits)
    }

    /// Names of its fields, in the order of their indices.
    pub(super) fn fields(&self) -> &[&'static str] {
        &self.fields
    }

    /// Whether its records are known to be off, without a lock.
    pub(super) fn is_known_off(&self, what: What) -> bool {
        let first = self.variants[what.list()].all[0].current();
        first.is_some_and(|variant| variant.state.enabled() == 0)
    }

    /// The event type of its spans while a thread is in them, also if it was switched off since they were
    /// made; 0: none was made. Spans whose values have other types are shown under it, too: they have the
    /// same name.
    #[inline(always)]
    pub(super) fn span_type(&self) -> u32 {
        let first = self.variants[What::SpanNew.list()].all[0].current();
        first.map_or(0, |variant| variant.state.id())
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
        let numbers = list.numbers.load(Ordering::Acquire); // [L3] pairs with [L4]: whether the type is on
        let Some(expected) = Numbers::unpack(numbers) else {
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
        let (mut words, mut texts) = (NO_WORDS, Stack::new());
        let mut of = Gathered::new(&mut words, Pass::FIRST);
        let mut values = Values {
            of: &mut of,
            texts: &mut texts,
        };
        values.gather(visit);
        self.record_values(what, now, head, &mut values, visit);
        if values.of.has_more() {
            self.record_runs(what, now, head, visit);
        }
    }

    /// The other runs of values that do not come in the order of their fields.
    #[cold]
    #[inline(never)]
    fn record_runs<const N: usize>(
        &'static self,
        what: What,
        now: Now,
        head: [u64; N],
        visit: &dyn Fn(&mut dyn Visit),
    ) {
        for run in 1.. {
            let pass = Pass {
                run,
                as_text: false,
            };
            let (mut words, mut texts) = (NO_WORDS, Stack::new());
            let mut of = Gathered::new(&mut words, pass);
            let mut values = Values {
                of: &mut of,
                texts: &mut texts,
            };
            values.gather(visit);
            self.record_values(what, now, head, &mut values, visit);
            if !values.of.has_more() {
                return;
            }
        }
    }

    #[inline(always)]
    fn record_values<const N: usize>(
        &'static self,
        what: What,
        now: Now,
        head: [u64; N],
        values: &mut Values<'_, '_>,
        visit: &dyn Fn(&mut dyn Visit),
    ) {
        let Some(variant) = self.variant(what, values, visit) else {
            return;
        };
        let id = variant.state.enabled();
        if id == 0 {
            return;
        }
        if values.texts.is_short() {
            write_long(variant, TypeId(id), now, head, values.of, visit);
        } else {
            write(variant, TypeId(id), now, head, values);
        }
    }

    #[inline(always)]
    fn variant(
        &'static self,
        what: What,
        values: &mut Values<'_, '_>,
        visit: &dyn Fn(&mut dyn Visit),
    ) -> Option<&'static Variant> {
        match self.variants[what.list()].all[0].current() {
            Some(variant) if variant.kinds == values.of.kinds => Some(variant),
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
        values: &mut Values<'_, '_>,
        visit: &dyn Fn(&mut dyn Visit),
    ) -> Option<&'static Variant> {
        let list = &self.variants[what.list()];
        for (number, (slot, state)) in list.all.iter().zip(&list.states).enumerate() {
            let is_new = slot.current().is_none();
            let variant =
                self.get_or_register(slot, || self.exact(what, slot, state, values.of.kinds))?;
            if is_new {
                let only = (number == 0)
                    .then(|| variant.kinds.only_numbers())
                    .flatten();
                let only = only.map_or(0, Numbers::pack);
                list.numbers.store(only, Ordering::Release); // [L4] pairs with [L3]
            }
            if variant.fits(values.of.kinds) {
                return Some(variant);
            }
        }
        self.optional_variant(what, values, visit)
    }

    /// Finds or registers a type in which fields may be absent.
    fn optional_variant(
        &'static self,
        what: What,
        values: &mut Values<'_, '_>,
        visit: &dyn Fn(&mut dyn Visit),
    ) -> Option<&'static Variant> {
        let list = &self.variants[what.list()];
        let mut place = &list.optional;
        for number in 0..OPTIONAL {
            if number + 1 == OPTIONAL {
                let pass = Pass {
                    as_text: true,
                    ..values.of.pass
                };
                values.restart(Stack::new(), pass);
                values.gather(visit);
            }
            let found = self.get_or_register(place, || {
                let kinds = match number + 1 == OPTIONAL {
                    true => Kinds::all_texts(self.fields.len()),
                    false => values.of.kinds.completed(self.fields.len(), list.known()),
                };
                self.optional(what, place, kinds)
            })?;
            if found.variant.fits(values.of.kinds) {
                return Some(&found.variant);
            }
            place = &found.next;
        }
        None
    }

    /// What is in `place`, registered by `register` if nothing is.
    fn get_or_register<T: Sync>(
        &'static self,
        place: &'static Published<T>,
        register: impl FnOnce() -> &'static T,
    ) -> Option<&'static T> {
        if let Some(found) = place.current() {
            return Some(found);
        }
        if REGISTERING.replace(true) {
            // An event in an allocator, or in a signal handler.
            session::count_lost(Cause::Nested);
            return None;
        }
        let registered = register();
        REGISTERING.set(false);
        Some(registered)
    }

    fn exact(
        &self,
        what: What,
        place: &'static Published<Variant>,
        state: &'static TypeState,
        kinds: Kinds,
    ) -> &'static Variant {
        let variant = Variant {
            kinds,
            is_optional: false,
            state,
        };
        self.register(what, &variant, place, |variant| variant)
    }

    fn optional(
        &self,
        what: What,
        place: &'static Published<Optional>,
        kinds: Kinds,
    ) -> &'static Optional {
        let variant = Variant {
            kinds,
            is_optional: true,
            state: Box::leak(Box::default()),
        };
        self.register(what, &variant, place, |variant| Optional {
            variant,
            next: Published::new(),
        })
    }

    fn register<T: Sync>(
        &self,
        what: What,
        variant: &Variant,
        place: &'static Published<T>,
        of: impl FnOnce(Variant) -> T,
    ) -> &'static T {
        let Variant {
            kinds,
            is_optional,
            state,
        } = *variant;
        let mut fields = Vec::with_capacity(2 + self.fields.len());
        for (name, semantic) in what.head() {
            push_field(&mut fields, name, Kind::U64, false, *semantic);
        }
        for (index, kind) in kinds.iter() {
            let name = match index < FIELDS_MAX {
                true => self.fields.get(index).unwrap_or(&""),
                false => FURTHER,
            };
            push_field(&mut fields, name, kind, is_optional, 0);
        }
        let description = Description {
            event: self.event_type(what, state),
            fields: &fields,
            fixed_bytes: fields.last().map_or(0, end),
        };
        session::register_once(&description, place, || {
            Box::new(of(Variant {
                kinds,
                is_optional,
                state,
            }))
        })
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

impl Variants {
    /// Kinds that were registered before.
    fn known(&'static self) -> impl Iterator<Item = Kinds> + Clone {
        let optional = core::iter::successors(self.optional.current(), |one| one.next.current());
        let exact = self.all.iter().filter_map(Published::current);
        exact
            .map(|variant| variant.kinds)
            .chain(optional.map(|one| one.variant.kinds))
    }
}

/// End of a field that starts at a whole word, as all do.
fn end(field: &Field) -> u32 {
    let Place { kind, optional, .. } = field.place;
    field.place.offset + (8 * words_of(kind) * if optional { 2 } else { 1 }) as u32
}

fn push_field(
    fields: &mut Vec<Field>,
    name: &'static str,
    kind: Kind,
    optional: bool,
    semantic: u32,
) {
    let offset = fields.last().map_or(0, end);
    fields.push(Field {
        name,
        place: Place {
            kind,
            count: 0,
            offset,
            optional,
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
fn write<const N: usize>(variant: &Variant, id: TypeId, now: Now, head: [u64; N], values: &Values) {
    let texts = values.texts.bytes();
    let fixed_words = N + variant.words(values.of);
    let all = (fixed_words + texts.len() / 8) as u64;
    let Some(mut to) = reserve_words(id, all, now) else {
        return;
    };
    set_head(&mut to, head);
    variant.write(&mut to, N, values.of, 8 * fixed_words);
    if !texts.is_empty() {
        to.set_bytes(fixed_words, texts);
    }
    to.commit();
}

/// The same where the texts do not fit the stack: the program's `Debug` implementations run once more, and
/// write into the record. What they record meanwhile has its place behind it.
#[cold]
#[inline(never)]
fn write_long<const N: usize>(
    variant: &Variant,
    id: TypeId,
    now: Now,
    head: [u64; N],
    values: &Gathered<'_>,
    visit: &dyn Fn(&mut dyn Visit),
) {
    let fixed_words = N + variant.words(values);
    let words = values.words();
    let lengths = values.places().map(|at| (words[at] >> 32) as usize);
    let most = (session::payload_words_max() as usize).saturating_sub(fixed_words);
    let rooms = Rooms::new(lengths, 8 * most);
    let all = (fixed_words + rooms.bytes() / 8) as u64;
    let Some(mut to) = reserve_words(id, all, now) else {
        return;
    };
    set_head(&mut to, head);
    let mut texts = InRecord::new(to, fixed_words, rooms);
    let mut room = NO_WORDS;
    let mut again = Gathered::new(&mut room, values.pass);
    let mut of = Values {
        of: &mut again,
        texts: &mut texts,
    };
    of.gather(visit);
    variant.write(&mut texts.to, N, &again, 0);
    texts.to.commit();
}
