//! The ring files that this process maps as their producer: those of all copies of the library in
//! it. And the map at one address, for a thread that asks where its stack lies.
//!
//! Two ways lead to them, and both find the same:
//!
//! | | the query | the text of `/proc/self/maps` |
//! | --- | --- | --- |
//! | kernel | since Linux 6.11 | every one |
//! | time | microseconds: only shared, writable maps of files are passed over | grows with all maps |
//! | memory | room for one path, on the stack | the same |
//!
//! Each start of a session asks, and so does a thread that is about to wait for room in a full ring.
//! That thread may hold the allocator's lock, and the program may define `open` or `read` itself. So
//! nothing here allocates or calls the C library.
//!
//! An address says where a session lies, not that it still can be read: its file may be truncated, or
//! the map may go. Callers read there by a call that fails, not by a load. They compare the session,
//! the process and its start with their own, because a file of another process may be mapped as well.

use core::ffi::CStr;
use core::mem::{offset_of, size_of};
use core::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};

use crate::system::raw;
use crate::system::session_dir::{DRAFT_ENDING, RING_FILE_ENDING};

/// `PROCMAP_QUERY`: the kernel's `_IOWR('f', 17, struct procmap_query)`.
const PROCMAP_QUERY: u64 = 0xC068_6611;
/// Bits of `query_flags` and `vma_flags`: writable, shared.
const WRITABLE: u64 = 0x02;
/// See [`WRITABLE`].
const SHARED: u64 = 0x08;
/// The map at the address or the next one after it that has the other bits.
const COVERING_OR_NEXT: u64 = 0x10;
/// Only maps of files.
const FILE_BACKED: u64 = 0x20;
/// Room for the path of a file with its end and what the kernel adds to it.
const PATH_BYTES: usize = 4096 + 256;
/// No process has more sessions. (The kernel's answers are bounded all the same.)
const MAPS_MAX: usize = 4096;

/// The kernel's `struct procmap_query`.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    dev: [u32; 2],
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

const _: () = assert!(size_of::<Query>() == 104 && offset_of!(Query, vma_name_addr) == 88);

/// Calls `each` with every address at which this process maps a ring file for writing from its
/// start, as only its producer does, in ascending order. None where there is no `/proc`.
///
/// A forked child maps none of its parent's any more: what it finds are its own sessions.
pub fn each_produced(mut each: impl FnMut(u64)) {
    let open_text = || {
        open(
            c"/proc/self/maps",
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )
    };
    let Ok(maps) = open_text() else {
        return;
    };
    if !query(&maps, &mut each) {
        // From its start, where the query reads nothing.
        read_text(&maps, &mut each);
    }
}

/// The ends of the map with this address, in the open file `/proc/self/maps`. It takes no longer with
/// more maps. `None`: there is none, or the kernel does not know the query.
#[must_use]
pub fn at(maps: &OwnedFd, address: u64) -> Option<Range<u64>> {
    let mut query = Query {
        size: size_of::<Query>() as u64,
        query_addr: address,
        ..Query::default()
    };
    // SAFETY: there is no room for a name, so none is written.
    let result = unsafe { ask(maps, &mut query) };
    (result == 0).then_some(query.vma_start..query.vma_end)
}

/// The kernel's answer: 0, or an error, negated.
///
/// # Safety
/// A room for a name that `query` states must be there.
unsafe fn ask(maps: &OwnedFd, query: &mut Query) -> i64 {
    let query = core::ptr::from_mut(query) as u64;
    let arguments = [maps.as_raw_fd() as u64, PROCMAP_QUERY, query, 0];
    // SAFETY: the call writes the query, and to the room for a name, as the caller promises.
    unsafe { raw::syscall(libc::SYS_ioctl, arguments) }
}

/// By the kernel's query; `false`: it does not know that, or fails at the first map.
#[inline(never)]
fn query(maps: &OwnedFd, each: &mut impl FnMut(u64)) -> bool {
    let mut name = [0_u8; PATH_BYTES];
    let mut from = 0;
    for _ in 0..MAPS_MAX {
        let mut query = Query {
            size: size_of::<Query>() as u64,
            query_flags: WRITABLE | SHARED | COVERING_OR_NEXT | FILE_BACKED,
            query_addr: from,
            vma_name_size: PATH_BYTES as u32,
            vma_name_addr: name.as_mut_ptr() as u64,
            ..Query::default()
        };
        // SAFETY: `name` has `PATH_BYTES` bytes.
        match unsafe { ask(maps, &mut query) } {
            0 => {}
            error => return from != 0 || error == -i64::from(libc::ENOENT),
        }
        let path = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        if query.vma_offset == 0 && is_ring_file(path.to_bytes()) {
            each(query.vma_start);
        }
        from = query.vma_end.max(from.saturating_add(1));
    }
    true
}

/// By the text of all maps.
#[inline(never)]
fn read_text(maps: &OwnedFd, each: &mut impl FnMut(u64)) {
    let mut text = [0_u8; PATH_BYTES];
    let mut held = 0;
    loop {
        match read(maps, &mut text[held..]) {
            Ok(0) => return,
            Ok(bytes) => held += bytes,
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        let mut from = 0;
        while let Some(bytes) = text[from..held].iter().position(|byte| *byte == b'\n') {
            in_line(&text[from..from + bytes])
                .into_iter()
                .for_each(&mut *each);
            from += bytes + 1;
        }
        text.copy_within(from..held, 0);
        // A line that fills all the room has too long a path: its parts are no lines of a map.
        held = if held - from == text.len() {
            0
        } else {
            held - from
        };
    }
}

/// The address in a line of `/proc/self/maps`, if it is one of a producer.
fn in_line(line: &[u8]) -> Option<u64> {
    let path = line.get(line.iter().position(|byte| *byte == b'/')?..)?;
    let mut fields = line.split(|byte| *byte == b' ');
    let (range, rights, offset) = (fields.next()?, fields.next()?, fields.next()?);
    let from_start = offset.iter().all(|digit| *digit == b'0');
    if rights != b"rw-s" || !from_start || !is_ring_file(path) {
        return None;
    }
    let start = core::str::from_utf8(range).ok()?.split('-').next()?;
    u64::from_str_radix(start, 16).ok()
}

/// Whether a path in a map is that of a ring file: one with a name, also while it is laid out or
/// after it was removed, or one in memory only.
fn is_ring_file(path: &[u8]) -> bool {
    let name = path.strip_suffix(b" (deleted)").unwrap_or(path);
    let endings = [RING_FILE_ENDING, DRAFT_ENDING];
    endings.iter().any(|end| name.ends_with(end.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_producer_maps_counts() {
        let line = |rights: &str, offset: &str, path: &str| {
            format!("7f00aa000000-7f00ab000000 {rights} {offset} 00:19 4711       {path}")
        };
        let named = "/dev/shm/ringmark-0/12-a1b2c3d4.ring";
        let at = |line: &str| in_line(line.as_bytes());
        assert_eq!(at(&line("rw-s", "00000000", named)), Some(0x7f00_aa00_0000));
        let kinds = [
            "/dev/shm/ringmark-0/12-a1b2c3d4.starting",
            "/dev/shm/with space/12-a1b2c3d4.ring (deleted)",
            "/memfd:ringmark.ring (deleted)",
        ];
        for path in kinds {
            assert!(at(&line("rw-s", "00000000", path)).is_some(), "{path}");
        }
        // A reader's maps, the consumed words, another file.
        assert_eq!(at(&line("r--s", "00000000", named)), None);
        assert_eq!(at(&line("rw-s", "00004000", named)), None);
        assert_eq!(at(&line("rw-s", "00000000", "/tmp/other")), None);
        assert_eq!(at("7f00aa000000-7f00ab000000 rw-p 00000000 00:00 0"), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "no maps there")]
    fn the_map_at_an_address() {
        use crate::system::mapping::{Mapping, sealed_memfd};

        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let maps = open(c"/proc/self/maps", flags, Mode::empty()).expect("maps");
        let file = sealed_memfd("one", 8192).expect("a memfd");
        let map = Mapping::writable(&file, 0, 8192).expect("a map");
        let start = map.words(0, 8).expect("a word").as_ptr() as u64;
        let Some(found) = at(&maps, start + 5000) else {
            return println!("skipped: this kernel does not know the query (before Linux 6.11)");
        };
        assert!(found.start <= start && found.end >= start + 8192);
        assert_eq!(at(&maps, 1), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "no maps there")]
    fn the_query_and_the_text_find_the_same() {
        use crate::system::mapping::{Mapping, sealed_memfd};

        let files = [(); 3].map(|()| sealed_memfd("ringmark.ring", 8192).expect("a memfd"));
        let maps = files
            .each_ref()
            .map(|file| Mapping::writable(file, 0, 8192).expect("a map"));
        let reader = Mapping::read_only(&files[0], 0, 8192).expect("a map");
        let start = |map: &Mapping| map.words(0, 8).expect("a word").as_ptr() as u64;
        let mut in_text = Vec::new();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let text = open(c"/proc/self/maps", flags, Mode::empty()).expect("maps");
        read_text(&text, &mut |address| in_text.push(address));
        let mut found = Vec::new();
        each_produced(|address| found.push(address));
        for expected in maps.each_ref().map(start) {
            assert!(found.contains(&expected) && in_text.contains(&expected));
        }
        let read = start(&reader);
        assert!(!found.contains(&read) && !in_text.contains(&read));
    }
}
