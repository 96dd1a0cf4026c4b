//! What commands show as tables, and as JSON with the same figures: spans, calls, events, sessions
//! and hosts.

pub(crate) mod change_table;
pub(crate) mod chosen_table;
pub(crate) mod cover;
pub(crate) mod event_table;
pub(crate) mod filling;
pub(crate) mod host_table;
mod json_row;
pub(crate) mod path_table;
pub(crate) mod profile_table;
pub(crate) mod ran_table;
pub(crate) mod ring_table;
pub(crate) mod session_table;
pub(crate) mod slowest;
pub(crate) mod span_table;
pub(crate) mod state_table;
pub(crate) mod summary;
pub(crate) mod time_table;
