//! Pages to a collector: the same drains as a recording, released when the collector has said that
//! they are durable, and never before.
//!
//! [`Streamer`] finds sessions; each `Track` fills batches, which go out through `Outgoing`: a `Connection`
//! sends them and hears what is durable, `Flights` knows which pages that releases. What a
//! collector does not take waits in a `Spill`.

mod address;
mod connection;
mod credentials;
mod tls_socket;
mod tls_errors;
mod in_flight;
mod outgoing;
mod positions;
mod secret_file;
mod socket;
mod spill;
mod status;
mod streamer;
mod streamed_session;
mod wire;
mod zero_copy;

pub use address::{Address, AddressError};
pub use connection::Introduction;
pub use credentials::{Credentials, hosts_of};
pub use tls_errors::explain;
pub use secret_file::{CredentialsError, read_token};
pub use spill::SpillOptions;
pub use status::StreamStatus;
pub use streamer::{StreamFigures, StreamOptions, Streamer};
#[cfg(planted)]
pub use zero_copy::RELEASE_WHEN_SENT;
