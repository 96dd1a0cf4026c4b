//! What other viewers are given.
#![forbid(unsafe_code)]

#[path = "../session/c/mod.rs"]
#[expect(dead_code, reason = "compilers other than gcc")]
mod c;
#[path = "../../decoder/tests/common/mod.rs"]
mod common;
mod ctf;
mod known;
mod many_spans;
mod memory;
mod nested_spans;
mod otlp;
mod outputs;
mod page;
mod page_speed;
mod perfetto;
mod pictured;
mod shown_alike;
mod shown_states;
mod speed;
