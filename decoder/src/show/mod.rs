//! Events and calls as output: lines of text, and JSON objects.

mod account;
pub(crate) mod call_graph;
pub(crate) mod call_json;
pub(crate) mod function_line;
pub(crate) mod json;
mod shared;
pub(crate) mod text;
