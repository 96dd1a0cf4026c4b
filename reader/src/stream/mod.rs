//! Pages to a collector: the same drains as a recording, released when the collector has said that
//! they are durable, and never before.
//!
//! [`Streamer`] finds sessions and fills batches; a `Connection` sends them and hears what is
//! durable; `Flights` knows which pages that releases.

mod address;
mod connection;
mod flight;
mod streamer;
mod track;
mod wire;

pub use address::Address;
pub use connection::Introduction;
pub use streamer::{StreamFigures, StreamOptions, Streamer};
