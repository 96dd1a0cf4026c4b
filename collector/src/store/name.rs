//! Where a session's segments lie, and what they are called.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringmark_decoder::Stamper;
use ringmark_format::Uuid;
use ringmark_format::attribute::{Attributes, tag};
use ringmark_format::session::SessionHeader;

use super::identity;
use crate::clocks::now_ns;
use crate::host_name::{NameTooLong, fits, safe};

/// Ending of a segment's name.
pub(super) const ENDING: &str = ".rmk";
/// Ending of the name of a file that has none yet.
const UNNAMED: &str = "new";
/// How deep segments lie: `DAY/SERVICE/HOST/`.
const DEPTH: usize = 3;

/// `DAY/SERVICE/HOST` of a session that begins now.
///
/// # Errors
/// A name is too long.
pub(super) fn directory(host: &str, session: &[u8]) -> Result<PathBuf, NameTooLong> {
    let attributes = session.get(SessionHeader::BYTES..).unwrap_or_default();
    let find = |tag| {
        Attributes::new(attributes)
            .find(tag)
            .filter(|v| !v.is_empty())
    };
    let service = find(tag::SERVICE_NAME).or_else(|| find(tag::PROCESS_NAME));
    let service = String::from_utf8_lossy(service.unwrap_or_default());
    fits("service", &service)?;
    fits("host", host)?;
    Ok(Path::new(&today()).join(safe(&service)).join(safe(host)))
}

fn today() -> String {
    String::from_utf8_lossy(&Stamper::default().stamp(now_ns())[..10]).into_owned()
}

/// The file of segment `number`.
pub(super) fn segment(directory: &Path, session: Uuid, number: u32) -> PathBuf {
    directory.join(format!("{session}.{number}{ENDING}"))
}

/// Where a segment lies until it is durable with all before it, and gets its name.
pub(super) fn unnamed(segment: &Path) -> PathBuf {
    segment.with_extension(UNNAMED)
}

/// Session and number of a segment's file.
pub(super) fn parse(file: &Path) -> Option<(Uuid, u32)> {
    parse_with(file, ENDING)
}

/// Session and number of a file that is called as a collector calls it, and not otherwise.
fn parse_with(file: &Path, ending: &str) -> Option<(Uuid, u32)> {
    let name = file.file_name()?.to_str()?;
    let (uuid, number) = name.strip_suffix(ending)?.rsplit_once('.')?;
    let digits: String = uuid.chars().filter(|c| *c != '-').collect();
    let uuid = Uuid(u128::from_str_radix(&digits, 16).ok()?.to_be_bytes());
    let number: u32 = number.parse().ok()?;
    (format!("{uuid}.{number}{ending}") == name).then_some((uuid, number))
}

/// All segments of the store at `root`.
pub(super) fn segments(root: &Path) -> io::Result<Vec<PathBuf>> {
    files_of_store(root, |file| parse(file).is_some())
}

/// Removes what a collector left that was killed: nothing in it was acknowledged.
pub(super) fn remove_unnamed(root: &Path) -> io::Result<()> {
    let endings = [".new", ".idx.new"];
    let is_left = |file: &Path| endings.iter().any(|e| parse_with(file, e).is_some());
    files_of_store(root, is_left)?
        .iter()
        .try_for_each(fs::remove_file)
}

/// Files where a collector puts its own: below directories that are days, and just as deep. What
/// else lies in the store's directory is not looked at.
pub(super) fn files_of_store(
    root: &Path,
    is_ours: impl Fn(&Path) -> bool,
) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    walk(root, |path, depth, is_directory| {
        if is_directory {
            return depth > 0 || is_day(path);
        }
        if depth == DEPTH && is_ours(path) {
            found.push(path.to_owned());
        }
        false
    })?;
    found.sort();
    Ok(found)
}

/// Files with the ending of dumps, at most as deep as a store is; in the order of their names.
/// What is no day of a store and may not be read is none of its business.
///
/// # Errors
/// A directory cannot be read.
pub fn dumps_below(root: &Path) -> io::Result<Vec<PathBuf>> {
    let is_store = root.join(identity::FILE).symlink_metadata().is_ok();
    let is_skipped = |path: &Path, depth: usize| {
        let may_be = is_store && depth == 0 && !is_day(path);
        may_be && fs::read_dir(path).is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
    };
    let mut found = Vec::new();
    walk(root, |path, depth, is_directory| {
        if is_directory {
            return depth < DEPTH && !is_skipped(path, depth);
        }
        if path.extension().is_some_and(|e| e == &ENDING[1..]) {
            found.push(path.to_owned());
        }
        false
    })?;
    found.sort();
    Ok(found)
}

/// Whether a directory is called as one of the days of a store.
fn is_day(directory: &Path) -> bool {
    let name = directory.file_name().unwrap_or_default().as_encoded_bytes();
    let fits = |(at, byte): (usize, &u8)| match at {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    name.len() == 10 && name.iter().enumerate().all(fits)
}

/// Shows every file and directory below `root` to `look`, with the depth at which it was found;
/// goes into a directory if it says so.
fn walk(root: &Path, mut look: impl FnMut(&Path, usize, bool) -> bool) -> io::Result<()> {
    let mut directories = vec![(root.to_owned(), 0)];
    while let Some((directory, depth)) = directories.pop() {
        let entries = match fs::read_dir(&directory) {
            // Removed since the one above it was read.
            Err(error) if depth > 0 && error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let (path, kind) = entry.and_then(|e| Ok((e.path(), e.file_type()?)))?;
            if (kind.is_dir() || kind.is_file()) && look(&path, depth, kind.is_dir()) {
                directories.push((path, depth + 1));
            }
        }
    }
    Ok(())
}

/// The directory of every session below a root; sessions of one directory share its name.
#[derive(Debug, Default)]
pub(super) struct Places {
    directories: HashSet<Arc<Path>>,
    sessions: HashMap<Uuid, Arc<Path>>,
}

impl Places {
    pub(super) fn of_segments(segments: &[PathBuf]) -> Self {
        let mut places = Self::default();
        for file in segments {
            if let (Some((uuid, _)), Some(directory)) = (parse(file), file.parent()) {
                places.insert(uuid, directory);
            }
        }
        places
    }

    pub(super) fn insert(&mut self, session: Uuid, directory: &Path) {
        let known = self.directories.get(directory).cloned();
        let directory = known.unwrap_or_else(|| {
            let new: Arc<Path> = directory.into();
            self.directories.insert(new.clone());
            new
        });
        self.sessions.insert(session, directory);
    }

    /// Where a session lies; `None` also when its last segment was removed meanwhile.
    pub(super) fn of(&mut self, session: Uuid) -> Option<Arc<Path>> {
        let directory = self.sessions.get(&session)?.clone();
        let has_it = |file: fs::DirEntry| parse(&file.path()).is_some_and(|(of, _)| of == session);
        let mut files = fs::read_dir(&directory).into_iter().flatten().flatten();
        if files.any(has_it) {
            return Some(directory);
        }
        self.sessions.remove(&session);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segments_name_is_read_back() {
        let uuid = Uuid([7; 16]);
        let file = segment(Path::new("/a"), uuid, 12);
        assert_eq!(parse(&file), Some((uuid, 12)));
        assert_eq!(parse(Path::new("/a/store.id")), None);
        assert_eq!(parse(Path::new("/a/x.1.rmk")), None);
        for other in [".012.rmk", ".+12.rmk", ".12.rmk.rmk", "..12.rmk"] {
            let name = format!("/a/{uuid}{other}");
            assert_eq!(parse(Path::new(&name)), None, "{name}");
        }
        let digits = uuid.to_string().replace('-', "");
        assert_eq!(parse(Path::new(&format!("/a/{digits}.12.rmk"))), None);
    }
}
