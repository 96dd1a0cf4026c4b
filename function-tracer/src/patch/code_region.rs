//! Memory for generated code. A page is filled while no thread can execute it and never written
//! after that, so no page is writable and executable at once.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};

use crate::sites::scan::TRAMPOLINES;

use super::PAGE_BYTES;

/// A reserved range of addresses, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Region {
    start: u64,
    pages: usize,
    /// The object that it is a part of.
    object: Option<Part>,
    /// By page: whether it holds code or data.
    is_filled: Vec<bool>,
}

/// A part of an object.
#[derive(Debug)]
struct Part {
    /// By page of the object: whether it is in use.
    taken: Arc<[AtomicBool]>,
    /// The part's first page.
    first: usize,
}

/// Bytes of a page, for addresses.
pub(crate) fn page_bytes() -> u64 {
    PAGE_BYTES as u64
}

impl Region {
    /// Reserves `range`, whose ends are multiples of the page, if nothing is mapped there.
    pub(crate) fn reserve(range: &Range<u64>) -> Option<Self> {
        let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
        // SAFETY: patch invariant 4; the flag refuses a place where something is mapped.
        let at =
            unsafe { mmap_anonymous(range.start as *mut _, length, ProtFlags::empty(), flags) };
        let region = Self {
            start: at.ok()? as u64,
            pages: length / PAGE_BYTES,
            object: None,
            is_filled: vec![false; length / PAGE_BYTES],
        };
        // Kernels without this flag take the address as a hint.
        (region.start == range.start).then_some(region)
    }

    /// Takes `range` out of an object of this library, from its page `first` on. The caller has found
    /// these pages free in `taken`.
    pub(super) fn inside(
        range: &Range<u64>,
        taken: Arc<[AtomicBool]>,
        first: usize,
    ) -> Option<Self> {
        let pages = usize::try_from((range.end - range.start) / page_bytes()).ok()?;
        let region = Self {
            start: range.start,
            pages,
            object: Some(Part { taken, first }),
            is_filled: vec![false; pages],
        };
        region.set_taken(true);
        region.empty().is_ok().then_some(region)
    }

    /// Notes in the object whether these pages are in use.
    fn set_taken(&self, is_taken: bool) {
        let Some(Part { taken, first }) = &self.object else {
            return;
        };
        let pages = taken.iter().skip(*first).take(self.pages);
        pages.for_each(|page| page.store(is_taken, Ordering::Relaxed));
    }

    /// Maps memory without access over the region.
    fn empty(&self) -> io::Result<()> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        let length = self.pages * PAGE_BYTES;
        // SAFETY: patch invariants 4 and 6: nothing is in use there.
        unsafe { mmap_anonymous(self.start as *mut _, length, ProtFlags::empty(), flags)? };
        Ok(())
    }

    /// Address of the first byte.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Fills those of `wanted`, sorted numbers of pages, that hold nothing yet. `fill` gets a
    /// page's number and its bytes, which hold trap instructions.
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
            // SAFETY: patch invariants 4 and 5; the pages were made writable above.
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

    /// Maps a file with `code` over `pages`, for processes in which memory that was written may
    /// never become executable.
    fn map_code(&self, pages: &Range<usize>, code: &[u8]) -> io::Result<()> {
        let file = File::from(memfd_create(TRAMPOLINES, MemfdFlags::CLOEXEC)?);
        file.write_all_at(code, 0)?;
        let at = self.start + pages.start as u64 * page_bytes();
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        let protection = ProtFlags::READ | ProtFlags::EXEC;
        // SAFETY: patch invariants 4 and 5: no thread executes these pages yet.
        unsafe { mmap(at as *mut _, code.len(), protection, flags, &file, 0)? };
        Ok(())
    }

    /// Makes pages readable and writable, for words of data.
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
        // SAFETY: patch invariant 4.
        unsafe { mprotect(at as *mut _, length, flags)? };
        Ok(())
    }

    /// Stores `value` in word `index` after address `from`, in pages made for data.
    pub(crate) fn store(&self, from: u64, index: usize, value: u64) {
        let at = from + index as u64 * 8;
        if at < self.start || at + 8 > self.start + self.pages as u64 * page_bytes() {
            return;
        }
        // SAFETY: patch invariants 4 and 7; the word lies in this region, as checked above.
        let word = unsafe { AtomicU64::from_ptr(at as *mut u64) };
        // Release: a trampoline that loads this word finds the target's code.
        word.store(value, Ordering::Release);
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.object.is_some() {
            // Pages that are not emptied stay in use.
            return if self.empty().is_ok() {
                self.set_taken(false)
            };
        }
        // SAFETY: patch invariants 4 and 6.
        let _ = unsafe { munmap(self.start as *mut _, self.pages * PAGE_BYTES) };
    }
}
