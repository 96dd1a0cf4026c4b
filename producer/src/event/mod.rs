//! From a call site to a committed record. The files in the order of an event's way:
//!
//! - what a program writes: [`macros`] for arguments, [`typed`] for structs;
//! - what the schema holds of it: `crate::description`, which [`callsite`] makes from a place in
//!   the program;
//! - what is written: [`value`] for one argument, [`text`] for one that is formatted, [`fields`] for
//!   all of them, [`snapshot`] for arguments that are kept until a call ends, `plain` for types of
//!   the program's own;
//! - what a filter by spans looks at: `seen`;
//! - the path itself: [`emit`], which reserves, writes and commits;
//! - records that belong together: [`span`], [`span_records`] and [`async_span`];
//! - [`entry`]: the functions that the macros call;
//! - [`panic_record`]: the record of a panic, which no call site emits.

mod macros;
pub(crate) mod typed;

pub(crate) mod callsite;

pub(crate) mod fields;
#[cfg(feature = "bytemuck")]
pub(crate) mod plain;
pub(crate) mod snapshot;
pub(crate) mod text;
pub(crate) mod value;

pub(crate) mod emit;
pub(crate) mod seen;

pub(crate) mod async_span;
pub(crate) mod span;
pub(crate) mod span_records;

pub(crate) mod entry;

pub(crate) mod panic_record;
