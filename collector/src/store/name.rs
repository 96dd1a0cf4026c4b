//! Where a session's segments lie: in the directory of the day, the service and the host.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ringmark_decoder::Stamper;
use ringmark_decoder::store::{files_of_store, parse, parse_with};
use ringmark_format::Uuid;
use ringmark_format::attribute::{Attributes, tag};
use ringmark_format::session::SessionHeader;

/// Ending of the name of a file that has none yet.
const UNNAMED: &str = "new";
/// Most characters of a name: as many as a DNS name has, and a directory's.
const NAME_MAX: usize = 253;

/// Whether a name is short enough to be a directory's as a whole.
///
/// # Errors
/// It would have to be cut, and could then be another one's.
pub(crate) fn fits(what: &str, name: &str) -> Result<(), String> {
    let found = name.chars().count();
    if found <= NAME_MAX {
        return Ok(());
    }
    Err(format!(
        "the name of the {what} has {found} characters, expected at most {NAME_MAX}"
    ))
}

/// `DAY/SERVICE/HOST` of a session that begins now.
///
/// # Errors
/// A name is too long.
pub(super) fn directory(host: &str, session: &[u8]) -> Result<PathBuf, String> {
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
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let ns = now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX));
    String::from_utf8_lossy(&Stamper::default().stamp(ns)[..10]).into_owned()
}

/// A name of one directory, whatever a peer says: letters, digits, `.`, `_` and `-`, not hidden. As long as what was
/// said, or one character longer: see [`fits`].
pub(crate) fn safe(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = text
        .chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .collect();
    match name.chars().next() {
        None => "unnamed".to_owned(),
        Some('.' | '-') => format!("_{name}"),
        Some(_) => name,
    }
}

/// Where a segment lies until it is durable with all before it, and gets its name.
pub(super) fn unnamed(segment: &Path) -> PathBuf {
    segment.with_extension(UNNAMED)
}

/// Removes what a collector left that was killed: nothing in it was acknowledged.
pub(super) fn remove_unnamed(root: &Path) -> io::Result<()> {
    let endings = [".new", ".idx.new"];
    let is_left = |file: &Path| endings.iter().any(|e| parse_with(file, e).is_some());
    files_of_store(root, is_left)?
        .iter()
        .try_for_each(fs::remove_file)
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
        let long = ["x".repeat(253), format!("-{}", "x".repeat(252))];
        assert_eq!(
            [&long[0], &long[1]].map(|name| safe(name).len()),
            [253, 254]
        );
        assert!(long.iter().all(|name| fits("host", name).is_ok()));
        let found = fits("host", &"ü".repeat(254));
        assert!(found.is_err_and(|why| why.contains("254 characters, expected at most 253")));
    }
}
