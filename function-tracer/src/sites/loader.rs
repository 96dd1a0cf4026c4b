//! What the loader has mapped, and the lock that keeps it mapped.
//!
//! The loader lists its modules under a lock that `dlclose` needs before it unmaps one. So all code
//! that reads or writes a module's memory runs inside such a listing. It does so only while the
//! loader's counts are those of the list that it works from.
//!
//! # Invariants
//!
//! 1. While the loader calls back, what it says of a module is valid: the structure, the program
//!    headers that it points to, and the name. The module stays mapped.
//! 2. The argument of the callback is the `visit` of `iterate`, a local that nothing else uses
//!    until the loader returns.
//! 3. No panic passes through the loader: the callback catches it.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use crate::fork_locks;

/// Numbers of modules that the loader has ever mapped and unmapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    adds: u64,
    subs: u64,
}

/// A mapped part of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) is_readable: bool,
    pub(crate) is_writable: bool,
    pub(crate) is_executable: bool,
}

impl Segment {
    /// Whether the segment holds `length` bytes at `at`.
    pub(crate) fn holds(&self, at: u64, length: u64) -> bool {
        let end = at.checked_add(length);
        self.start <= at && end.is_some_and(|end| end <= self.end)
    }

    fn is_source(&self, at: u64, length: usize) -> bool {
        self.is_readable && self.holds(at, length as u64)
    }
}

/// A module in the loader's list.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    /// Path that the loader found it by; empty for the program.
    pub(crate) name: PathBuf,
    /// The sum of this and an address in the file is the address in memory.
    pub(crate) base: u64,
    pub(crate) segments: Vec<Segment>,
    /// Address and length of each part with notes.
    pub(crate) notes: Vec<(u64, u64)>,
    /// The program headers, to compare with those of the file: type and flags, offset, address,
    /// size.
    pub(crate) headers: Vec<[u64; 4]>,
}

/// Proof that the loader's lock is held: no module is unmapped while it lives.
pub(crate) struct Held<'lock> {
    pub(crate) counts: Counts,
    _lock: &'lock (),
}

impl Held<'_> {
    /// A copy of `length` bytes at `at`. `None`: they do not all lie in readable memory of one of
    /// `segments`, which must come from a list with the same counts.
    pub(crate) fn read(&self, segments: &[Segment], at: u64, length: usize) -> Option<Vec<u8>> {
        // Checked before anything is allocated, because the length may come from a file.
        segments
            .iter()
            .find(|segment| segment.is_source(at, length))?;
        let mut bytes = vec![0; length];
        self.copy(segments, at, &mut bytes).then_some(bytes)
    }

    /// Copies the bytes at `at`. `false`: they do not all lie in such memory.
    pub(crate) fn read_into(&self, segments: &[Segment], at: u64, to: &mut [u8]) -> bool {
        self.copy(segments, at, to)
    }

    /// Whether the bytes at `at` are `expected`, at most 16.
    pub(crate) fn is(&self, segments: &[Segment], at: u64, expected: &[u8]) -> bool {
        let mut found = [0; 16];
        let found = found.get_mut(..expected.len());
        found.is_some_and(|found| self.copy(segments, at, found) && found == expected)
    }

    fn copy(&self, segments: &[Segment], at: u64, to: &mut [u8]) -> bool {
        let is_there = segments
            .iter()
            .any(|segment| segment.is_source(at, to.len()));
        if is_there {
            // SAFETY: patch invariants 1 and 2: the segment is mapped readable while `self` lives,
            // and this library, which alone writes code and tables, writes nothing now.
            unsafe { std::ptr::copy_nonoverlapping(at as *const u8, to.as_mut_ptr(), to.len()) };
        }
        is_there
    }
}

/// The loader's counts, which tell cheaply whether its list has changed.
pub(crate) fn counts() -> Counts {
    let mut counts = Counts::default();
    iterate(&mut |info| {
        counts = counts_of(info);
        false
    });
    counts
}

/// All modules, and the counts of the list.
pub(crate) fn list() -> (Vec<Loaded>, Counts) {
    let (mut modules, mut counts) = (Vec::new(), Counts::default());
    iterate(&mut |info| {
        counts = counts_of(info);
        modules.push(loaded(info));
        true
    });
    (modules, counts)
}

/// Runs `work` while no module can be unmapped.
pub(crate) fn hold<R>(work: impl FnOnce(&Held<'_>) -> R) -> Option<R> {
    let (mut work, mut result) = (Some(work), None);
    iterate(&mut |info| {
        let counts = counts_of(info);
        let held = Held { counts, _lock: &() };
        result = work.take().map(|work| work(&held));
        false
    });
    result
}

type Visit<'a> = &'a mut dyn FnMut(&libc::dl_phdr_info) -> bool;

/// Calls `visit` for each module until it returns `false`.
fn iterate(visit: Visit<'_>) {
    // A forked child must not find the loader's lock held by a thread that it does not have.
    let _no_fork = fork_locks::change();
    let mut visit = visit;
    let argument = (&raw mut visit).cast::<c_void>();
    // SAFETY: invariants 2 and 3: `argument` points to a local, and `callback` does not unwind.
    unsafe { libc::dl_iterate_phdr(Some(callback), argument) };
}

unsafe extern "C" fn callback(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: invariant 2.
    let visit = unsafe { &mut *argument.cast::<Visit<'_>>() };
    // SAFETY: invariant 1.
    let info = unsafe { &*info };
    // Unwinding must not pass through the loader, whose lock would stay locked.
    let goes_on = catch_unwind(AssertUnwindSafe(|| visit(info)));
    c_int::from(!goes_on.unwrap_or(false))
}

fn counts_of(info: &libc::dl_phdr_info) -> Counts {
    Counts {
        adds: info.dlpi_adds,
        subs: info.dlpi_subs,
    }
}

fn loaded(info: &libc::dl_phdr_info) -> Loaded {
    let base = info.dlpi_addr;
    let headers = if info.dlpi_phdr.is_null() {
        &[]
    } else {
        // SAFETY: invariant 1: as many headers as it says.
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) }
    };
    let name = if info.dlpi_name.is_null() {
        c""
    } else {
        // SAFETY: invariant 1: a text with its end.
        unsafe { CStr::from_ptr(info.dlpi_name) }
    };
    let of_type = |kind| headers.iter().filter(move |header| header.p_type == kind);
    let at = |header: &libc::Elf64_Phdr| base.wrapping_add(header.p_vaddr);
    let segments = of_type(libc::PT_LOAD).map(|header| Segment {
        start: at(header),
        end: at(header).wrapping_add(header.p_memsz),
        is_readable: header.p_flags & libc::PF_R != 0,
        is_writable: header.p_flags & libc::PF_W != 0,
        is_executable: header.p_flags & libc::PF_X != 0,
    });
    let notes = of_type(libc::PT_NOTE).map(|header| (at(header), header.p_memsz));
    let raw = headers.iter().map(|header| {
        let kind = u64::from(header.p_type) << 32 | u64::from(header.p_flags);
        [kind, header.p_offset, header.p_vaddr, header.p_memsz]
    });
    Loaded {
        name: PathBuf::from(OsStr::from_bytes(name.to_bytes())),
        base,
        segments: segments.collect(),
        notes: notes.collect(),
        headers: raw.collect(),
    }
}
