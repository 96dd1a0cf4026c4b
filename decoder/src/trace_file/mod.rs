//! The model: everything that trace files say, put in order.
//!
//! [`dump`] takes blocks and groups them by session; [`choice`] says which are wanted. Each [`session`] then has its event types
//! ([`schema`], [`field`], [`functions`]), its clock ([`time`], corrected by [`host_clock`]) and
//! its slots with their pages. [`process`] puts the sessions of one process together: one clock,
//! and [`threads`] over all of them. [`window`] leaves out what is older than the recorded part,
//! [`spans`] finds the finished span around each record, and [`loss`] says how many events are not
//! there. [`value`] reads one value out of a payload, `plain` turns its bytes into values of a type
//! of the reader, and [`function_words`] reads the payload of a function record.

pub(crate) mod choice;
pub(crate) mod dump;
pub(crate) mod field;
pub(crate) mod function_words;
pub(crate) mod functions;
mod host_clock;
pub(crate) mod loss;
pub(crate) mod open_spans;
#[cfg(feature = "bytemuck")]
pub(crate) mod plain;
mod process;
pub(crate) mod schema;
pub(crate) mod session;
pub(crate) mod spans;
mod threads;
pub(crate) mod time;
pub(crate) mod value;
mod window;
