//! Events as output: lines of text, and JSON objects.

pub(crate) mod function_line;
pub(crate) mod json;
pub(crate) mod text;
