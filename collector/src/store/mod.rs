//! The store: one directory per day, service and host; in it the segments of sessions, each a dump.
//!
//! `ROOT/2026-11-21/SERVICE/HOST/SESSION.N.rmk`. A session stays in the directory where it began.
//! What a file holds is the truth: positions are found again by reading it, or by its index, which is
//! made from it when it is closed.
//!
//! From the ground up: `error`; `identity` and `place`, the directory; `name` and `index`, the
//! files in it; `options`, `budget` and `context`, what sessions share; `known`, `positions`, `segment` and
//! `unsynced`, of which a `session` consists; `durable`, `recover` and `retention`, what is done
//! with sessions and segments; `sessions`, the [`Store`].

mod budget;
mod context;
mod damaged;
mod durable;
mod error;
mod identity;
pub mod index;
mod known_session;
mod options;
mod positions;
mod recover;
mod retention;
mod segment;
mod session;
mod session_directories;
mod sessions;
mod store_directory;
mod unsynced;

pub use durable::make_durable;
pub use error::StoreError;
pub use known_session::Known;
pub use options::{Retention, StoreOptions, Sync};
pub use retention::Now;
pub use session::{Shared, StoredSession};
pub use sessions::Store;
pub use store_directory::DirectoryOptions;
