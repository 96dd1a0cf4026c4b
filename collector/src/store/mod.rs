//! The store: one directory for each day, service and host; in it the segments of sessions, each a
//! dump.
//!
//! `ROOT/2026-11-21/SERVICE/HOST/SESSION.N.rmk`. A session stays in the directory where it began.
//! What a file holds is the truth: positions are found again by reading it, or by its index, which
//! is made from it when it is closed.
//!
//! The way of a block: `sessions` (the [`Store`]) finds its session, in memory or in its files
//! (`recover`). The `session` checks the block against its `session_contents` (`positions` says which
//! pages are there) and appends it to its `segments`: to the present `segment`, which is begun where
//! `session_directories` says. `losses` counts what never came. `unsynced` remembers what `durable` has to sync before it may be
//! acknowledged.
//!
//! Where collectors share a store of objects, `object_sessions` finds the session instead, and the blocks go
//! through `objects`.
//!
//! Care for what is stored: `index`, made of closed segments; `retention`, which removes the
//! oldest; `damaged`, what is not blocks; [`upkeep`], what people do by hand, after a look at [`usage`]. The ground: `store_directory` and `identity`, the
//! directory and whose it is; `options`, `budget` and `context`, what all sessions share;
//! `room`, whether there is any, and `free_space`; `known_session`, what a streamer is told; `turns`, one thread at a time for a session; `error`.

mod budget;
mod context;
mod damaged;
mod durable;
mod error;
mod free_space;
mod hours;
mod identity;
pub mod index;
mod known_session;
mod losses;
pub mod object_sessions;
pub mod objects;
mod options;
mod positions;
mod recover;
mod retention;
mod room;
mod segment;
mod segments;
mod session;
mod session_contents;
mod session_directories;
mod sessions;
#[cfg(feature = "models")]
pub(crate) mod stepped_objects;
mod store_directory;
mod turns;
mod unsynced;
pub mod upkeep;
pub mod usage;

pub use durable::make_durable;
pub use error::{NotAStore, SessionFault, StoreError};
pub use identity::{WITHIN as TAKEN_WITHIN, is_taken};
pub use known_session::KnownSession;
pub use options::{MinFree, Retention, StoreOptions, SyncMode};
pub use retention::Now;
pub use session::{SharedSession, StoredSession};
pub use sessions::Store;
pub use store_directory::DirectoryOptions;
