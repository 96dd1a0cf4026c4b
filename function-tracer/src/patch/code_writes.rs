//! The only writes into code.
//!
//! The pages are made writable for one batch and get their old protection back at its end. Where
//! a policy forbids memory that is writable and executable at once, even for a moment, the bytes
//! go through `/proc/self/mem`, which is slower and needs no protection changed.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::io::Errno;
use rustix::mm::{MprotectFlags, mprotect};

use super::PAGE_BYTES;
use crate::arch;
use crate::sites::loader::{Held, Segment};

/// Code that may be written to. Closes when dropped.
pub(super) struct Window<'lock> {
    open: Vec<(Range<u64>, MprotectFlags)>,
    /// Set where the pages could not be made writable.
    memory: Option<File>,
    _held: &'lock Held<'lock>,
}

impl<'lock> Window<'lock> {
    /// Opens all of `places` that lie in executable `segments`.
    pub(super) fn open(
        held: &'lock Held<'lock>,
        segments: &[Segment],
        places: impl Iterator<Item = Range<u64>> + Clone,
    ) -> io::Result<Self> {
        let mut window = Self {
            open: Vec::new(),
            memory: None,
            _held: held,
        };
        for segment in segments.iter().filter(|segment| segment.is_executable) {
            let inside = places
                .clone()
                .filter(|place| segment.holds(place.start, place.end - place.start));
            let span = inside.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
            let Some(span) = span else { continue };
            let pages = pages_of(&span);
            match protect(&pages, protection(segment) | MprotectFlags::WRITE) {
                Ok(()) => window.open.push((pages, protection(segment))),
                Err(Errno::ACCESS | Errno::PERM) => {
                    let memory = OpenOptions::new()
                        .read(true)
                        .write(true)
                        .open("/proc/self/mem");
                    window.memory = Some(memory?);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(window)
    }

    /// Whether a write of two bytes is done at once.
    pub(super) fn has_whole_words(&self) -> bool {
        self.memory.is_none()
    }

    /// Writes `bytes` at `at`, in code that was asked for when opening. A head is stored at once.
    pub(super) fn write(&self, at: u64, bytes: &[u8], is_head: bool) -> io::Result<()> {
        let length = bytes.len() as u64;
        let holds = |(pages, _): &&(Range<u64>, _)| pages.start <= at && at + length <= pages.end;
        if self.open.iter().find(holds).is_none() {
            let memory = self
                .memory
                .as_ref()
                .ok_or(io::ErrorKind::PermissionDenied)?;
            return memory.write_all_at(bytes, at);
        }
        if is_head {
            // SAFETY: the page is mapped and was made writable above; `form` admits two-byte
            // heads only where they lie in one word.
            unsafe { arch::store_head(at, bytes) };
        } else {
            for (at, byte) in (at..).zip(bytes) {
                // SAFETY: mapped and writable, as above; no Rust reference leads to code.
                unsafe { (at as *mut u8).write_volatile(*byte) };
            }
        }
        Ok(())
    }

    /// Gives the pages their old protection back, and says where that failed.
    pub(super) fn close(mut self) -> io::Result<()> {
        self.restore()
    }

    fn restore(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        for (pages, old) in self.open.drain(..) {
            if let Err(error) = protect(&pages, old) {
                result = Err(error.into());
            }
        }
        result
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        let _ = self.restore();
    }
}

fn pages_of(span: &Range<u64>) -> Range<u64> {
    let page = PAGE_BYTES as u64;
    span.start / page * page..span.end.next_multiple_of(page)
}

fn protection(segment: &Segment) -> MprotectFlags {
    let mut flags = MprotectFlags::EXEC;
    flags.set(MprotectFlags::READ, segment.is_readable);
    flags.set(MprotectFlags::WRITE, segment.is_writable);
    flags
}

fn protect(pages: &Range<u64>, flags: MprotectFlags) -> Result<(), Errno> {
    let length = usize::try_from(pages.end - pages.start).unwrap_or(usize::MAX);
    // SAFETY: pages of a module that the loader keeps mapped; they stay readable and executable,
    // so no thread that uses them notices.
    unsafe { mprotect(pages.start as *mut _, length, flags) }
}
