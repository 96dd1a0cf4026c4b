//! Bytes become checked blocks, and blocks become pages; what fails its check becomes damage.
//!
//! 1. [`byte_window`] slides a window over the bytes of a file or a pipe.
//! 2. [`block_reader`] finds the blocks in it and opens containers.
//! 3. [`page`] checks the content of a PAGE block; [`walk`] goes over its records. [`content`] says
//!    where the bytes of a page stay, [`type_bits`] which types may be in it.
//! 4. [`join`] makes one page out of two copies.
//!
//! [`damage`] says what could not be used, and where it stands; [`holes`] finds files that are nearly all holes.

pub(crate) mod block_reader;
mod byte_window;
pub(crate) mod content;
pub(crate) mod damage;
pub(crate) mod holes;
pub(crate) mod join;
pub(crate) mod page;
pub(crate) mod type_bits;
pub(crate) mod walk;
