//! What the fuzz targets do with an input. `tests/hostile/fuzz_corpus.rs` does the same with the corpus,
//! without a fuzzer.
#![forbid(unsafe_code)]

pub mod cli_patterns;
pub mod dump_blocks;
pub mod repair;
pub mod ring_image;
pub mod schema;
pub mod stream;
