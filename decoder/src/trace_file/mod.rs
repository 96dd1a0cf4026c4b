//! The model: everything that trace files say, put in order.
//!
//! [`dump`] takes blocks and groups them by session; [`choice`] says which are wanted, and
//! [`session_builder`] puts each together, its schema from [`schema_pieces`]. A [`session`] then has its event types ([`schema`],
//! [`field`], [`functions`]), its clock ([`time`], made of [`clock_parts`] and corrected by
//! [`host_clock`]) and its slots with their pages; [`extent`] says which part of it was read.
//! [`process`] puts the sessions of one process together: one clock, and [`threads`] over all of
//! them; [`tracers`]: the function tracers by name. [`window`] leaves out what is older than the
//! recorded part, [`spans`] finds the finished span around each record ([`finished_spans`]: what is kept of that; [`shared_threads`]: the
//! same for threads with rings in several sessions), [`switched`] what each thread did between two records ([`thread_times`]) and at each moment ([`thread_states`]), and what it was seen waiting for ([`waited_for`], from [`seen_waits`]; the switches are from [`switch_blocks`]), and [`loss`] says how many events are not there and [`why`], [`progress`] which of them may still come, [`resumed`] which pages an earlier part has. [`value`] reads one value out of a payload, `plain` turns its bytes into
//! values of a type of the reader, and [`function_words`] reads the payload of a function record.
//! [`type_ids`] finds the type of a record, [`type_set`] holds those that were met, and
//! [`packed_stream`] keeps the schema as it was written, for pieces that are cut out.

pub(crate) mod choice;
pub(crate) mod clock_parts;
pub(crate) mod dump;
mod extent;
pub(crate) mod field;
pub(crate) mod finished_spans;
pub(crate) mod function_words;
pub(crate) mod functions;
mod host_clock;
pub(crate) mod loss;
pub(crate) mod open_spans;
mod packed_stream;
#[cfg(feature = "bytemuck")]
pub(crate) mod plain;
mod process;
pub(crate) mod progress;
pub(crate) mod resumed;
pub(crate) mod samples;
pub(crate) mod schema;
mod schema_pieces;
mod seen_waits;
pub(crate) mod session;
mod session_builder;
pub(crate) mod shared_threads;
pub(crate) mod spans;
mod switch_blocks;
pub(crate) mod switched;
mod texts;
pub(crate) mod thread_states;
pub(crate) mod thread_times;
mod threads;
pub(crate) mod time;
mod tracers;
mod type_ids;
mod type_set;
pub(crate) mod value;
pub(crate) mod wait_text;
pub(crate) mod waited_for;
pub(crate) mod why;
pub(crate) mod window;
