//! Sessions: where they are, which are wanted, and what one is.
//!
//! From the ground up: `directories` and `pids`, where to look; `file_id` and `found`, a ring file;
//! `session`, one that is mapped, with `info`, `lifetime`, `control` and `pace` over it; `notes` and
//! `find`, what programs left and where their sessions are; `leases` and `clean`, what is removed;
//! `glance` and `selection`, how new sessions of a recording are found; `uuid_owners`, that no two
//! of them bear one name.

pub mod clean;
pub mod control;
pub(crate) mod directories;
pub(crate) mod file_id;
pub mod find;
pub(crate) mod found;
pub(crate) mod glance;
pub mod info;
pub(crate) mod leases;
pub(crate) mod lifetime;
pub mod notes;
pub(crate) mod pace;
pub(crate) mod pids;
pub mod selection;
pub mod session;
pub(crate) mod uuid_owners;
