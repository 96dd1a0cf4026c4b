//! Loading the function tracer into a running program.
#![forbid(unsafe_code)]

mod attach;
mod attach_tool;
