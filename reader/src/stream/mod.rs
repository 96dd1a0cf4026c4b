//! Streams: pages sent to a collector, and released once it has said that they are durable.
//!
//! The way of a page: [`Streamer`] finds sessions. Each `streamed_session` fills batches from its
//! drain and hands them to `outgoing`, which sends them over a `connection` and notes them as
//! `in_flight`. The connection turns messages into bytes for the `wire`, and that writes them to a
//! `socket`, plain or through TLS (`tls_socket`). When the collector acknowledges bytes, the
//! batches in flight say which pages that releases.
//!
//! A page takes another way while the collector is away or slow: to a file of the `spill`, which
//! releases it at once, and later from there to the connection. A page may also go from the ring
//! file to the socket without a copy (`zero_copy`).
//!
//! The host remembers: `ledger` keeps the books of a session over all connections and collectors, of
//! what was acknowledged (`delivered`) and of what will never come (`gone`). For a session in overwrite
//! mode, `acked_file` keeps the first on disk; the second is written beside pages that wait (`spilled_gone`). A session that its collector knows as another host's
//! goes on under `own_uuid`. `terms` are what a collector says of its acknowledgements.
//!
//! `credentials` are read again with each connection, `expiry` says when they end, `figures` are for
//! monitoring.

mod acked_file;
mod address;
mod connection;
mod credentials;
mod delivered;
mod expiry;
mod figures;
mod gone;
mod in_flight;
mod ledger;
#[doc(hidden)]
pub mod machines;
mod outgoing;
mod own_uuid;
mod peer_certificate;
mod positions;
mod rate_limit;
mod secret_file;
mod socket;
mod spill;
mod spilled_gone;
mod streamed_session;
mod streamer;
mod terms;
mod tls_errors;
mod tls_socket;
mod wire;
mod zero_copy;

pub use address::{Address, AddressError};
pub use connection::Introduction;
pub use credentials::{Credentials, Side, hosts_of};
pub use expiry::{Expiry, ExpiryWarnings};
pub use figures::StreamFigures;
pub use peer_certificate::PeerCertificate;
pub use secret_file::{CredentialsError, read_token};
pub use spill::SpillOptions;
pub use streamer::{StreamOptions, Streamer, Upload};
pub use tls_errors::explain;
