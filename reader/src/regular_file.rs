//! Small files that a person names: read as a whole, if they are regular ones.
//!
//! Opening a pipe waits for its other end, and neither a signal nor a test of the options ends that; a device may have
//! no end.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Most bytes that are read.
const BYTES_MAX: u64 = 4 << 20;

/// What is in a file, and what the system says about it.
///
/// # Errors
/// It is no regular file, too large, or cannot be read.
pub fn read(path: &Path) -> io::Result<(Vec<u8>, Metadata)> {
    let mut options = File::options();
    options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    let file = options.read(true).open(path)?;
    let about = file.metadata()?;
    let mut bytes = Vec::new();
    if !about.is_file() {
        return Err(wrong(
            "found a pipe, a device or a directory, expected a regular file".to_owned(),
        ));
    }
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(wrong(format!(
            "found more than {BYTES_MAX} bytes, expected fewer"
        )));
    }
    Ok((bytes, about))
}

fn wrong(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn what_is_no_regular_file_is_not_waited_for() {
        let name = format!("ringmark-regular-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let of_pipe = read(&path);
        std::fs::remove_file(&path).unwrap();
        for read in [of_pipe, read(Path::new("/dev/zero")), read(Path::new("/"))] {
            let told = read.unwrap_err().to_string();
            assert!(told.contains("expected a regular file"), "{told}");
        }
        std::fs::write(&path, "text").unwrap();
        let read = read(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read.unwrap().0, b"text");
    }
}
