//! The schema stream: append-only entries that say what the records mean.
//!
//! An entry has a fixed part, then attributes. A reader skips kinds of entries and attributes that
//! it does not know, so both can be added later.

layout! {
    /// In front of every schema entry. The entry's attributes end at `bytes`.
    pub struct EntryHeader: 16 {
        /// Size of the whole entry, this header included; a multiple of 8, at least 16.
        0 bytes: u32,
        /// See [`entry_kind`]; unknown kinds are skipped by `bytes`.
        4 kind: u16,
        /// Bytes of the fixed part after this header; attributes follow it.
        6 fixed_bytes: u16,
        /// What the entry describes: EVENT: its type id; else see [`entry_kind`].
        8 id: u32,
        /// Zero.
        12 reserved: u32,
    }
}

/// Kinds of schema entries.
pub mod entry_kind {
    /// An event type: [`super::EventEntry`], then attributes.
    pub const EVENT: u16 = 1;
    /// A loaded program or shared object: [`crate::function::ModuleEntry`], then attributes.
    pub const MODULE: u16 = 2;
    /// A function: [`crate::function::FunctionEntry`], then attributes.
    pub const FUNCTION: u16 = 3;
    /// Types of function records: [`crate::function::FunctionTypesEntry`].
    pub const FUNCTION_TYPES: u16 = 4;
    /// A tracer: [`crate::function::TracerEntry`], then attributes.
    pub const TRACER: u16 = 5;
}

layout! {
    /// Fixed part of an EVENT entry.
    pub struct EventEntry: 8 {
        /// See [`Level`].
        0 level: u8,
        /// See [`Shape`].
        1 shape: u8,
        /// Zero.
        2 flags: u16,
        /// Bytes of the payload's fixed part; strings and byte slices follow it.
        4 fixed_payload_bytes: u32,
    }
}

layout! {
    /// Start of a FIELD attribute's value; the field's own attributes follow.
    pub struct FieldEntry: 16 {
        /// See [`Kind`].
        0 kind: u8,
        /// Bit 0: the value may be absent ([`OPTIONAL`]).
        1 flags: u8,
        /// 0: one value; n: an array of n values.
        2 count: u16,
        /// Offset in the payload.
        4 offset: u32,
        /// Bytes of one value in the fixed part.
        8 bytes: u32,
        /// Zero.
        12 reserved: u32,
    }
}

/// FieldEntry flag: `bytes` is twice the size of the kind. The value, then its presence, an
/// unsigned number of that size: 0 if there is no value.
pub const OPTIONAL: u8 = 1;

numbered! {
    /// Severity of an event. The order is that of `tracing`, the most severe first.
    Level {
        /// Something failed.
        Error = 1 "error",
        /// Something is suspicious.
        Warn = 2 "warn",
        /// Something a person may want to know.
        Info = 3 "info",
        /// For people who look for a fault.
        Debug = 4 "debug",
        /// Everything.
        Trace = 5 "trace",
    }
}

numbered! {
    /// What kind of thing a record of this type says.
    Shape {
        /// Happened at its tick.
        Instant = 1 "event",
        /// A finished span: its tick is the end; the field with semantic DURATION says how long.
        Span = 2 "span",
        /// A span that was made: semantics SPAN_ID, PARENT_ID.
        SpanNew = 3 "span_new",
        /// Entered by this thread: SPAN_ID.
        SpanEnter = 4 "span_enter",
        /// Left by this thread: SPAN_ID.
        SpanExit = 5 "span_exit",
        /// Closed for ever: SPAN_ID.
        SpanClose = 6 "span_close",
        /// Late values of a span: SPAN_ID.
        SpanRecord = 7 "span_record",
        /// One span follows from another: SPAN_ID, PARENT_ID.
        SpanFollows = 8 "span_follows",
        /// A value over time.
        Counter = 9 "counter",
        /// Ties events of different threads together: the field with semantic FLOW.
        Flow = 10 "flow",
    }
}

impl Shape {
    /// Whether records of this shape come only for spans that were on when they were made. No pattern
    /// and no filter speaks of them: they go on until the span ends. Else a reader would find a thread in a span that
    /// ended long ago.
    #[must_use]
    pub const fn has_no_switch(self) -> bool {
        self.is_part_of_span() && !matches!(self, Self::SpanNew)
    }

    /// Whether an event of this shape is a part of a span's life, and no event of its own.
    #[must_use]
    pub const fn is_part_of_span(self) -> bool {
        matches!(
            self,
            Self::SpanNew
                | Self::SpanEnter
                | Self::SpanExit
                | Self::SpanClose
                | Self::SpanRecord
                | Self::SpanFollows
        )
    }
}

numbered! {
    /// How a field's bytes are read. Integers little-endian, two's complement.
    Kind {
        /// Unsigned, 1 byte.
        U8 = 1 "u8",
        /// Unsigned, 2 bytes.
        U16 = 2 "u16",
        /// Unsigned, 4 bytes.
        U32 = 3 "u32",
        /// Unsigned, 8 bytes.
        U64 = 4 "u64",
        /// Unsigned, 16 bytes.
        U128 = 5 "u128",
        /// Signed, 1 byte.
        I8 = 6 "i8",
        /// Signed, 2 bytes.
        I16 = 7 "i16",
        /// Signed, 4 bytes.
        I32 = 8 "i32",
        /// Signed, 8 bytes.
        I64 = 9 "i64",
        /// Signed, 16 bytes.
        I128 = 10 "i128",
        /// IEEE 754, 4 bytes.
        F32 = 11 "f32",
        /// IEEE 754, 8 bytes.
        F64 = 12 "f64",
        /// 1 byte, 0 or 1.
        Bool = 13 "bool",
        /// 4 bytes, a Unicode scalar value.
        Char = 14 "char",
        /// 8 bytes: u32 offset in the payload, u32 bytes; UTF-8.
        Str = 15 "str",
        /// 8 bytes: u32 offset in the payload, u32 bytes.
        Bytes = 16 "bytes",
    }
}

impl Kind {
    /// Bytes of one value in the payload's fixed part: 1, 2, 4, 8 or 16.
    #[must_use]
    pub const fn fixed_bytes(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 | Self::Char => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::Str | Self::Bytes => 8,
            Self::U128 | Self::I128 => 16,
        }
    }
}

/// Value of a field with semantic SPAN_ID or PARENT_ID: in no span, whatever its thread is in. 0 says nothing.
pub const NO_SPAN: u64 = u64::MAX;

/// Values of the SEMANTIC attribute.
pub mod semantic {
    /// Duration in ticks of the session's clock.
    pub const DURATION: u32 = 1;
    /// Flow id.
    pub const FLOW: u32 = 2;
    /// Trace id.
    pub const TRACE_ID: u32 = 3;
    /// Span id.
    pub const SPAN_ID: u32 = 4;
    /// Span id of the parent (or of the span that is followed).
    pub const PARENT_ID: u32 = 5;
    /// Address in the program.
    pub const ADDRESS: u32 = 6;
    /// The value of a counter.
    pub const COUNTER: u32 = 7;
}
