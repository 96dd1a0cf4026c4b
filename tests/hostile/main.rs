//! Files and peers that are damaged or mean harm.
#![forbid(unsafe_code)]

mod access;
#[path = "../../fuzz/src/lib.rs"]
#[allow(dead_code, unreachable_pub, reason = "a crate of its own in fuzz/")]
mod bodies;
#[path = "../../decoder/tests/common/mod.rs"]
mod common;
#[path = "../../export/tests/corpus/mod.rs"]
mod corpus;
mod damage;
mod fuzz_corpus;
mod hostile;
mod hostile_process;
mod hostile_texts;
mod linear;
mod truncate;

// The bodies of the fuzz targets name each other so.
use bodies::{dump_blocks, repair};
