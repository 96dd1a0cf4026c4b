//! Small files of `/proc`, `/sys` and `/etc`: one open, one read, no questions about their size.
//!
//! Files of `/proc` state a size of 0 and are made at the read. One read gives a content of one
//! moment; two could give parts of two.

use std::fs::File;
use std::io::{self, Read};

/// Most bytes that are read: a page, which is what the kernel makes of such a file at once.
pub const BYTES_MAX: usize = 4096;

/// The first [`BYTES_MAX`] bytes of a file, as one read gives them.
///
/// # Errors
/// The error of `open` or `read`: for `/proc/PID/…` usually that the process is gone.
pub fn read(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; BYTES_MAX];
    let length = File::open(path)?.read(&mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}

/// The same as text without white space at its ends; empty if it cannot be read or is not UTF-8.
#[must_use]
pub fn text(path: &str) -> String {
    let bytes = read(path).unwrap_or_default();
    core::str::from_utf8(&bytes)
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}
