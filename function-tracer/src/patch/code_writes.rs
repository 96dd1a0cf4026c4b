//! The only writes into code of the program, and the instruction that makes processors see them.
//!
//! Pages of code are made writable for one batch and get their old protection back at its end.
//! Some policies forbid memory that is writable and executable at once, even for a moment. There
//! the bytes go through `/proc/self/mem`, which is slower and needs no protection changed.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::io::Errno;
use rustix::mm::{MprotectFlags, mprotect};
use rustix::thread::{MembarrierCommand, membarrier};

use super::PAGE_BYTES;
use crate::arch;
use crate::sites::loader::{Held, Segment};

/// Makes every running thread of this process execute a serializing instruction before it returns.
/// Every other thread does so before its next instruction of the program.
pub(super) fn serialize_processors() -> io::Result<()> {
    match membarrier(MembarrierCommand::PrivateExpeditedSyncCore) {
        // A process has to register first, and again after exec.
        Err(Errno::PERM) => {
            membarrier(MembarrierCommand::RegisterPrivateExpeditedSyncCore)?;
            membarrier(MembarrierCommand::PrivateExpeditedSyncCore)?;
        }
        result => result?,
    }
    Ok(())
}

/// Pages of code that are writable until this is dropped.
struct OpenPages {
    pages: Range<u64>,
    /// The protection that they get back.
    old: MprotectFlags,
}

impl OpenPages {
    fn hold(&self, at: u64, length: u64) -> bool {
        self.pages.start <= at && at + length <= self.pages.end
    }
}

/// Code that may be written to. Closes when dropped.
pub(super) struct CodeWindow<'lock> {
    open: Vec<OpenPages>,
    /// The process's memory as a file, where pages could not be made writable.
    memory: Option<File>,
    _held: &'lock Held<'lock>,
}

impl<'lock> CodeWindow<'lock> {
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
            let (pages, old) = (pages_of(&span), protection(segment));
            match protect(&pages, old | MprotectFlags::WRITE) {
                Ok(()) => window.open.push(OpenPages { pages, old }),
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

    /// Whether a write of several bytes is one store.
    pub(super) fn has_whole_words(&self) -> bool {
        self.memory.is_none()
    }

    /// Writes `bytes` at `at`, in one of the places that the window was opened for. A head is one
    /// store.
    pub(super) fn write(&self, at: u64, bytes: &[u8], is_head: bool) -> io::Result<()> {
        let length = bytes.len() as u64;
        if !self.open.iter().any(|open| open.hold(at, length)) {
            let memory = self
                .memory
                .as_ref()
                .ok_or(io::ErrorKind::PermissionDenied)?;
            return memory.write_all_at(bytes, at);
        }
        if is_head {
            // SAFETY: patch invariants 1 to 3; the page was made writable above.
            unsafe { arch::store_head(at, bytes) };
        } else {
            for (at, byte) in (at..).zip(bytes) {
                // SAFETY: patch invariants 1 and 2; the page was made writable above.
                unsafe { (at as *mut u8).write_volatile(*byte) };
            }
        }
        Ok(())
    }

    /// Gives the pages their old protection back, and reports a failure to do so.
    pub(super) fn close(mut self) -> io::Result<()> {
        self.restore()
    }

    fn restore(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        for OpenPages { pages, old } in self.open.drain(..) {
            if let Err(error) = protect(&pages, old) {
                result = Err(error.into());
            }
        }
        result
    }
}

impl Drop for CodeWindow<'_> {
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
    // SAFETY: patch invariant 1; the pages stay readable and executable, so no thread that uses
    // them notices.
    unsafe { mprotect(pages.start as *mut _, length, flags) }
}
