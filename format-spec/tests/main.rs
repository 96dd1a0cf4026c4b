//! The format: its encodings, its vectors, its document.

mod block_at;
mod codec;
mod independent;
#[cfg(feature = "codec")]
mod kept_vectors;
mod magic;
mod session_text;
mod spec_tables;
mod spec_text;
#[cfg(feature = "codec")]
mod stream_vectors;
mod tick_vectors;
mod tracer_text;
