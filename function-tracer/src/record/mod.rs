//! From a call to its records: entry → open call → return. The straight line is assembly (see
//! `arch`); everything else comes here.

mod by_type;
pub(crate) mod callbacks;
pub(crate) mod nodes;
pub(crate) mod open_calls;
mod own_stack;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod profile_tables;
pub(crate) mod slow;
pub(crate) mod triggers;
pub(crate) mod types;
pub(crate) mod unwritten;
