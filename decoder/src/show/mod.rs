//! Events and calls as output: lines of text, and JSON objects.

mod account;
pub(crate) mod call_graph;
pub(crate) mod call_json;
mod call_line;
mod field_pieces;
pub(crate) mod function_line;
pub(crate) mod json;
pub(crate) mod json_args;
mod json_keys;
mod open_spans;
mod open_spans_json;
mod shared;
pub(crate) mod text;
pub(crate) mod unplaced;
pub(crate) mod word_forms;
