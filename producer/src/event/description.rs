//! What a program says about one of its event types.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

pub(crate) use ringmark_format::schema::{Kind, Level, Shape, semantic};

/// A field of an event type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// How its bytes are read, and where they are.
    pub place: Place,
    /// What it means; 0: nothing special. See [`semantic`].
    pub semantic: u32,
    /// Unit, or empty.
    pub unit: &'static str,
    /// Whether its value was replaced before it was recorded.
    pub redacted: bool,
}

/// Kind and place of a field in the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// How one value's bytes are read.
    pub kind: Kind,
    /// 0: one value; n: an array of n.
    pub count: u16,
    /// Offset in the payload, in bytes.
    pub offset: u32,
    /// Whether the value may be absent: it has twice its size, and its second half is 1 if the
    /// value is there, 0 if not. Not for arrays.
    pub optional: bool,
}

impl Place {
    /// Bytes of all values in the payload's fixed part.
    #[must_use]
    pub const fn bytes(&self) -> u32 {
        let values = if self.count == 0 {
            1
        } else {
            self.count as u32
        };
        values * self.kind.fixed_bytes() as u32 * if self.optional { 2 } else { 1 }
    }
}

/// An event type: static facts about one place in the program.
#[derive(Debug, Clone, Copy)]
pub struct EventType {
    /// Name, such as `request.done`.
    pub name: &'static str,
    /// Target: the module, unless the program says otherwise.
    pub target: &'static str,
    /// Category, or empty.
    pub category: &'static str,
    /// Level.
    pub level: Level,
    /// What its records say.
    pub shape: Shape,
    /// Source file.
    pub file: &'static str,
    /// Source line.
    pub line: u32,
    /// Whether it is on, and its number.
    pub state: &'static TypeState,
}

/// An event type with its fields, lent for the time of a call.
#[derive(Debug, Clone, Copy)]
pub struct Description<'a> {
    /// The facts.
    pub event: EventType,
    /// Its fields.
    pub fields: &'a [Field],
    /// Bytes of the payload's fixed part.
    pub fixed_bytes: u32,
}

/// The word that an event looks at: its type id if it is on, else 0. All zeros: off, no id.
#[derive(Debug, Default)]
#[repr(C)]
pub struct TypeState {
    enabled: AtomicU32,
    id: AtomicU32,
}

impl TypeState {
    /// Where that word is, for code that is not Rust.
    pub const ENABLED_OFFSET: usize = core::mem::offset_of!(TypeState, enabled);

    /// Off, no id.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            enabled: AtomicU32::new(0),
            id: AtomicU32::new(0),
        }
    }

    /// The type id if the type is on, else 0.
    #[inline(always)]
    #[must_use]
    pub fn enabled(&self) -> u32 {
        self.enabled.load(Relaxed)
    }

    /// The type id in this session; 0: not registered.
    pub(crate) fn id(&self) -> u32 {
        self.id.load(Relaxed)
    }

    pub(crate) fn set_id(&self, id: u32) {
        self.id.store(id, Relaxed);
    }

    pub(crate) fn enable(&self, on: bool) {
        self.enabled.store(if on { self.id() } else { 0 }, Relaxed);
    }
}

/// When an event happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Now {
    /// Now: the session's clock is read.
    Clock,
    /// At this tick of the session's clock.
    At(u64),
}
