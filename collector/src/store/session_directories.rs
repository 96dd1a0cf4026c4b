//! Where a session's segments lie: in the directory of the day, the service and the host.
//!
//! A new segment has the ending `.new` until it is durable, so that after a power loss no segment
//! is followed by a later one that lacks less.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringmark_decoder::Stamper;
use ringmark_decoder::store::{files_of_store, parse, parse_with};
use ringmark_format::Uuid;
use ringmark_format::attribute::{Attributes, tag};
use ringmark_format::session::SessionHeader;

use crate::clock::now_ns;
use crate::host_name::{NameTooLong, fits, safe};

/// Ending of a segment that has no name of its own yet.
const UNNAMED: &str = "new";

/// The directory `DAY/SERVICE/HOST` of a session that begins now. `session` is the content of its
/// SESSION block.
///
/// # Errors
/// A name is too long.
pub(super) fn directory(host: &str, session: &[u8]) -> Result<PathBuf, NameTooLong> {
    let service = service(session);
    fits("service", &service)?;
    fits("host", host)?;
    Ok(Path::new(&today()).join(safe(&service)).join(safe(host)))
}

/// The service of a session with this content of SESSION, or the name of its process.
pub(super) fn service(session: &[u8]) -> String {
    let attributes = session.get(SessionHeader::BYTES..).unwrap_or_default();
    let find = |tag| {
        Attributes::new(attributes)
            .find(tag)
            .filter(|v| !v.is_empty())
    };
    let service = find(tag::SERVICE_NAME).or_else(|| find(tag::PROCESS_NAME));
    String::from_utf8_lossy(service.unwrap_or_default()).into_owned()
}

fn today() -> String {
    String::from_utf8_lossy(&Stamper::default().stamp(now_ns())[..10]).into_owned()
}

/// The path of a segment until it is durable, with all before it, and gets its name.
pub(super) fn unnamed(segment: &Path) -> PathBuf {
    segment.with_extension(UNNAMED)
}

/// Removes what a collector that was killed left: unnamed files, of which nothing was acknowledged, and indexes of
/// segments that are gone.
pub(super) fn remove_left(root: &Path) -> io::Result<()> {
    let is_left = |file: &Path| {
        let is = |ending| parse_with(file, ending).is_some();
        is(".new") || is(".idx.new") || (is(".idx") && !file.with_extension("rmk").exists())
    };
    for file in files_of_store(root, is_left)? {
        fs::remove_file(&file)?;
        remove_empty(&file, root);
    }
    Ok(())
}

/// Removes the directories above a removed segment that are empty now, up to the store's root. One
/// that is in use again stays, since it is not empty.
pub(super) fn remove_empty(segment: &Path, root: &Path) {
    let above = segment.ancestors().skip(1);
    let mut removed = above
        .take_while(|directory| *directory != root)
        .map(fs::remove_dir);
    while removed.next().is_some_and(|removed| removed.is_ok()) {}
}

/// The directory of every session in a store. Sessions of one directory share its name: there may
/// be a million of them.
#[derive(Debug, Default)]
pub(super) struct SessionDirectories {
    directories: HashSet<Arc<Path>>,
    sessions: HashMap<Uuid, Arc<Path>>,
}

impl SessionDirectories {
    /// The directories in which these segments lie.
    pub(super) fn of_segments(segments: &[PathBuf]) -> Self {
        let mut places = Self::default();
        for file in segments {
            if let (Some(segment), Some(directory)) = (parse(file), file.parent()) {
                places.insert(segment.session, directory);
            }
        }
        places
    }

    /// Notes where a session lies.
    pub(super) fn insert(&mut self, session: Uuid, directory: &Path) {
        let known = self.directories.get(directory).cloned();
        let directory = known.unwrap_or_else(|| {
            let new: Arc<Path> = directory.into();
            self.directories.insert(new.clone());
            new
        });
        self.sessions.insert(session, directory);
    }

    /// The directory of a session; `None`: it is not known.
    pub(super) fn of(&self, session: Uuid) -> Option<Arc<Path>> {
        self.sessions.get(&session).cloned()
    }

    /// Forgets a session whose last segment was removed.
    pub(super) fn remove(&mut self, session: Uuid) {
        if let Some(directory) = self.sessions.remove(&session)
            // One reference is this one, another one that in the set.
            && Arc::strong_count(&directory) <= 2
        {
            self.directories.remove(&directory);
        }
    }
}

/// Whether a segment of this session lies in a directory. This may wait for the disk.
pub(super) fn has_segments(directory: &Path, session: Uuid) -> bool {
    let is_its = |file: fs::DirEntry| parse(&file.path()).is_some_and(|s| s.session == session);
    let mut files = fs::read_dir(directory).into_iter().flatten().flatten();
    files.any(is_its)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_without_files_go_and_others_stay() {
        let name = format!("ringmark-empty-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let segment = |host: &str| root.join("2026-11-25/service").join(host).join("a.0.rmk");
        for host in ["web-1", "web-2"] {
            fs::create_dir_all(segment(host).parent().unwrap()).unwrap();
        }
        remove_empty(&segment("web-1"), &root);
        assert!(!segment("web-1").parent().unwrap().exists());
        assert!(segment("web-2").parent().unwrap().exists());
        fs::write(segment("web-2"), "").unwrap();
        remove_empty(&segment("web-2"), &root);
        assert!(segment("web-2").exists());
        fs::remove_file(segment("web-2")).unwrap();
        remove_empty(&segment("web-2"), &root);
        assert!(root.exists() && fs::read_dir(&root).unwrap().next().is_none());
        fs::remove_dir(&root).unwrap();
    }
}
