//! Call sites: places in the program, each a type that the macros make.

use core::marker::PhantomData;

use super::fields::Fields;
use crate::description::{Description, EventType, Field, Shape, TypeState, semantic};
use crate::sites::{self, DescribeSite};

/// One place in the program that emits.
pub trait Callsite {
    /// Names of the arguments.
    const FIELDS: &'static [&'static str];
    /// What a record of it is; decides what the leading arguments mean.
    const SHAPE: Shape;

    /// The facts about the event type.
    fn event() -> EventType;
    /// The word that says whether the type is enabled.
    fn state() -> &'static TypeState;
}

/// Payload bytes in front of the arguments: a finished span begins with its duration.
const fn bytes_before(shape: Shape) -> usize {
    match shape {
        Shape::Span => 8,
        _ => 0,
    }
}

/// What the leading arguments of a record mean; the others mean nothing special.
const fn semantics(shape: Shape) -> &'static [u32] {
    match shape {
        Shape::Instant | Shape::Span => &[],
        Shape::SpanNew | Shape::SpanFollows => &[semantic::SPAN_ID, semantic::PARENT_ID],
        Shape::SpanEnter | Shape::SpanExit | Shape::SpanClose | Shape::SpanRecord => {
            &[semantic::SPAN_ID]
        }
        Shape::Counter => &[semantic::COUNTER],
        Shape::Flow => &[semantic::FLOW],
    }
}

/// A call site with the types of its arguments: what the linker section points at.
struct Site<C, F>(PhantomData<(C, F)>);

impl<C: Callsite, F: Fields> DescribeSite for Site<C, F> {
    fn describe(to: &mut dyn FnMut(Description<'_>)) {
        let before = bytes_before(C::SHAPE);
        let mut described = Vec::with_capacity(1 + C::FIELDS.len());
        if before != 0 {
            described.push(Field::DURATION);
        }
        for (i, (name, place)) in C::FIELDS.iter().zip(F::PLACES).enumerate() {
            let mut place = *place;
            place.offset += before as u32;
            described.push(Field {
                name: name.strip_prefix("r#").unwrap_or(name),
                place,
                semantic: semantics(C::SHAPE).get(i).copied().unwrap_or(0),
                unit: "",
                redacted: F::REDACTED[i],
            });
        }
        let fixed_bytes = (before + F::BYTES) as u32;
        to(Description {
            event: C::event(),
            fields: &described,
            fixed_bytes,
        });
    }
}

/// Registers a type that no macro declares; the program has it from now on.
pub(crate) fn register<C: Callsite, F: Fields>() {
    Site::<C, F>::describe(&mut |description| crate::session::register_dynamic(&description));
}

/// Puts the call site into the linker section, from where a session reads its description.
#[inline(always)]
pub(crate) fn declare<C: Callsite, F: Fields>() {
    sites::declare::<Site<C, F>>();
}
