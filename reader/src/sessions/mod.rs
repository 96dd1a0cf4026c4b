//! Sessions: where they are, which are wanted, and what one is.
//!
//! The way to a session: [`directories`] and [`pids`] say where to look, [`find`] lists the ring
//! files there as [`found`] files, and [`session`] maps one. [`selection`] does this for a
//! recording, again and again; [`directory_changes`] tells it when reading the directories is worth
//! while, and [`uuid_owners`] keeps sessions that claim one uuid apart.
//!
//! Over a mapped session: [`info`], its figures; [`lifetime`], whether it was read to its end;
//! [`pace`], how long to wait for more; [`control`], requests to its process.
//!
//! What a streamer left for others: [`stream_status`] of a session.
//!
//! About sessions that no longer run: [`notes`], why a process is not traced; [`leases`] and
//! [`clean`], what was removed before it was read, and what may be removed.

pub(crate) mod cgroup;
pub mod clean;
pub mod control;
pub(crate) mod directories;
pub(crate) mod directory_changes;
pub(crate) mod file_id;
pub mod find;
pub(crate) mod found_session;
pub mod info;
pub(crate) mod leases;
pub(crate) mod lifetime;
pub mod notes;
pub(crate) mod pace;
pub(crate) mod pids;
pub mod selection;
pub mod session;
pub(crate) mod stream_status;
pub(crate) mod thread_names;
pub(crate) mod uuid_owners;
