//! The target's memory, through `/proc/PID/mem`.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

/// An open door to a process's memory. It stays that memory's when the process execs.
#[derive(Debug)]
pub(crate) struct Memory {
    file: File,
}

impl Memory {
    pub(crate) fn open(pid: i32) -> io::Result<Self> {
        let path = format!("/proc/{pid}/mem");
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Self { file })
    }

    pub(crate) fn bytes(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }

    pub(crate) fn words<const N: usize>(&self, at: u64) -> io::Result<[u64; N]> {
        let bytes = self.bytes(at, N * 8)?;
        let mut words = [0; N];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        }
        Ok(words)
    }

    pub(crate) fn word(&self, at: u64) -> io::Result<u64> {
        self.words::<1>(at).map(|[word]| word)
    }

    /// A string that ends in zero, of at most 1023 bytes.
    pub(crate) fn text(&self, at: u64) -> Option<String> {
        let mut bytes = vec![0; 1023];
        let count = self.file.read_at(&mut bytes, at).ok()?;
        let text = bytes.get(..count)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// Writes, also where the target itself may not: into its private copy of a page of text.
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }
}
