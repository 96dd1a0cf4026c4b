//! Filters by spans: event types that are recorded inside certain spans only.
//!
//! While such a filter is in force no writer of the session has a clock ([`Writer::set_clock`]). So every record of this
//! moment takes the slow way, and asks here; the straight line needs no look at the filter. The helper thread takes
//! the clocks away; each thread gives itself its own back when no such filter is in force any more.
//!
//! A condition has a bit. Each event type has the bits of the conditions that enable it, and each thread those of the
//! conditions that the spans meet which it is in. Spans that change threads carry their own: those of the span in
//! which they were made among them.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use ringmark_format::record::FIRST_TYPE;
use ringmark_format::session::Clock;
use ringmark_format::span_condition::{SpanCondition, SpanValue};
use ringmark_ring::published_static::Published;
use ringmark_ring::withdrawal;
use ringmark_ring::{SpanPlace, Writer};

use crate::thread_block;

/// Conditions that are known at one time. The other two bits say what a span of `tracing` is.
pub(crate) const CONDITIONS_MAX: usize = 30;
/// The bits of a type that is recorded everywhere.
pub(crate) const EVERYWHERE: u32 = u32::MAX;
/// Marks of places, from 1: so many native spans that meet a condition can be open in a thread at one time. Few, as
/// every thread has room for them.
const MARKS: usize = 16;
const _: () = assert!(MARKS <= SpanPlace::MARKS, "a place has a mark");
/// Event types that can wait for spans; further ones are off where they would.
const TYPES_MAX: usize = 1 << 15;

/// Each condition has the bit of its place. One that no filter names any more keeps it until the place is needed:
/// spans that met it live on.
static CONDITIONS: Published<Vec<SpanCondition>> = Published::new();
/// Bits of the conditions that the filter has; 0: none.
static IN_FORCE: AtomicU32 = AtomicU32::new(0);
/// By type: its bits; 0: it is recorded everywhere, or off.
static BITS: Published<Vec<AtomicU32>> = Published::new();
/// This copy of the library has no spans of the program.
static HAS_NO_SPANS: AtomicBool = AtomicBool::new(false);

/// What a thread is in.
struct Inside {
    bits: Cell<u32>,
    /// How many spans it is in that have each bit.
    depths: [Cell<u16>; CONDITIONS_MAX],
    /// The bits of spans whose place has a mark, by the mark; 0: no span has it.
    marked: [Cell<u32>; MARKS],
}

thread_local! {
    static INSIDE: Inside = const {
        Inside {
            bits: Cell::new(0),
            depths: [const { Cell::new(0) }; CONDITIONS_MAX],
            marked: [const { Cell::new(0) }; MARKS],
        }
    };
}

/// From now on filters by spans mean nothing: this copy of the library records functions, and has no spans.
pub(super) fn has_no_spans() {
    HAS_NO_SPANS.store(true, Relaxed);
}

/// Whether they mean nothing here.
pub(super) fn is_without_spans() -> bool {
    HAS_NO_SPANS.load(Relaxed)
}

/// Why a filter with so many conditions on spans cannot be used, if so.
pub(super) fn refusal(clock: Clock, conditions: usize) -> Option<&'static str> {
    match conditions {
        0 => None,
        // Its ticks are all 0: a writer without a clock would be as any other.
        _ if clock == Clock::None => Some("a session with a clock, which spans in a filter need"),
        _ if conditions > CONDITIONS_MAX => Some("at most 30 conditions on spans"),
        _ => None,
    }
}

/// Whether a filter by spans is in force.
pub(crate) fn is_on() -> bool {
    IN_FORCE.load(Relaxed) != 0
}

/// Puts these conditions in force, in place of those before. Conditions beyond [`CONDITIONS_MAX`] are not taken.
/// `take_clocks_away` does so with all writers of the session: their threads take the slow way from their next record on.
pub(super) fn put_in_force(wanted: &[&SpanCondition], take_clocks_away: impl FnOnce()) {
    if is_without_spans() {
        return;
    }
    let mut all = CONDITIONS.current().cloned().unwrap_or_default();
    let is_new = |all: &[SpanCondition], one: &SpanCondition| !all.contains(one);
    let mut has_changed = false;
    for one in wanted {
        if is_new(&all, one) {
            has_changed |= add(&mut all, one, wanted);
        }
    }
    if has_changed {
        CONDITIONS.publish(Box::leak(Box::new(all)));
    }
    let bits = wanted.iter().fold(0, |bits, one| bits | bit_of(one));
    if bits == 0 {
        // Each thread gives itself its clock back.
        return IN_FORCE.store(0, Relaxed);
    }
    BITS.get_or_publish(|| Box::new((0..TYPES_MAX).map(|_| AtomicU32::new(0)).collect()));
    withdrawal::withdraw(|| IN_FORCE.store(bits, Relaxed), take_clocks_away);
}

/// Adds a condition, in a free place or in that of one that is not wanted.
fn add(all: &mut Vec<SpanCondition>, one: &SpanCondition, wanted: &[&SpanCondition]) -> bool {
    if all.len() < CONDITIONS_MAX {
        all.push(one.clone());
        return true;
    }
    let unused = all.iter_mut().find(|known| !wanted.contains(&&**known));
    unused.map(|place| *place = one.clone()).is_some()
}

/// The bit of a condition; 0: it was not taken.
pub(super) fn bit_of(condition: &SpanCondition) -> u32 {
    let all = CONDITIONS.current().map_or(&[][..], Vec::as_slice);
    let place = all.iter().position(|known| known == condition);
    place.map_or(0, |place| 1 << place)
}

/// The bits of the conditions in force that may mean spans of this name.
pub(super) fn bits_of_span(name: &str) -> u32 {
    let is_meant =
        |one: &SpanCondition| ringmark_format::glob::matches(one.name.as_bytes(), name.as_bytes());
    in_force().fold(0, |bits, (bit, one)| {
        bits | if is_meant(one) { bit } else { 0 }
    })
}

fn in_force() -> impl Iterator<Item = (u32, &'static SpanCondition)> {
    let bits = IN_FORCE.load(Relaxed);
    let all = CONDITIONS.current().map_or(&[][..], Vec::as_slice);
    let with_bits = all.iter().enumerate().map(|(place, one)| (1 << place, one));
    with_bits.filter(move |(bit, _)| bits & bit != 0)
}

/// Sets where a type is recorded. `false`: nowhere, although it has bits.
pub(super) fn set_bits(type_id: u32, bits: u32) -> bool {
    let place = BITS
        .current()
        .and_then(|all| all.get(type_id.wrapping_sub(FIRST_TYPE) as usize));
    let own = if bits == EVERYWHERE { 0 } else { bits };
    place.inspect(|place| place.store(own, Relaxed));
    place.is_some() || own == 0
}

fn bits_of_type(type_id: u32) -> u32 {
    let place = BITS
        .current()
        .and_then(|all| all.get(type_id.wrapping_sub(FIRST_TYPE) as usize));
    place.map_or(0, |place| place.load(Relaxed))
}

/// Whether a record of this type is wanted of this thread now.
pub(crate) fn permits(type_id: u32) -> bool {
    permits_in(type_id, inside())
}

/// Whether one is wanted inside spans that have these bits.
pub(crate) fn permits_in(type_id: u32, inside: u32) -> bool {
    let bits = bits_of_type(type_id);
    bits == 0 || !is_on() || bits & inside & IN_FORCE.load(Relaxed) != 0
}

/// The bits of the spans that this thread is in.
pub(crate) fn inside() -> u32 {
    INSIDE.with(|inside| inside.bits.get())
}

/// Does `work` as if this thread were in spans with these bits and in no others.
pub(crate) fn as_if_inside<R>(bits: u32, work: impl FnOnce() -> R) -> R {
    let before = INSIDE.with(|inside| inside.bits.replace(bits));
    let _before = Before(before);
    work()
}

/// The bits of a thread, set again also where the program's own code panics.
struct Before(u32);

impl Drop for Before {
    fn drop(&mut self) {
        INSIDE.with(|inside| inside.bits.set(self.0));
    }
}

/// This thread enters a span with these bits.
pub(crate) fn enter(bits: u32) {
    count(bits, |depth| depth.saturating_add(1));
}

/// This thread leaves it.
pub(crate) fn leave(bits: u32) {
    count(bits, |depth| depth.saturating_sub(1));
}

fn count(bits: u32, change: impl Fn(u16) -> u16) {
    INSIDE.with(|inside| {
        for (place, depth) in inside.depths.iter().enumerate() {
            let bit = 1 << place;
            if bits & bit != 0 {
                depth.set(change(depth.get()));
                let others = inside.bits.get() & !bit;
                inside
                    .bits
                    .set(others | if depth.get() == 0 { 0 } else { bit });
            }
        }
    });
}

/// As [`enter`], for a span at this place: the mark of the place leads to the bits. With more of them open than there
/// are marks, the span counts for none of its conditions.
pub(crate) fn enter_at(place: SpanPlace, bits: u32) -> SpanPlace {
    if bits == 0 {
        return place;
    }
    let free = INSIDE.with(|inside| {
        let mut marks = inside.marked.iter().enumerate().skip(1);
        let (mark, place) = marks.find(|(_, bits)| bits.get() == 0)?;
        place.set(bits);
        Some(mark)
    });
    let Some(mark) = free else {
        return place;
    };
    enter(bits);
    place.with_mark(mark)
}

/// This thread leaves the span at this place, if it has a mark. Returns the place without it.
pub(crate) fn leave_at(place: SpanPlace) -> SpanPlace {
    let (place, mark) = place.without_mark();
    if mark != 0 {
        leave(INSIDE.with(|inside| inside.marked[mark % MARKS].replace(0)));
    }
    place
}

/// Gives a writer of this thread the session's clock if it may have it, or takes it away.
pub(super) fn tend(writer: &Writer, clock: Clock) {
    if is_on() {
        return writer.set_clock(0);
    }
    let take = || writer.set_clock(0);
    withdrawal::give_back(|| writer.set_clock(clock as u32), is_on, take);
}

/// The session's clock for a thread whose writer has none.
pub(super) fn now(clock: Clock) -> u64 {
    if let Some(writer) = thread_block::writer().filter(|writer| writer.is_attached()) {
        tend(writer, clock);
    }
    ringmark_ring::clock::ticks(clock)
}

/// Which conditions a span meets, as its values come.
pub(crate) struct Matching {
    /// Conditions that no value has contradicted.
    possible: u32,
    /// How many values each has found.
    found: [u8; CONDITIONS_MAX],
    conditions: &'static [SpanCondition],
}

impl Matching {
    /// Of a span with this name and these fields.
    pub(crate) fn of_span<'f>(name: &str, fields: impl Iterator<Item = &'f str> + Clone) -> Self {
        let meant = in_force().filter(|(_, one)| one.is_of(name, fields.clone()));
        Self {
            possible: meant.fold(0, |bits, (bit, _)| bits | bit),
            found: [0; CONDITIONS_MAX],
            conditions: CONDITIONS.current().map_or(&[], Vec::as_slice),
        }
    }

    fn possible(&self) -> impl Iterator<Item = (usize, &'static SpanCondition)> + use<> {
        let possible = self.possible;
        let all = self.conditions.iter().enumerate().take(CONDITIONS_MAX);
        all.filter(move |(place, _)| possible >> place & 1 == 1)
    }

    /// Whether the value of this field is of interest.
    pub(crate) fn asks_for(&self, field: &str) -> bool {
        let mut asked = self.possible().flat_map(|(_, one)| &one.fields);
        asked.any(|asked| asked.name == field && asked.value.is_some())
    }

    /// The value of a field.
    pub(crate) fn see(&mut self, field: &str, value: SpanValue<'_>) {
        for (place, condition) in self.possible() {
            let mut asked = condition
                .fields
                .iter()
                .filter(|asked| asked.value.is_some());
            match asked.find(|asked| asked.name == field) {
                Some(asked) if asked.is(value) => self.found[place] += 1,
                Some(_) => self.possible &= !(1 << place),
                None => {}
            }
        }
    }

    /// The conditions that are met, and those that may yet be, by values that come later.
    pub(crate) fn met(&self) -> (u32, u32) {
        let wanted = |one: &SpanCondition| one.fields.iter().filter(|f| f.value.is_some()).count();
        let is_met =
            |(place, one): &(usize, &SpanCondition)| usize::from(self.found[*place]) >= wanted(one);
        let met = self.possible().filter(is_met);
        let met = met.fold(0, |bits, (place, _)| bits | 1 << place);
        (met, self.possible & !met)
    }
}
