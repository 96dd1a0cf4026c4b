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

/// The path of a segment until it is durable, with all before it, and gets its name.
pub(super) fn unnamed(segment: &Path) -> PathBuf {
    segment.with_extension(UNNAMED)
}

/// Removes the unnamed files of a collector that was killed: nothing in them was acknowledged.
pub(super) fn remove_unnamed(root: &Path) -> io::Result<()> {
    let endings = [".new", ".idx.new"];
    let is_left = |file: &Path| endings.iter().any(|e| parse_with(file, e).is_some());
    files_of_store(root, is_left)?
        .iter()
        .try_for_each(fs::remove_file)
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

    /// The directory of a session; `None`: it is not known, or its last segment was removed.
    pub(super) fn of(&mut self, session: Uuid) -> Option<Arc<Path>> {
        let directory = self.sessions.get(&session)?.clone();
        let has_it = |file: fs::DirEntry| parse(&file.path()).is_some_and(|s| s.session == session);
        let mut files = fs::read_dir(&directory).into_iter().flatten().flatten();
        if files.any(has_it) {
            return Some(directory);
        }
        self.sessions.remove(&session);
        None
    }
}
