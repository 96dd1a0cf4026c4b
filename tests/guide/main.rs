//! What the documents show, and installing.
#![forbid(unsafe_code)]

mod documents;
mod install;
