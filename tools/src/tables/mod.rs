//! What commands show as tables, and as JSON with the same figures: spans, calls and events.

pub(crate) mod calls;
pub(crate) mod cover;
pub(crate) mod event_table;
pub(crate) mod figures;
pub(crate) mod function_table;
mod json_row;
pub(crate) mod profile_table;
pub(crate) mod slowest;
pub(crate) mod span_table;
pub(crate) mod summary;
