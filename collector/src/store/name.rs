//! Where a session's segments lie, and what they are called.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ringmark_decoder::Stamper;
use ringmark_format::Uuid;
use ringmark_format::attribute::{Attributes, tag};
use ringmark_format::session::SessionHeader;

/// Ending of a segment's name.
pub(super) const ENDING: &str = ".rmk";
/// Ending of the name of a file that has none yet.
const UNNAMED: &str = "new";

/// `DAY/SERVICE/HOST` of a session that begins now.
pub(super) fn directory(host: &str, session: &[u8]) -> PathBuf {
    let attributes = session.get(SessionHeader::BYTES..).unwrap_or_default();
    let find = |tag| {
        Attributes::new(attributes)
            .find(tag)
            .filter(|v| !v.is_empty())
    };
    let service = find(tag::SERVICE_NAME).or_else(|| find(tag::PROCESS_NAME));
    let service = String::from_utf8_lossy(service.unwrap_or_default());
    Path::new(&today()).join(safe(&service)).join(safe(host))
}

fn today() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let ns = now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX));
    String::from_utf8_lossy(&Stamper::default().stamp(ns)[..10]).into_owned()
}

/// A name of one directory, whatever a peer says: letters, digits, `.`, `_` and `-`, not hidden.
pub(crate) fn safe(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = text
        .chars()
        .take(64)
        .map(|c| if allowed(c) { c } else { '_' })
        .collect();
    match name.chars().next() {
        None => "unnamed".to_owned(),
        Some('.' | '-') => format!("_{name}"),
        Some(_) => name,
    }
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
    let name = file.file_name()?.to_str()?.strip_suffix(ENDING)?;
    let (uuid, number) = name.rsplit_once('.')?;
    let digits: String = uuid.chars().filter(|c| *c != '-').collect();
    let uuid = u128::from_str_radix(&digits, 16)
        .ok()
        .filter(|_| digits.len() == 32)?;
    Some((Uuid(uuid.to_be_bytes()), number.parse().ok()?))
}

/// All segments below `root`.
pub(super) fn segments(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = dumps_below(root)?;
    found.retain(|path| parse(path).is_some());
    Ok(found)
}

/// Files with the ending of dumps, as deep as a store is: `DAY/SERVICE/HOST/`; in the order of
/// their names.
///
/// # Errors
/// A directory cannot be read.
pub fn dumps_below(root: &Path) -> io::Result<Vec<PathBuf>> {
    files_below(root, &ENDING[1..])
}

/// Removes what a collector left that was killed: nothing in it was acknowledged.
pub(super) fn remove_unnamed(root: &Path) -> io::Result<()> {
    files_below(root, UNNAMED)?
        .iter()
        .try_for_each(fs::remove_file)
}

fn files_below(root: &Path, ending: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut directories = vec![(root.to_owned(), 0)];
    while let Some((directory, depth)) = directories.pop() {
        for entry in fs::read_dir(&directory)? {
            let (path, kind) = entry.and_then(|e| Ok((e.path(), e.file_type()?)))?;
            if kind.is_dir() && depth < 3 {
                directories.push((path, depth + 1));
            } else if kind.is_file() && path.extension().is_some_and(|e| e == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
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
    fn a_peer_cannot_leave_the_store() {
        for (said, name) in [
            ("web-1", "web-1"),
            ("../../etc", "_.._.._etc"),
            ("..", "_.."),
            ("a/b\0c\n", "a_b_c_"),
            ("", "unnamed"),
            ("ü", "_"),
        ] {
            assert_eq!(safe(said), name);
        }
        assert_eq!(safe(&"x".repeat(1000)).len(), 64);
    }

    #[test]
    fn a_segments_name_is_read_back() {
        let uuid = Uuid([7; 16]);
        let file = segment(Path::new("/a"), uuid, 12);
        assert_eq!(parse(&file), Some((uuid, 12)));
        assert_eq!(parse(Path::new("/a/store.id")), None);
        assert_eq!(parse(Path::new("/a/x.1.rmk")), None);
    }
}
