//! The files of a store by their names: `DAY/SERVICE/HOST/SESSION.N.rmk`, the index of each
//! segment, and copies of what was cut off it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ringmark_format::Uuid;
use ringmark_format::glob::matches as glob;

use super::links::{DEPTH, refused};
use crate::trace_file::choice::SessionChoice;

/// The file that makes a directory a store.
pub const ID_FILE: &str = "store.id";
/// Ending of a segment's name.
const ENDING: &str = ".rmk";
/// Ending of the name of a copy.
const COPY_ENDING: &str = "damaged";
/// Ending of an index's name.
const INDEX_ENDING: &str = "idx";
/// The directory of hosts and services without a name.
const UNNAMED: &str = "unnamed";

/// Path of segment `number` of a session, counted from 0, in the directory of its host.
#[must_use]
pub fn segment(directory: &Path, session: Uuid, number: u32) -> PathBuf {
    directory.join(format!("{session}.{number}{ENDING}"))
}

/// What the name of a file in a store tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentName {
    /// The session whose blocks the file holds.
    pub session: Uuid,
    /// Place of the segment in its session, from 0.
    pub number: u32,
}

/// Session and number of a segment by the name of its file; `None`: it is no segment.
#[must_use]
pub fn parse(file: &Path) -> Option<SegmentName> {
    parse_with(file, ENDING)
}

/// Session and number of a file named `SESSION.N` and `ending`, spelled as a collector spells it;
/// `None`: any other name.
#[must_use]
pub fn parse_with(file: &Path, ending: &str) -> Option<SegmentName> {
    let name = file.file_name()?.to_str()?;
    let (uuid, number) = name.strip_suffix(ending)?.rsplit_once('.')?;
    let digits: String = uuid.chars().filter(|c| *c != '-').collect();
    let session = Uuid(u128::from_str_radix(&digits, 16).ok()?.to_be_bytes());
    let number: u32 = number.parse().ok()?;
    (format!("{session}.{number}{ending}") == name).then_some(SegmentName { session, number })
}

/// Name of the host whose segment this is, by its path in a store; `None`: the path is none of a
/// store, or the host had no name.
#[must_use]
pub fn host(segment: &Path) -> Option<&str> {
    let _ = parse_stored(segment)?;
    let name = segment.parent()?.file_name()?.to_str()?;
    (name != UNNAMED).then_some(name)
}

/// Name of the directory of a segment's service, by its path in a store: [`directory_name`] of the
/// service, or of the process if it belongs to none. `None`: the path is none of a store.
#[must_use]
pub fn service_directory(segment: &Path) -> Option<&str> {
    let _ = parse_stored(segment)?;
    segment.parent()?.parent()?.file_name()?.to_str()
}

/// Makes a directory's name of any text: letters, digits, `.`, `_` and `-` stay, all else becomes
/// `_`, and a name that would be hidden or look like an option gets a `_` before it. Two different
/// texts may get one name.
#[must_use]
pub fn directory_name(text: &str) -> String {
    match safe(text) {
        name if name.is_empty() => UNNAMED.to_owned(),
        name if name.starts_with(['.', '-']) => format!("_{name}"),
        name => name,
    }
}

fn safe(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let safe = |c: char| if allowed(c) { c } else { '_' };
    text.chars().map(safe).collect()
}

impl SessionChoice {
    /// Whether a service whose segments are in a directory of this name can pass. Sessions of other services may be there, too.
    #[must_use]
    pub fn service_directory_may_pass(&self, directory: &str) -> bool {
        let may_be = |pattern: &String| {
            // What `?` stands for may have become several characters, or fewer.
            if pattern.contains('?') {
                return true;
            }
            let pieces: Vec<_> = pattern.split('*').map(safe).collect();
            let name = pieces.join("*");
            let prefixed = format!("_{name}");
            [name, prefixed]
                .iter()
                .any(|name| glob(name.as_bytes(), directory.as_bytes()))
        };
        self.services.is_empty() || self.services.iter().any(may_be)
    }
}

/// As [`parse`], for a file whose directories are those of a store.
#[must_use]
pub fn parse_stored(file: &Path) -> Option<SegmentName> {
    let day = file.ancestors().nth(DEPTH)?;
    parse(file).filter(|_| is_day(day))
}

/// Paths of all segments of the store at `root`, in the order of their names.
///
/// # Errors
/// A directory cannot be read.
pub fn segments(root: &Path) -> io::Result<Vec<PathBuf>> {
    files_of_store(root, |file| parse(file).is_some())
}

/// Paths for copies of what was cut off a segment, in the order in which they are made; endless.
pub fn copies(segment: &Path) -> impl Iterator<Item = PathBuf> {
    let numbered = move |number: u32| match number {
        1 => segment.with_extension(COPY_ENDING),
        _ => segment.with_extension(format!("{number}.{COPY_ENDING}")),
    };
    (1..).map(numbered)
}

/// Whether a file is named as a copy of what was cut off a segment.
#[must_use]
pub fn is_copy(file: &Path) -> bool {
    let is_numbered = |name: &Path| parse_with(name, "").is_some();
    let name = file.with_extension("");
    let later = name
        .extension()
        .and_then(|end| end.to_str()?.parse::<u32>().ok());
    let is_later = later.is_some() && is_numbered(&name.with_extension(""));
    file.extension().is_some_and(|end| end == COPY_ENDING) && (is_numbered(&name) || is_later)
}

/// Path of the index of a segment.
#[must_use]
pub fn index_of(segment: &Path) -> PathBuf {
    segment.with_extension(INDEX_ENDING)
}

/// Paths at which a collector puts its files, below directories named as days and exactly as deep
/// as segments lie, if `is_ours` accepts them. Sorted. Other files in the directory are ignored.
///
/// # Errors
/// A directory cannot be read.
pub fn files_of_store(root: &Path, is_ours: impl Fn(&Path) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    walk(root, |path, depth, kind| match kind {
        Kind::Directory => Ok(depth > 0 || is_day(path)),
        Kind::File => {
            if depth == DEPTH && is_ours(path) {
                found.push(path.to_owned());
            }
            Ok(false)
        }
        Kind::Link => refuse_of_store(path, depth),
    })?;
    found.sort();
    Ok(found)
}

/// Refuses a link where a store has a directory or a segment of its own.
fn refuse_of_store(path: &Path, depth: usize) -> io::Result<bool> {
    let is_its = match depth {
        0 => is_day(path),
        DEPTH => parse(path).is_some(),
        _ => true,
    };
    match is_its {
        true => Err(refused(path)),
        false => Ok(false),
    }
}

/// Paths of trace files below `root`, at most as deep as a store is, in the order of their names.
/// A directory of a store that is no day and may not be read is passed over.
///
/// # Errors
/// A directory cannot be read.
pub fn dumps_below(root: &Path) -> io::Result<Vec<PathBuf>> {
    let is_store = root.join(ID_FILE).symlink_metadata().is_ok();
    let is_skipped = |path: &Path, depth: usize| {
        let may_be = is_store && depth == 0 && !is_day(path);
        may_be && fs::read_dir(path).is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
    };
    let mut found = Vec::new();
    walk(root, |path, depth, kind| match kind {
        Kind::Directory => Ok(depth < DEPTH && !is_skipped(path, depth)),
        Kind::File => {
            if path.extension().is_some_and(|e| e == &ENDING[1..]) {
                found.push(path.to_owned());
            }
            Ok(false)
        }
        Kind::Link if is_store => refuse_of_store(path, depth),
        Kind::Link => Ok(false),
    })?;
    found.sort();
    Ok(found)
}

/// Whether a directory is named as a day of a store: `2026-11-23`.
fn is_day(directory: &Path) -> bool {
    let name = directory.file_name().unwrap_or_default().as_encoded_bytes();
    let fits = |(at, byte): (usize, &u8)| match at {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    name.len() == 10 && name.iter().enumerate().all(fits)
}

/// What lies in a directory.
#[derive(Clone, Copy)]
enum Kind {
    Directory,
    File,
    Link,
}

impl Kind {
    /// `None`: it is neither.
    fn of(found: fs::FileType) -> Option<Self> {
        match found {
            _ if found.is_dir() => Some(Self::Directory),
            _ if found.is_file() => Some(Self::File),
            _ => found.is_symlink().then_some(Self::Link),
        }
    }
}

/// Shows every file, directory and link below `root` to `look`, with the depth at which it was found;
/// goes into a directory if it says so.
fn walk(
    root: &Path,
    mut look: impl FnMut(&Path, usize, Kind) -> io::Result<bool>,
) -> io::Result<()> {
    let mut directories = vec![(root.to_owned(), 0)];
    while let Some((directory, depth)) = directories.pop() {
        let entries = match fs::read_dir(&directory) {
            // Removed since the one above it was read.
            Err(error) if depth > 0 && error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let (path, kind) = entry.and_then(|e| Ok((e.path(), e.file_type()?)))?;
            if let Some(kind) = Kind::of(kind)
                && look(&path, depth, kind)?
            {
                directories.push((path, depth + 1));
            }
        }
    }
    Ok(())
}

/// Paths of all copies of what was cut off segments of the store at `root`, sorted.
///
/// # Errors
/// A directory cannot be read.
pub fn copies_below(root: &Path) -> io::Result<Vec<PathBuf>> {
    files_of_store(root, |file| {
        file.extension().is_some_and(|e| e == COPY_ENDING)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_looked_for_in_its_directory() {
        let texts = [
            "shop",
            "web-1",
            "a/b c",
            ".hidden",
            "-x",
            "\u{fc}ber",
            "",
            "a*b",
        ];
        let patterns = [
            "*", "shop", "sh*", "*b*", "a/*", ".*", "*x", "\u{fc}*", "s?op", "", "a_b*",
        ];
        for text in texts {
            for pattern in patterns {
                let choice = SessionChoice {
                    services: vec![pattern.to_owned()],
                    ..SessionChoice::default()
                };
                let is_meant = glob(pattern.as_bytes(), text.as_bytes());
                // One without a service is in the directory of its process.
                let name = if text.is_empty() { "unnamed" } else { text };
                let may = choice.service_directory_may_pass(&directory_name(name));
                assert!(
                    may || !is_meant || text.is_empty() && pattern.is_empty(),
                    "{pattern} {text}"
                );
            }
        }
        let other = SessionChoice {
            services: vec!["shop*".to_owned(), "web".to_owned()],
            ..SessionChoice::default()
        };
        assert!(other.service_directory_may_pass("shop-2"));
        assert!(!other.service_directory_may_pass("web-1"));
    }

    #[test]
    fn a_segments_name_is_read_back() {
        let session = Uuid([7; 16]);
        let file = segment(Path::new("/a"), session, 12);
        let number = 12;
        assert_eq!(parse(&file), Some(SegmentName { session, number }));
        assert_eq!(parse(Path::new("/a/store.id")), None);
        assert_eq!(parse(Path::new("/a/x.1.rmk")), None);
        for other in [".012.rmk", ".+12.rmk", ".12.rmk.rmk", "..12.rmk"] {
            let name = format!("/a/{session}{other}");
            assert_eq!(parse(Path::new(&name)), None, "{name}");
        }
        for copy in copies(&file).take(3) {
            assert!(is_copy(&copy), "{}", copy.display());
        }
        for other in ["1.rmk", "x.damaged", "1.x.damaged", "damaged"] {
            let name = format!("/a/{session}.{other}");
            assert!(!is_copy(Path::new(&name)), "{name}");
        }
        let digits = session.to_string().replace('-', "");
        assert_eq!(parse(Path::new(&format!("/a/{digits}.12.rmk"))), None);
    }
}
