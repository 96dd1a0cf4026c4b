//! A window over bytes that only come forward. Blocks are read through it, from files and pipes
//! alike.

use std::io::{self, Read};

const CHUNK: usize = 1 << 16;

/// A growing and sliding window over a [`Read`].
pub(crate) struct ByteWindow<R> {
    input: R,
    buffer: Vec<u8>,
    start: usize,
    /// Offset of `start` in the input.
    offset: u64,
    ended: bool,
}

impl<R: Read> ByteWindow<R> {
    /// `offset`: where `input` begins, as messages and pages say it.
    pub(crate) fn new(input: R, offset: u64) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            start: 0,
            offset,
            ended: false,
        }
    }

    /// Offset of the window's first byte in the input.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// What is in the window; call [`Self::fill`] first.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Reads until at least `wanted` bytes are in the window or the input ends; returns what is
    /// there. Memory grows with what was read, never with what was only declared.
    pub(crate) fn fill(&mut self, wanted: usize) -> io::Result<usize> {
        while self.bytes().len() < wanted && !self.ended {
            self.make_room();
            self.read_more(wanted)?;
        }
        Ok(self.bytes().len())
    }

    /// Drops bytes that were skipped, once they are half of the buffer: each byte is moved only a
    /// constant number of times.
    fn make_room(&mut self) {
        if self.start > 0 && self.start * 2 >= self.buffer.len() {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
    }

    /// Reads once. An interrupted read is repeated; an error or an empty read ends the input.
    fn read_more(&mut self, wanted: usize) -> io::Result<()> {
        let missing = wanted - self.bytes().len();
        let old = self.buffer.len();
        self.buffer
            .resize(old + missing.clamp(CHUNK, 16 * CHUNK), 0);
        let read = loop {
            match self.input.read(&mut self.buffer[old..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(old + *read.as_ref().unwrap_or(&0));
        self.ended = matches!(read, Ok(0) | Err(_));
        read.map(|_| ())
    }

    /// Drops `bytes` bytes (at most what is there) from the window's front.
    pub(crate) fn skip(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes().len());
        self.start += bytes;
        self.offset += bytes as u64;
    }
}
