//! Output that is gathered and written in large pieces.

use std::io::{self, Write};

/// Bytes that are gathered before they are written.
const GATHERED_BYTES: usize = 256 << 10;

/// An output, and the bytes that were not written to it yet.
pub(crate) struct Gathered<'w, W> {
    out: &'w mut W,
    bytes: Vec<u8>,
    written: u64,
}

impl<'w, W: Write> Gathered<'w, W> {
    /// Room for what is gathered, and for what one call adds to it.
    pub(crate) fn new(out: &'w mut W) -> Self {
        Self {
            out,
            bytes: Vec::with_capacity(2 * GATHERED_BYTES),
            written: 0,
        }
    }

    /// Where to append.
    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Writes what was gathered, if it is enough for a write.
    #[inline]
    pub(crate) fn write_if_full(&mut self) -> io::Result<()> {
        match self.bytes.len() >= GATHERED_BYTES {
            true => self.write(),
            false => Ok(()),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        self.out.write_all(&self.bytes)?;
        self.written += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    /// Bytes of the whole output so far, gathered ones included.
    pub(crate) fn len(&self) -> u64 {
        self.written + self.bytes.len() as u64
    }

    /// Writes the rest.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.write()?;
        self.out.flush()
    }
}
