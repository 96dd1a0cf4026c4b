//! The file of a session, and the process that writes it.

pub mod all_lease;
pub mod clean;
pub mod clock;
pub mod guard;
pub mod identity;
pub mod lock;
pub mod mapping;
pub mod raw;
mod remains;
pub mod removals;
pub mod ring_file;
pub mod session_dir;
pub mod small_file;
