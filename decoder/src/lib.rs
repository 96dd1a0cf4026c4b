//! Blocks to events: reads dumps, puts sessions, schema and pages together, merges the rings by
//! time, and writes text or JSON. Offline; total on any input: what cannot be used
//! becomes [`Damage`], what is not there becomes [`Lost`].
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut builder = ringmark_decoder::DumpBuilder::new();
//! builder.read("ringmark.rmk", std::fs::File::open("ringmark.rmk")?)?;
//! let dump = builder.finish();
//! let mut writer = ringmark_decoder::TextWriter::new();
//! let mut lines = Vec::new();
//! for item in dump.events() {
//!     writer.write(&item, &mut lines);
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod block_reader;
mod calls;
mod cursor;
mod damage;
mod distance;
mod dump;
pub mod escape;
mod event;
mod field;
mod filter;
mod follow;
mod function_line;
mod functions;
mod gathered;
mod host_clock;
mod input;
mod join;
mod json;
mod loss;
mod merge;
mod number;
mod page;
mod profile;
mod schema;
mod session;
mod spans;
mod stats;
pub mod store;
mod text;
mod time;
mod timestamp;
mod value;
mod verify;
mod window;

pub use block_reader::{Block, BlockReader, Item};
pub use calls::{Call, Calls, Ended, Step};
pub use damage::{Damage, Fault, PageId, looks_like};
pub use dump::{Dump, DumpBuilder};
pub use event::{Event, Lost, Output};
pub use field::Field;
pub use filter::{Filter, FilterError};
pub use follow::Follower;
pub use functions::{Function, FunctionUse, Functions, Module, Tracer};
pub use gathered::Gathered;
pub use json::{JsonWriter, VERSION as JSON_VERSION};
pub use loss::{Loss, Why};
pub use merge::Events;
pub use page::{Page, Summary};
pub use profile::{FunctionTimes, Profile};
pub use schema::{EventType, Schema};
pub use session::{Counters, Session, Slot};
pub use stats::{RingCount, Stats, TypeCount};
pub use store::{IndexBuilder, SegmentIndex};
pub use text::{TextWriter, event_text};
pub use time::SessionClock;
pub use timestamp::{Stamper, TIMESTAMP_BYTES, parse as parse_timestamp};
pub use value::Value;
pub use verify::Verification;
