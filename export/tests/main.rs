//! What viewers are given.

mod apart;
#[path = "../../decoder/tests/common/mod.rs"]
mod common;
mod corpus;
mod folded;
mod hostile;
mod html;
mod order;
mod packets;
mod page;
mod size;
mod spans;
