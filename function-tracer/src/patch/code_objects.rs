//! Memory for trampolines and hops in which unwinders find their way: objects that the loader knows,
//! each with an unwind table.
//!
//! A signal may come at any instruction, also in a trampoline, and its handler may unwind. Unwinders
//! ask the loader for the object around an address. So this library has objects made, whose files
//! hold an unwind table and nothing else, and has the loader map them where trampolines are wanted:
//! the loader asks for the addresses that a file names, and the kernel gives them where they are
//! free. What lies in such an object is then replaced by memory like any other.
//!
//! Objects are made once, before the first patch, because the loader's lock must not be waited for
//! later: a thread that has it may wait for this library. So they are made for the modules that are
//! there, by group: modules near to each other share an object. What does not fit there, or where the
//! loader puts objects elsewhere (glibc before 2.36 in programs at changing addresses), lies in
//! memory without an unwind table, as all of it did.

use std::ffi::CString;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::fcntl_dupfd_cloexec;

use super::code_region::{Region, page_bytes};
use super::object_file;
use super::places::{LOWEST, near};
use crate::arch::{self, CodeFrames, HOP_BYTES};
use crate::sites::loader;
use crate::sites::maps;
use crate::sites::scan::TRAMPOLINES;

/// Bytes for trampolines of a group: a share of the addresses that it takes, of which code is a part.
const BYTES_LEAST: u64 = 1 << 20;
const BYTES_MOST: u64 = 16 << 20;
/// The lowest descriptor that a file is opened by, where the system allows as many.
const DESCRIPTOR_LEAST: i32 = 700;
/// Addresses that a group spans at most.
const GROUP_MOST: u64 = 1 << 30;

/// The objects of this process.
#[derive(Debug, Default)]
pub(crate) struct CodeObjects {
    trampolines: Vec<Room>,
    /// For trampolines with an instruction of their site.
    moved: Vec<Room>,
    hops: Vec<Room>,
}

/// The memory of one object.
#[derive(Debug)]
struct Room {
    range: Range<u64>,
    /// By page: whether it is in use.
    taken: Arc<[AtomicBool]>,
}

impl CodeObjects {
    /// Has the loader map objects for the modules of this process. Waits for the loader's lock, so the
    /// caller must hold none.
    pub(crate) fn load() -> Self {
        let mut objects = Self::default();
        let mut loads = 0;
        let mut load = |range: Range<u64>, frames: CodeFrames| {
            loads += 1;
            Room::load(range, frames, loads)
        };
        for group in groups() {
            let bytes = ((group.end - group.start) / 4).clamp(BYTES_LEAST, BYTES_MOST);
            let bytes = bytes.next_multiple_of(page_bytes());
            let mut near_group = |frames: CodeFrames| {
                let lines = maps::read().unwrap_or_default();
                let whole = bytes + 2 * page_bytes();
                let place = near(&lines, &group, whole).into_iter().next()?;
                load(place.start + page_bytes()..place.end - page_bytes(), frames)
            };
            let Some(room) = near_group(arch::IN_TRAMPOLINES) else {
                return objects; // The loader puts objects elsewhere, and so it would others.
            };
            objects.trampolines.push(room);
            objects.moved.extend(near_group(arch::IN_MOVED));
            let places = arch::safe_distances().filter_map(|distance| hops_at(&group, distance));
            let mut rooms = places.filter_map(|range| load(range, arch::IN_HOPS));
            objects.hops.extend(rooms.next());
        }
        objects
    }

    /// A region of `length` bytes for trampolines in reach of all of `module`.
    pub(super) fn for_trampolines(&self, module: &Range<u64>, length: u64) -> Option<Region> {
        take_near(&self.trampolines, module, length)
    }

    /// The same for trampolines with an instruction of their site.
    pub(super) fn for_moved(&self, module: &Range<u64>, length: u64) -> Option<Region> {
        take_near(&self.moved, module, length)
    }

    /// A region for hops at these addresses.
    pub(super) fn for_hops(&self, range: &Range<u64>) -> Option<Region> {
        self.hops.iter().find_map(|room| room.take(range))
    }
}

fn take_near(rooms: &[Room], module: &Range<u64>, length: u64) -> Option<Region> {
    let reach = arch::REACH_BYTES;
    let is_near = |at: &Range<u64>| {
        at.end.abs_diff(module.start) < reach && at.start.abs_diff(module.end) < reach
    };
    rooms.iter().find_map(|room| room.take_any(length, is_near))
}

/// The addresses of modules that are near to each other.
fn groups() -> Vec<Range<u64>> {
    let (modules, _) = loader::list();
    // The kernel's own object has no file, and is not traced.
    let modules = modules
        .iter()
        .filter(|module| !module.name.starts_with("linux-vdso.so.1"));
    let range = |module: &loader::Loaded| {
        let start = module.segments.iter().map(|segment| segment.start).min()?;
        Some(start..module.segments.iter().map(|segment| segment.end).max()?)
    };
    let mut ranges: Vec<_> = modules.filter_map(range).collect();
    ranges.sort_by_key(|range| range.start);
    let mut groups: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match groups.last_mut() {
            Some(group) if range.end.saturating_sub(group.start) <= GROUP_MOST => {
                group.end = group.end.max(range.end);
            }
            _ => groups.push(range),
        }
    }
    groups
}

/// Where the hops of a group's sites lie for this distance of their calls.
fn hops_at(group: &Range<u64>, distance: i32) -> Option<Range<u64>> {
    let page = page_bytes();
    let start = group.start.checked_add_signed(distance.into())? / page * page;
    let end = group.end.checked_add_signed(distance.into())? + HOP_BYTES as u64;
    let is_possible = start > LOWEST + page;
    is_possible.then_some(start..end.next_multiple_of(page))
}

impl Room {
    /// Has an object for code at `range` mapped there. `None`: the loader does not. `number` is
    /// another one for each object.
    fn load(range: Range<u64>, frames: CodeFrames, number: usize) -> Option<Self> {
        let file = File::from(memfd_create(TRAMPOLINES, MemfdFlags::CLOEXEC).ok()?);
        file.write_all_at(&object_file::contents(&range, frames), 0)
            .ok()?;
        // No other object is opened by this name, by which the loader tells objects. A debugger tries
        // to open it, too: so it names this process, and a descriptor that is hardly used again.
        let file = fcntl_dupfd_cloexec(&file, DESCRIPTOR_LEAST).unwrap_or(file.into());
        let (process, same) = (std::process::id(), "./".repeat(number));
        let name = format!("/proc/{process}/{same}fd/{}", file.as_raw_fd());
        let name = CString::new(name).ok()?;
        // SAFETY: patch invariant 9.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return None;
        }
        let whole = object_file::whole(&range);
        let (modules, _) = loader::list();
        let mut segments = modules.iter().flat_map(|module| &module.segments);
        if !segments.any(|segment| segment.start == whole.start) {
            // SAFETY: patch invariant 9: nothing knows the object.
            unsafe { libc::dlclose(handle) };
            return None;
        }
        let pages = (range.end - range.start) / page_bytes();
        let taken = (0..pages).map(|_| AtomicBool::new(false)).collect();
        Some(Self { range, taken })
    }

    /// The first free pages for `length` bytes at an address that is wanted.
    fn take_any(&self, length: u64, is_wanted: impl Fn(&Range<u64>) -> bool) -> Option<Region> {
        let pages = usize::try_from(length.div_ceil(page_bytes())).ok()?;
        let is_free = |first: &usize| {
            let taken = self.taken.get(*first..first + pages);
            taken.is_some_and(|taken| taken.iter().all(|page| !page.load(Relaxed)))
        };
        let first = (0..self.taken.len()).find(is_free)?;
        let start = self.range.start + first as u64 * page_bytes();
        let range = start..start + pages as u64 * page_bytes();
        if is_wanted(&range) {
            self.take(&range)
        } else {
            None
        }
    }

    /// Exactly these pages, if they are free.
    fn take(&self, range: &Range<u64>) -> Option<Region> {
        let is_here = self.range.start <= range.start && range.end <= self.range.end;
        let page = |at: u64| usize::try_from((at - self.range.start) / page_bytes()).ok();
        let pages = is_here.then_some(page(range.start)?..page(range.end)?)?;
        let taken = self.taken.get(pages.clone())?;
        if taken.iter().any(|page| page.load(Relaxed)) {
            return None;
        }
        Region::inside(range, Arc::clone(&self.taken), pages.start)
    }
}
