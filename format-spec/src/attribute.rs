//! Attributes: tag, length, value. They describe sessions, event types and fields.
//!
//! A reader skips a tag that it does not know, so tags can be added without a new version.

use alloc::vec::Vec;
use zerocopy::{FromBytes, IntoBytes};

use crate::align::align8;

layout! {
    /// In front of every attribute's value; zeros follow the value up to a multiple of 8.
    pub struct AttributeHeader: 8 {
        /// See [`tag`].
        0 tag: u16,
        /// Zero.
        2 reserved: u16,
        /// Bytes of the value.
        4 bytes: u32,
    }
}

/// Tags: what an attribute is about. Strings are UTF-8 where their source is; a reader never
/// relies on that.
pub mod tag {
    /// Name of an event type, a field, a function (as in the symbol table), a tracer; path of a
    /// module.
    pub const NAME: u16 = 1;
    /// Target (module path) of an event type.
    pub const TARGET: u16 = 2;
    /// Category of an event type.
    pub const CATEGORY: u16 = 3;
    /// Source file.
    pub const FILE: u16 = 4;
    /// Source line, u32.
    pub const LINE: u16 = 5;
    /// Explanation for people.
    pub const DOC: u16 = 6;
    /// A field: [`crate::schema::FieldEntry`], then its own attributes.
    pub const FIELD: u16 = 7;
    /// Unit of a field: "ns", "bytes", …
    pub const UNIT: u16 = 8;
    /// Label of a value: u64 value, then the text.
    pub const ENUM_LABEL: u16 = 9;
    /// Display base of an integer, u32: 2, 8, 10 or 16.
    pub const DISPLAY_BASE: u16 = 10;
    /// What a field means, u32: see [`crate::schema::semantic`].
    pub const SEMANTIC: u16 = 11;
    /// The value was replaced in the producer.
    pub const REDACTED: u16 = 12;
    /// The functions that a tracer is for, as its user wrote them.
    pub const FILTER: u16 = 13;

    /// Session: service name.
    pub const SERVICE_NAME: u16 = 64;
    /// Session: service version.
    pub const SERVICE_VERSION: u16 = 65;
    /// Session: host name.
    pub const HOST: u16 = 66;
    /// Session: machine id.
    pub const MACHINE_ID: u16 = 67;
    /// Session: container id.
    pub const CONTAINER_ID: u16 = 68;
    /// Session: kernel release.
    pub const KERNEL: u16 = 69;
    /// Session: path of the executable.
    pub const EXECUTABLE: u16 = 70;
    /// Session: build id of the executable, raw bytes. Module: its build id.
    pub const BUILD_ID: u16 = 71;
    /// Session: version of the producing library.
    pub const RINGMARK_VERSION: u16 = 72;
    /// Session: one tag, `key=value`.
    pub const TAG: u16 = 73;
    /// Session: command line, arguments separated by NUL.
    pub const COMMAND_LINE: u16 = 74;
    /// Session: something a person should know ("clock tsc is not invariant: monotonic").
    pub const NOTICE: u16 = 75;
    /// Session: the name of the process (`comm`).
    pub const PROCESS_NAME: u16 = 76;

    /// Stream: the token by which a collector recognizes its streamers.
    pub const TOKEN: u16 = 96;
    /// Stream: most bytes that a collector lets be under way, u64.
    pub const WINDOW: u16 = 97;
    /// Stream: within how long a block is acknowledged as a rule, in ms, u32.
    pub const ACK_WITHIN: u16 = 98;
    /// Stream: within how long everything is acknowledged at the end, in ms, u32.
    pub const END_WITHIN: u16 = 99;
    /// Stream: what an acknowledgement says, u32: see [`crate::stream::ack_level`].
    pub const ACK_LEVEL: u16 = 100;
}

/// Appends one attribute to `out`: header, value, and zeros up to a multiple of 8.
pub fn push(out: &mut Vec<u8>, tag: u16, value: &[u8]) {
    let header = AttributeHeader {
        tag,
        reserved: 0,
        bytes: value.len() as u32,
    };
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(value);
    out.resize(align8(out.len()), 0);
}

/// One attribute as found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// See [`tag`].
    pub tag: u16,
    /// Its bytes.
    pub value: &'a [u8],
}

impl<'a> Attribute<'a> {
    /// The value as a little-endian u32; `None`: it is not 4 bytes long.
    #[must_use]
    pub fn as_u32(&self) -> Option<u32> {
        self.value.try_into().ok().map(u32::from_le_bytes)
    }

    /// The value as a little-endian u64; `None`: it is not 8 bytes long.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.value.try_into().ok().map(u64::from_le_bytes)
    }
}

/// Walks attributes; ends at the first one that does not fit, then [`Attributes::rest`] is not
/// empty.
#[derive(Debug, Clone)]
pub struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// The attributes in `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes that were not walked; empty once every attribute has been given.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Value of the first attribute with this tag among those that were not walked; `None`: there
    /// is none.
    #[must_use]
    pub fn find(mut self, tag: u16) -> Option<&'a [u8]> {
        self.find_map(|a| (a.tag == tag).then_some(a.value))
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Attribute<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (header, after) = AttributeHeader::read_from_prefix(self.rest).ok()?;
        let value = after.get(..header.bytes as usize)?;
        let padded = align8(header.bytes as usize).min(after.len());
        self.rest = &after[padded..];
        Some(Attribute {
            tag: header.tag,
            value,
        })
    }
}
