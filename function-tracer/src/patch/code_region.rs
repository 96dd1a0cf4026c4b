//! Memory for generated code. A page is filled while no thread can execute it and never written
//! again after that, so it is never writable and executable at once.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};

use super::PAGE_BYTES;

/// A reserved range of addresses. Unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Region {
    start: u64,
    pages: usize,
    /// Pages that hold code.
    is_filled: Vec<bool>,
}

pub(crate) fn page_bytes() -> u64 {
    PAGE_BYTES as u64
}

impl Region {
    /// Reserves `range`, which begins and ends at pages, if nothing lies there.
    pub(crate) fn reserve(range: &Range<u64>) -> Option<Self> {
        let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
        // SAFETY: new memory at a place where there is none, by the flag.
        let at =
            unsafe { mmap_anonymous(range.start as *mut _, length, ProtFlags::empty(), flags) };
        let region = Self {
            start: at.ok()? as u64,
            pages: length / PAGE_BYTES,
            is_filled: vec![false; length / PAGE_BYTES],
        };
        // Kernels that do not know the flag take the address as a hint.
        (region.start == range.start).then_some(region)
    }

    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Fills those of `wanted`, sorted numbers of pages, that hold nothing yet. `fill` gets a
    /// page's number and its bytes, which are traps before.
    pub(crate) fn fill(
        &mut self,
        wanted: &[usize],
        mut fill: impl FnMut(usize, &mut [u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        const TRAP: u8 = 0xcc;
        let is_new = |page: &&usize| self.is_filled.get(**page) == Some(&false);
        let new: Vec<_> = wanted.iter().filter(is_new).copied().collect();
        for run in new.chunk_by(|a, b| a + 1 == *b) {
            let (first, pages) = (run[0], run[0]..run[0] + run.len());
            let mut code = vec![TRAP; run.len() * PAGE_BYTES];
            for (page, bytes) in run.iter().zip(code.chunks_exact_mut(PAGE_BYTES)) {
                fill(*page, bytes)?;
            }
            self.protect(&pages, MprotectFlags::READ | MprotectFlags::WRITE)?;
            let to = (self.start + first as u64 * page_bytes()) as *mut u8;
            // SAFETY: pages of this region, writable since the line before, and `fill` had no way
            // to them.
            unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), to, code.len()) };
            match self.protect(&pages, MprotectFlags::READ | MprotectFlags::EXEC) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    self.map_code(&pages, &code)?;
                }
                result => result?,
            }
            self.is_filled[pages].fill(true);
        }
        Ok(())
    }

    /// Puts a file that holds `code` in the place of `pages`: for processes in which memory that
    /// was written may never become code.
    fn map_code(&self, pages: &Range<usize>, code: &[u8]) -> io::Result<()> {
        let file = File::from(memfd_create("ringmark-pads", MemfdFlags::CLOEXEC)?);
        file.write_all_at(code, 0)?;
        let at = self.start + pages.start as u64 * page_bytes();
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        let protection = ProtFlags::READ | ProtFlags::EXEC;
        // SAFETY: replaces pages of this region, to which no reference leads and that no thread
        // executes yet.
        unsafe { mmap(at as *mut _, code.len(), protection, flags, &file, 0)? };
        Ok(())
    }

    /// Makes pages memory for words.
    pub(crate) fn make_data(&mut self, pages: &Range<usize>) -> io::Result<()> {
        self.protect(pages, MprotectFlags::READ | MprotectFlags::WRITE)?;
        self.is_filled[pages.clone()].fill(true);
        Ok(())
    }

    fn protect(&self, pages: &Range<usize>, flags: MprotectFlags) -> io::Result<()> {
        if pages.end > self.pages {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let at = self.start + pages.start as u64 * page_bytes();
        let length = pages.len() * PAGE_BYTES;
        // SAFETY: pages of this region, to which no reference leads.
        unsafe { mprotect(at as *mut _, length, flags)? };
        Ok(())
    }

    /// Stores `value` in word `index` after `from`, in pages that were made data.
    pub(crate) fn store(&self, from: u64, index: usize, value: u64) {
        let at = from + index as u64 * 8;
        if at < self.start || at + 8 > self.start + self.pages as u64 * page_bytes() {
            return;
        }
        // SAFETY: an aligned word of this region; pads load it, no other thread stores.
        let word = unsafe { AtomicU64::from_ptr(at as *mut u64) };
        // Release: the target's code was written before.
        word.store(value, Ordering::Release);
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: this region's own memory. It is dropped when no site calls into it.
        let _ = unsafe { munmap(self.start as *mut _, self.pages * PAGE_BYTES) };
    }
}
