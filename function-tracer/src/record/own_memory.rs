//! Memory of the tracer's own. It takes room only where it is used, also in a program that has all its memory
//! locked: `mlockall(MCL_FUTURE)` would have the kernel fill each new mapping at once.

use core::ffi::c_void;

use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munlock, munmap,
};

/// A new mapping of zeros; `None`: there is none. With [`MapFlags::FIXED_NOREPLACE`] it lies at `wanted`, or, with a
/// kernel before 4.17, elsewhere.
pub(super) fn map(wanted: *mut c_void, bytes: usize, flags: MapFlags) -> Option<*mut c_void> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | flags;
    // What cannot be accessed is not filled.
    // SAFETY: record invariant 3: no mapping is replaced.
    let start = unsafe { mmap_anonymous(wanted, bytes, ProtFlags::empty(), flags) }.ok()?;
    // SAFETY: the new mapping, which holds nothing. Refused where it is locked.
    let advised = unsafe { madvise(start, bytes, Advice::LinuxDontNeed) };
    if advised == Err(Errno::INVAL) {
        // SAFETY: the new mapping. Failure is accepted: then it is filled.
        let _ = unsafe { munlock(start, bytes) };
    }
    // SAFETY: the new mapping, which no one else knows.
    let opened = unsafe { mprotect(start, bytes, MprotectFlags::READ | MprotectFlags::WRITE) };
    if opened.is_ok() {
        return Some(start);
    }
    // SAFETY: as above.
    let _ = unsafe { munmap(start, bytes) };
    None
}
