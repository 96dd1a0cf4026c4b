//! What a dump gives: events and losses.

use ringmark_format::schema::{Level, Shape};
use ringmark_format::{RingId, SlotIndex};

use crate::blocks::page::Page;
use crate::trace_file::field::Field;
use crate::trace_file::function_words::FunctionWords;
use crate::trace_file::functions::Function;
use crate::trace_file::loss::Loss;
use crate::trace_file::schema::EventType;
use crate::trace_file::session::Session;
use crate::trace_file::spans::duration_ticks;
use crate::trace_file::value::Value;

/// One event. Everything it says is borrowed from the dump.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Its session.
    pub session: &'a Session,
    /// Its page.
    pub page: &'a Page,
    /// Its type.
    pub ty: &'a EventType,
    /// The bytes of its fields.
    pub payload: &'a [u8],
    /// Its number in its slot: reservations before it.
    pub seq: u64,
    /// Its tick, of the session's clock. Of a finished span: the end.
    pub tick: u64,
    /// ns since the session's start.
    pub t_ns: u64,
    /// The span it makes, ends or lies in.
    pub span: Option<u64>,
    /// The span around the one that it makes or ends.
    pub parent: Option<u64>,
    /// The type that made the span, where the event only names the span by its id.
    pub span_type: Option<&'a EventType>,
}

impl<'a> Event<'a> {
    /// Its claim.
    #[must_use]
    pub const fn ring(&self) -> RingId {
        self.page.ring
    }

    /// Its slot.
    #[must_use]
    pub const fn slot(&self) -> SlotIndex {
        SlotIndex(self.page.header.slot)
    }

    /// ns since 1970.
    #[must_use]
    pub fn wall_ns(&self) -> u64 {
        self.session.clock.wall_of(self.tick, self.t_ns)
    }

    /// Process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.session.pid()
    }

    /// Thread id.
    #[must_use]
    pub const fn tid(&self) -> u32 {
        self.page.header.tid
    }

    /// Name of the thread when it attached.
    #[must_use]
    pub fn comm(&self) -> &'a [u8] {
        self.page.thread_name()
    }

    /// The function that was entered or left, if it is such a record.
    #[must_use]
    pub fn function(&self) -> Option<&'a Function> {
        let meaning = self.ty.function?;
        self.session.schema.functions().function(meaning.function)
    }

    /// Name of the type that describes it, or made its span, or of its function.
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        if let Some(function) = self.function() {
            return &function.name;
        }
        &self.span_type.unwrap_or(self.ty).name
    }

    /// Target (module path; of a function the file name of its module), or empty.
    #[must_use]
    pub fn target(&self) -> &'a [u8] {
        if let Some(function) = self.function() {
            let module = self.session.schema.functions().module(function.module);
            return module.map_or(&[], |module| module.file_name());
        }
        &self.span_type.unwrap_or(self.ty).target
    }

    /// Category, or empty.
    #[must_use]
    pub fn category(&self) -> &'a [u8] {
        &self.ty.category
    }

    /// How important, if known.
    #[must_use]
    pub fn level(&self) -> Option<Level> {
        self.span_type.unwrap_or(self.ty).level
    }

    /// What it says, if known.
    #[must_use]
    pub const fn shape(&self) -> Option<Shape> {
        self.ty.shape
    }

    /// How long a finished span, or a call recorded as a whole, took, in ns.
    #[must_use]
    pub fn duration_ns(&self) -> Option<u64> {
        let ticks = match self.ty.function {
            Some(meaning) => FunctionWords::read(meaning, self.payload).duration_ticks?,
            None => duration_ticks(self.ty, self.payload)?,
        };
        let start = self.session.clock.t_ns(self.tick.saturating_sub(ticks));
        Some(self.t_ns.saturating_sub(start))
    }

    /// Start of a finished span in ns since the session's start; of anything else its time.
    #[must_use]
    pub fn start_ns(&self) -> u64 {
        self.t_ns.saturating_sub(self.duration_ns().unwrap_or(0))
    }

    /// Its fields and their values, without those that only carry structure (duration, span id,
    /// parent id of a span); of a type that nothing describes there are none.
    pub fn args(&self) -> impl Iterator<Item = (&'a Field, Value<'a>)> + use<'a> {
        let (ty, payload) = (self.ty, self.payload);
        let shown = ty.fields.iter().enumerate().filter(|(i, _)| ty.shows(*i));
        shown.map(move |(_, field)| (field, field.value(payload)))
    }
}

/// Events that are not there, at their place among the others.
#[derive(Debug, Clone, Copy)]
pub struct Lost<'a> {
    /// The session.
    pub session: &'a Session,
    /// The page behind the loss (or the last one before); `None`: no page of this ring is here.
    pub page: Option<&'a Page>,
    /// The ring, if the loss belongs to one.
    pub ring: Option<RingId>,
    /// ns since the session's start: not later than this; of losses at the end the last known.
    pub t_ns: u64,
    /// Why and how many.
    pub loss: Loss,
}

/// One item of the output.
#[derive(Debug, Clone, Copy)]
pub enum Output<'a> {
    /// An event.
    Event(Event<'a>),
    /// A loss.
    Lost(Lost<'a>),
}
