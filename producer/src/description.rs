//! Event types: name, fields and level of what a call site emits, and whether it is enabled.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{self, Relaxed};

pub use ringmark_format::schema::Shape;
pub(crate) use ringmark_format::schema::{Kind, Level, semantic};

/// A field of an event type: what a record holds under a name.
///
/// ```
/// use ringmark::Event;
/// use ringmark::client::Field;
///
/// #[derive(Event)]
/// #[repr(C)]
/// struct Answer {
///     #[event(unit = "ns")]
///     latency: u64,
/// }
///
/// let field: &Field = &Answer::FIELDS[0];
/// assert_eq!((field.name, field.unit), ("latency", "ns"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The name under which readers show the value.
    pub name: &'static str,
    /// How the value's bytes are read, and where they are.
    pub place: Place,
    /// What the value means to readers, a number of `ringmark_format::schema::semantic`; 0: nothing
    /// special.
    pub semantic: u32,
    /// The unit that readers show after the value, or empty.
    pub unit: &'static str,
    /// Whether the value was replaced before it was recorded.
    pub redacted: bool,
}

impl Field {
    /// First field of a finished span.
    pub(crate) const DURATION: Self = Self {
        name: "duration",
        place: Place {
            kind: Kind::U64,
            count: 0,
            offset: 0,
            optional: false,
        },
        semantic: semantic::DURATION,
        unit: "ticks",
        redacted: false,
    };
}

/// Kind of a field's value, and its place in the payload.
///
/// ```
/// use ringmark::Kind;
/// use ringmark::client::Place;
///
/// let three_ports = Place { kind: Kind::U16, count: 3, offset: 8, optional: false };
/// assert_eq!(three_ports.bytes(), 6);
/// assert_eq!(Place::of::<[u16; 3]>(8), three_ports);
/// ```
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

/// An event type: the facts about one place in the program, the same for all its events.
///
/// ```
/// use ringmark::Event;
/// use ringmark::client::EventType;
///
/// #[derive(Event)]
/// #[repr(C)]
/// #[event(category = "http")]
/// struct Answer {}
///
/// let facts: EventType = Answer::event();
/// assert_eq!((facts.name, facts.category), ("Answer", "http"));
/// assert!(facts.file.ends_with(".rs") && facts.line > 0);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct EventType {
    /// Name, such as `request.done`.
    pub name: &'static str,
    /// Target, which filters compare; by default the module's path.
    pub target: &'static str,
    /// Category, or empty.
    pub category: &'static str,
    /// How important the events are; filters compare it.
    pub level: Level,
    /// What a record stands for: an instant, a span, a counter, a flow.
    pub shape: Shape,
    /// Source file, or empty.
    pub file: &'static str,
    /// Line in that file, from 1; 0 if there is no file.
    pub line: u32,
    /// The word that says whether the type is enabled; it also tells types apart.
    pub state: &'static TypeState,
}

/// An event type with its fields, as a library registers it.
///
/// ```
/// use ringmark::client::{Description, EventType, Shape, TypeState};
/// use ringmark::{Level, Session};
///
/// static STATE: TypeState = TypeState::new();
/// let event = EventType {
///     name: "library.start",
///     target: "library",
///     category: "",
///     level: Level::Info,
///     shape: Shape::Instant,
///     file: "",
///     line: 0,
///     state: &STATE,
/// };
/// let _session = Session::builder().start().expect("a session");
/// Description { event, fields: &[], fixed_bytes: 0 }.register();
/// assert_ne!(STATE.enabled(), 0);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Description<'a> {
    /// The facts about the type.
    pub event: EventType,
    /// The fields, in ascending order of their offsets.
    pub fields: &'a [Field],
    /// Bytes of the payload's fixed part, where the fields lie.
    pub fixed_bytes: u32,
}

/// The word that an event looks at: its type's id while the type is enabled, else 0.
///
/// One static word for each event type. All zeros: disabled, without an id.
///
/// ```
/// use ringmark::client::TypeState;
///
/// static STATE: TypeState = TypeState::new();
/// assert_eq!(STATE.enabled(), 0);
/// ```
#[derive(Debug, Default)]
#[repr(C)]
pub struct TypeState {
    enabled: AtomicU32,
    id: AtomicU32,
}

impl TypeState {
    /// Offset of that word in the struct, in bytes, for code that is not Rust.
    pub const ENABLED_OFFSET: usize = core::mem::offset_of!(TypeState, enabled);

    /// A disabled type without an id.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            enabled: AtomicU32::new(0),
            id: AtomicU32::new(0),
        }
    }

    /// The type's id if it is enabled, else 0.
    ///
    /// Whoever reads a record of the type finds its schema: the id that is loaded here stands in the header that the
    /// event commits. No processor lets a store overtake the load that it takes its value from.
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
        // [L4]: no event has the type before its schema is there.
        self.enabled
            .store(if on { self.id() } else { 0 }, Ordering::Release);
    }
}

/// When an event happened.
///
/// ```
/// use ringmark::client::Now;
///
/// let earlier = Now::At(ringmark::ticks());
/// assert_ne!(earlier, Now::Clock);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Now {
    /// At this moment: the session's clock is read.
    Clock,
    /// At this tick of the session's clock.
    At(u64),
}
