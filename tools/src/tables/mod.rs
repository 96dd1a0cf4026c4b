//! What commands show as tables, and as JSON with the same figures: calls and functions.

pub(crate) mod calls;
pub(crate) mod cover;
pub(crate) mod event_table;
pub(crate) mod function_table;
mod json_row;
pub(crate) mod profile_table;
pub(crate) mod summary;
