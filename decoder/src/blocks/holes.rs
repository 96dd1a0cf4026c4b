//! Files that are nearly all holes: of what they say that they have, their file system stores next to nothing. Reading the
//! zeros would take minutes.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use super::damage::Fault;

/// Holes of so many bytes are read: they take a second.
const READ_BYTES: u64 = 1 << 30;
/// A file has this many times what is stored of it, at least. Compression does not come to that.
const TIMES: u64 = 1000;
/// What `stat` counts blocks in.
const BLOCK_BYTES: u64 = 512;

/// What is wrong with a file that is nearly all holes; `None`: it is not.
pub(crate) fn fault(file: &File) -> Option<Fault> {
    let about = file.metadata().ok()?;
    let (bytes, stored) = (about.len(), about.blocks().saturating_mul(BLOCK_BYTES));
    let holes = bytes.saturating_sub(stored);
    let is_one = about.is_file() && holes > READ_BYTES && bytes / TIMES > stored;
    is_one.then_some(Fault::Holes { bytes, stored })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_a_file_that_is_nearly_all_holes_is_cut() {
        let name = format!("ringmark-holes-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut file = File::create(&path).unwrap();
        file.write_all(&[7; 8192]).unwrap();
        file.sync_all().unwrap();
        let found = || fault(&File::open(&path).unwrap());
        assert_eq!(found(), None);
        file.set_len(READ_BYTES).unwrap();
        assert_eq!(found(), None, "its zeros are read");
        file.set_len(900 << 30).unwrap();
        let Some(Fault::Holes { bytes, stored }) = found() else {
            panic!("{:?}", found());
        };
        assert!(bytes == 900 << 30 && (8192..1 << 20).contains(&stored));
        std::fs::remove_file(path).unwrap();
        assert_eq!(fault(&File::open("/proc/self/maps").unwrap()), None);
    }
}
