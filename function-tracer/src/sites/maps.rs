//! `/proc/self/maps`: which file is mapped where, and where nothing is.

use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::{fs, io};

/// One line: a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) range: Range<u64>,
    /// The file; empty for memory without one.
    pub(crate) path: PathBuf,
    /// Whether the file's name no longer leads to it.
    pub(crate) is_deleted: bool,
    /// Device and inode of the file, as text.
    pub(crate) file: String,
}

/// All mappings, sorted by address.
pub(crate) fn read() -> io::Result<Vec<Mapping>> {
    Ok(parse(&fs::read("/proc/self/maps")?))
}

fn parse(text: &[u8]) -> Vec<Mapping> {
    text.split(|byte| *byte == b'\n').filter_map(line).collect()
}

/// `START-END PERMS OFFSET DEVICE INODE   PATH`
fn line(text: &[u8]) -> Option<Mapping> {
    const DELETED: &[u8] = b" (deleted)";
    let mut rest = text;
    let mut fields = [&b""[..]; 5];
    for field in &mut fields {
        let end = rest
            .iter()
            .position(|byte| *byte == b' ')
            .unwrap_or(rest.len());
        (*field, rest) = rest.split_at(end);
        rest = rest.trim_ascii_start();
    }
    let (start, end) = std::str::from_utf8(fields[0]).ok()?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let kept = rest.strip_suffix(DELETED);
    let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
    Some(Mapping {
        file: text(fields[3]) + " " + &text(fields[4]),
        range: start..end,
        path: PathBuf::from(OsStr::from_bytes(kept.unwrap_or(rest))),
        is_deleted: kept.is_some(),
    })
}

/// The mapping that holds `at`.
pub(crate) fn find(lines: &[Mapping], at: u64) -> Option<&Mapping> {
    let index = lines.partition_point(|line| line.range.end <= at);
    lines.get(index).filter(|line| line.range.contains(&at))
}

/// The gaps between mappings, from `low` to `high`.
pub(crate) fn gaps(lines: &[Mapping], low: u64, high: u64) -> Vec<Range<u64>> {
    let mut from = low;
    let mut gaps = Vec::new();
    for line in lines {
        if from < line.range.start.min(high) {
            gaps.push(from..line.range.start.min(high));
        }
        from = from.max(line.range.end);
    }
    if from < high {
        gaps.push(from..high);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"00400000-00401000 r-xp 00000000 fe:00 12 /usr/bin/a b\n\
        00500000-00600000 rw-p 00000000 00:00 0 \n\
        00600000-00700000 r-xp 00000000 fe:00 13                  /tmp/x.so (deleted)\n";

    #[test]
    fn lines_and_gaps() {
        let lines = parse(TEXT);
        assert_eq!(lines.len(), 3);
        assert_eq!(
            find(&lines, 0x400fff).unwrap().path,
            PathBuf::from("/usr/bin/a b")
        );
        assert_eq!(find(&lines, 0x401000), None);
        assert!(find(&lines, 0x600000).unwrap().is_deleted);
        assert_eq!(lines[1].path, PathBuf::new());
        let gaps = gaps(&lines, 0x10000, 0x800000);
        assert_eq!(
            gaps,
            [0x10000..0x400000, 0x401000..0x500000, 0x700000..0x800000]
        );
        assert_eq!(super::gaps(&lines, 0x400800, 0x400900), []);
    }
}
