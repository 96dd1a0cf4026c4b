//! What other viewers are given.
#![forbid(unsafe_code)]

#[path = "../../decoder/tests/common/mod.rs"]
mod common;
mod ctf;
mod known;
mod many_spans;
mod memory;
mod nested_spans;
mod page;
mod page_speed;
mod perfetto;
mod pictured;
mod speed;
