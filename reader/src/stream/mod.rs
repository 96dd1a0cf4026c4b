//! Pages to a collector: the same drains as a recording, released when the collector has said that
//! they are durable, and never before.
//!
//! [`Streamer`] finds sessions; each `Track` fills batches, which go their `Way`: a `Connection`
//! sends them and hears what is durable, `Flights` knows which pages that releases. What a
//! collector does not take waits in a `Spill`.

mod address;
mod blocks;
mod connection;
mod flight;
mod spill;
mod streamer;
mod track;
mod way;
mod wire;

pub use address::Address;
pub use connection::Introduction;
pub use spill::SpillOptions;
pub use streamer::{StreamFigures, StreamOptions, Streamer};
