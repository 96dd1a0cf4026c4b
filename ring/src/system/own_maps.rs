//! The ring files that this process maps as their producer: those of all copies of the library in
//! it.
//!
//! Asked of the kernel by a query that takes microseconds (since Linux 6.11), because each start of
//! a session does; else read out of the text of all maps.

use core::ffi::CStr;
use core::mem::{offset_of, size_of};
use std::fs::{self, File};
use std::os::fd::AsRawFd;

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

/// The addresses at which this process maps ring files for writing from their start, as only their
/// producer does. Empty where there is no `/proc`. (A forked child maps none of its parent's any
/// more.)
#[must_use]
pub fn produced() -> Vec<u64> {
    let asked = File::open("/proc/self/maps").ok();
    asked.and_then(|maps| queried(&maps)).unwrap_or_else(|| {
        let text = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        text.lines().filter_map(in_line).collect()
    })
}

/// As [`produced`]; `None`: the kernel does not know the query, or fails at it.
fn queried(maps: &File) -> Option<Vec<u64>> {
    let mut found = Vec::new();
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
        let arguments = [
            maps.as_raw_fd() as u64,
            PROCMAP_QUERY,
            &raw mut query as u64,
            0,
        ];
        // SAFETY: the call writes the query, and at most `PATH_BYTES` bytes to `name`.
        match unsafe { raw::syscall(libc::SYS_ioctl, arguments) } {
            0 => {}
            error if error == -i64::from(libc::ENOENT) => return Some(found),
            _ => return None,
        }
        let path = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        if query.vma_offset == 0 && is_ring_file(&path.to_string_lossy()) {
            found.push(query.vma_start);
        }
        from = query.vma_end.max(from.saturating_add(1));
    }
    None
}

/// The same of a line of `/proc/self/maps`.
fn in_line(line: &str) -> Option<u64> {
    let mut fields = line.split_ascii_whitespace();
    let (range, rights, offset) = (fields.next()?, fields.next()?, fields.next()?);
    let path = line.get(line.find('/')?..)?;
    let from_start = offset.bytes().all(|digit| digit == b'0');
    if rights != "rw-s" || !from_start || !is_ring_file(path) {
        return None;
    }
    u64::from_str_radix(range.split('-').next()?, 16).ok()
}

/// Whether a path in a map is that of a ring file: one with a name, also while it is laid out or
/// after it was removed, or one in memory only.
fn is_ring_file(path: &str) -> bool {
    let name = path.trim_end_matches(" (deleted)");
    let has_ending = name.ends_with(RING_FILE_ENDING) || name.ends_with(DRAFT_ENDING);
    has_ending || name.starts_with("/memfd:ringmark")
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
        let at = |line: &str| in_line(line);
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
    fn the_query_and_the_text_find_the_same() {
        use crate::system::mapping::{Mapping, sealed_memfd};

        let files = [(); 3].map(|()| sealed_memfd("ringmark.ring", 8192).expect("a memfd"));
        let maps = files
            .each_ref()
            .map(|file| Mapping::writable(file, 0, 8192).expect("a map"));
        let reader = Mapping::read_only(&files[0], 0, 8192).expect("a map");
        let start = |map: &Mapping| map.words(0, 8).expect("a word").as_ptr() as u64;
        let text = fs::read_to_string("/proc/self/maps").expect("maps");
        let in_text: Vec<_> = text.lines().filter_map(in_line).collect();
        let found = produced();
        for expected in maps.each_ref().map(start) {
            assert!(found.contains(&expected) && in_text.contains(&expected));
        }
        let read = start(&reader);
        assert!(!found.contains(&read) && !in_text.contains(&read));
    }
}
