//! `/proc/PID/maps`: which file lies where.

use std::fs;
use std::ops::Range;

use crate::error::LoadError;
use crate::target::unreadable;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) range: Range<u64>,
    pub(crate) is_executable: bool,
    pub(crate) is_private: bool,
    pub(crate) offset: u64,
    /// Device and number of the file; a second module of the same file is told by its offset 0.
    pub(crate) file: String,
    pub(crate) path: String,
}

/// All lines, by address. There are none of a process that has ended and waits for its parent.
///
/// # Errors
/// The process is gone, we may not read them, or the system has no room for it now.
pub(crate) fn read(pid: i32) -> Result<Vec<Line>, LoadError> {
    let text = fs::read(format!("/proc/{pid}/maps"));
    let text = text.map_err(|error| unreadable(pid, "reading its maps", error))?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(line).collect())
}

/// `START-END PERMS OFFSET DEVICE INODE   PATH`
fn line(text: &str) -> Option<Line> {
    let mut rest = text;
    let mut field = || {
        let (field, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = behind.trim_start();
        field
    };
    let (start, end) = field().split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let range = hex(start)?..hex(end)?;
    let rights = field().as_bytes().to_vec();
    let offset = hex(field())?;
    let file = format!("{} {}", field(), field());
    Some(Line {
        range,
        is_executable: rights.get(2) == Some(&b'x'),
        is_private: rights.get(3) == Some(&b'p'),
        offset,
        file,
        path: rest.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line() {
        let found = line("00400000-00401000 r-xp 00001000 fe:00 12      /usr/bin/a b").unwrap();
        assert_eq!(found.range, 0x40_0000..0x40_1000);
        assert!(found.is_executable && found.is_private);
        assert_eq!(
            (found.offset, found.path.as_str()),
            (0x1000, "/usr/bin/a b")
        );
        assert_eq!(found.file, "fe:00 12");
        assert_eq!(
            line("7f0000000000-7f0000001000 rw-p 00000000 00:00 0")
                .unwrap()
                .path,
            ""
        );
        assert_eq!(line("nonsense"), None);
    }
}
