//! Whether this process has a file open a second time. Allocates nothing, and calls no function that a
//! program could replace.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, open, statat};

/// Most open files that are looked at.
const FILES_MAX: usize = 4096;

/// Whether the process has the file with this device and number open by another descriptor than
/// `own`. `true` also where that cannot be told.
pub(super) fn has_another(own: &File, inode: (u64, u64)) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(dir) = open(c"/proc/self/fd", flags, Mode::empty()) else {
        return true;
    };
    let mut room = [MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(&dir, &mut room);
    let mut looked_at = 0;
    while let Some(entry) = entries.next() {
        let Ok(entry) = entry else { return true };
        if entry.file_type() != FileType::Symlink || is_number(entry.file_name(), own.as_raw_fd()) {
            continue;
        }
        looked_at += 1;
        let found = statat(&dir, entry.file_name(), AtFlags::empty());
        // One that is closed by now is no consumer's.
        if found.is_ok_and(|found| (found.st_dev, found.st_ino) == inode) || looked_at > FILES_MAX {
            return true;
        }
    }
    false
}

/// Whether a name is this number.
fn is_number(name: &core::ffi::CStr, number: i32) -> bool {
    let digits = name
        .to_bytes()
        .iter()
        .map(|byte| i32::from(byte.wrapping_sub(b'0')));
    digits.fold(0_i32, |sum, digit| sum.wrapping_mul(10).wrapping_add(digit)) == number
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_second_descriptor_is_found_until_it_is_closed() {
        let path = std::env::temp_dir().join(format!("own-files-{}", std::process::id()));
        let own = File::create(&path).expect("a file");
        let facts = own.metadata().expect("its number");
        let inode = (facts.dev(), facts.ino());
        assert!(!has_another(&own, inode));
        let second = File::open(&path).expect("it is there");
        assert!(has_another(&own, inode));
        drop(second);
        assert!(!has_another(&own, inode));
        std::fs::remove_file(&path).expect("it is ours");
    }
}
