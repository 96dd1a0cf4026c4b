//! Files mapped as atomic words. The one place that turns shared memory into something Rust holds.
//!
//! Another process may change a mapped word at any time, so no reference to plain data may ever
//! point into a mapping: the compiler would assume that it stays as it is. Atomics carry no such
//! assumption. A caller loads a word once, bounds it, and works with the loaded value.
//!
//! A file may also become shorter while it is mapped. Touching a page that is gone raises SIGBUS;
//! [`crate::guard`] can take that.
//!
//! # Invariants
//!
//! 1. `map` is mapped from its construction to its drop, `map.len()` bytes from `map.as_mut_ptr()`,
//!    aligned to a system page.
//! 2. Its memory is reached only as `&[AtomicU64]`, and any bit pattern is a value of that type.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};

use crate::protocol::sync::AtomicU64;
use crate::system::guard::Guarded;
use crate::system::raw;

/// Why a file could not be created or mapped: the step, and the error of the system.
#[derive(Debug)]
pub struct MapError {
    /// The step that failed.
    pub step: &'static str,
    /// The error of the system.
    pub source: io::Error,
}

impl std::fmt::Display for MapError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.step, self.source)
    }
}

impl std::error::Error for MapError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

fn at<E: Into<io::Error>>(step: &'static str) -> impl FnOnce(E) -> MapError {
    move |source| MapError {
        step,
        source: source.into(),
    }
}

/// A shared mapping of a file, or of a part of it. Unmapped when it is dropped: the producer keeps
/// its own for as long as the process runs.
#[derive(Debug)]
pub struct Mapping {
    /// Dropped before the mapping itself.
    guarded: Option<Guarded>,
    map: MmapRaw,
    writable: bool,
}

/// Which of the system's pages a range means where it does not end with one: regions of the format begin at multiples
/// of 4 KiB, and some systems have larger pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    /// All that it touches.
    Whole,
    /// Those that hold nothing else.
    Within,
}

impl Around {
    /// From the first of these pages to the end of the last.
    fn pages(self, from: usize, to: usize) -> (usize, usize) {
        self.pages_of(raw::page_size(), from, to)
    }

    fn pages_of(self, page: usize, from: usize, to: usize) -> (usize, usize) {
        let down = |at: usize| at & !(page - 1);
        match self {
            Self::Whole => (down(from), to.next_multiple_of(page)),
            Self::Within => (from.next_multiple_of(page), down(to)),
        }
    }
}

impl Mapping {
    /// Maps `bytes` of `file` from `offset` (a multiple of the system's page) for reading.
    ///
    /// # Errors
    /// The error of `mmap`.
    pub fn read_only(file: &File, offset: u64, bytes: usize) -> Result<Self, MapError> {
        let map = MmapOptions::new()
            .offset(offset)
            .len(bytes)
            .map_raw_read_only(file)
            .map_err(at("mmap"))?;
        Ok(Self::of(map, false))
    }

    /// Maps `bytes` of `file` from `offset` for reading and writing.
    ///
    /// # Errors
    /// The error of `mmap`.
    pub fn writable(file: &File, offset: u64, bytes: usize) -> Result<Self, MapError> {
        let map = MmapOptions::new()
            .offset(offset)
            .len(bytes)
            .map_raw(file)
            .map_err(at("mmap"))?;
        Ok(Self::of(map, true))
    }

    fn of(map: MmapRaw, writable: bool) -> Self {
        Self {
            guarded: Guarded::new(map.as_mut_ptr() as usize, map.len()),
            map,
            writable,
        }
    }

    /// Whether a page of the file was gone when it was touched, and private memory took its place:
    /// see [`crate::system::guard`]. What was read since may be zeros of no file: a reader asks
    /// after it has copied, before it uses the copy. Without the guard the process has not
    /// survived that.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.guarded.as_ref().is_some_and(Guarded::is_broken)
    }

    /// Whether stores are allowed; in a read-only mapping they end the process with SIGSEGV.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Size of the mapping in bytes. The file may have become shorter since.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// The words at `offset`; `None` if that is not in the mapping or not aligned.
    ///
    /// Other processes may change the words at any time: they are atomics for that reason, and
    /// nothing may be believed that was loaded twice. Storing to a read-only mapping faults; only
    /// functions that a consumer may call store, and they are given the writable mapping.
    #[must_use]
    pub fn words(&self, offset: u64, bytes: u64) -> Option<&[AtomicU64]> {
        let end = offset.checked_add(bytes)?;
        if end > self.bytes() || !offset.is_multiple_of(8) || !bytes.is_multiple_of(8) {
            return None;
        }
        let start = self.map.as_mut_ptr().wrapping_add(offset as usize);
        // SAFETY: invariants 1 and 2: the range was checked, and is aligned to 8; the result
        // borrows `self`, and shared memory may change under an atomic.
        Some(unsafe { core::slice::from_raw_parts(start.cast(), bytes as usize / 8) })
    }

    /// Asks the kernel to map the pages of a range now, for writing, without changing a word: the
    /// first events in them need not fault.
    pub fn populate(&self, offset: u64, bytes: u64) {
        // Else the pages come at their first touch.
        let _ = self.allocate(offset, bytes);
    }

    /// Allocates and maps the pages of a range, so that touching them later cannot fault. Unlike
    /// the function of this name for files it needs no descriptor, which a session closes early.
    ///
    /// # Errors
    /// `EFAULT`: the filesystem is full; `EINVAL`: the kernel is older than Linux 5.14, or the
    /// range does not lie in the mapping.
    pub fn allocate(&self, offset: u64, bytes: u64) -> Result<(), rustix::io::Errno> {
        self.advise(
            Around::Whole,
            offset,
            bytes,
            rustix::mm::Advice::LinuxPopulateWrite,
        )
    }

    /// Frees the system's pages that lie wholly in a range, where the filesystem can; they read as zeros then. Touching them
    /// later may fault, if the filesystem is full by then.
    pub fn give_back(&self, offset: u64, bytes: u64) {
        // Else they stay allocated.
        let _ = self.advise(
            Around::Within,
            offset,
            bytes,
            rustix::mm::Advice::LinuxRemove,
        );
    }

    /// As [`Mapping::populate`], for reading.
    pub fn populate_read(&self, offset: u64, bytes: u64) {
        // Else the pages come at their first touch.
        let _ = self.advise(
            Around::Whole,
            offset,
            bytes,
            rustix::mm::Advice::LinuxPopulateRead,
        );
    }

    fn advise(
        &self,
        around: Around,
        offset: u64,
        bytes: u64,
        advice: rustix::mm::Advice,
    ) -> Result<(), rustix::io::Errno> {
        if offset
            .checked_add(bytes)
            .is_none_or(|end| end > self.bytes())
        {
            return Err(rustix::io::Errno::INVAL);
        }
        let (from, to) = around.pages(offset as usize, (offset + bytes) as usize);
        if from >= to {
            return Ok(());
        }
        let start = self.map.as_mut_ptr().wrapping_add(from);
        // SAFETY: invariants 1 and 2: the range was checked, and its pages are those of the mapping; populating
        // changes no word, and freed pages read as zeros, which are values.
        unsafe { rustix::mm::madvise(start.cast(), to - from, advice) }
    }
}

/// Gives the file its size. Space is not allocated by this; see [`allocate`].
///
/// # Errors
/// The error of `ftruncate`.
pub fn set_size(file: &File, bytes: u64) -> Result<(), MapError> {
    rustix::fs::ftruncate(file, bytes).map_err(at("ftruncate"))
}

/// Allocates space, so that touching it later cannot fault: a full file system is an error here
/// and not a signal in the traced program.
///
/// # Errors
/// The error of `fallocate`: `ENOSPC` on a full filesystem.
pub fn allocate(file: &File, offset: u64, bytes: u64) -> Result<(), MapError> {
    rustix::fs::fallocate(file, FallocateFlags::empty(), offset, bytes).map_err(at("fallocate"))
}

/// An anonymous file of `bytes` whose size no process can change: sealed, it can neither be
/// truncated under its mappings nor grow. Others reach it through `/proc/PID/fd`.
///
/// # Errors
/// The error of the call that failed.
pub fn sealed_memfd(name: &str, bytes: u64) -> Result<File, MapError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd: OwnedFd = rustix::fs::memfd_create(name, flags).map_err(at("memfd_create"))?;
    let file = File::from(fd);
    set_size(&file, bytes)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)
        .map_err(at("fcntl(F_ADD_SEALS)"))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::Around::{Whole, Within};

    #[test]
    fn a_range_of_small_pages_in_large_ones() {
        const LARGE: usize = 64 << 10;
        for around in [Whole, Within] {
            assert_eq!(around.pages_of(4096, 4096, 12288), (4096, 12288));
        }
        assert_eq!(Whole.pages_of(LARGE, 4096, 8192), (0, LARGE));
        let (from, to) = Within.pages_of(LARGE, 4096, 8192);
        assert!(from >= to, "no page holds nothing else");
        assert_eq!(
            Within.pages_of(LARGE, 4096, 3 * LARGE + 1),
            (LARGE, 3 * LARGE)
        );
    }
}
