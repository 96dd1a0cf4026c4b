//! Where sessions are: the directory, the file system that holds it, and how much a session gets.

use std::env;
use std::path::{Path, PathBuf};

use ringmark_ring::{room, session_dir};
use rustix::fs::statvfs;

use super::finding::{Finding, mib};
use super::mounts::Mount;
use crate::sessions::{find, notes};

/// What gives programs another place.
const OTHER_PLACE: &str = "set RINGMARK_DIR to a directory of yours on a tmpfs, for the programs and for \
                           'ringmark'";
/// File systems whose files are memory.
const IN_MEMORY: [&str; 4] = ["tmpfs", "devtmpfs", "ramfs", "hugetlbfs"];

/// What programs of this user find.
pub(super) fn findings(session_bytes: u64) -> Vec<Finding> {
    let directory = session_dir::path();
    let mut findings = vec![self::directory(&directory)];
    // A program would make it, in its parent.
    let mut places = directory.ancestors();
    if let Some(place) = places.find(|place| place.exists()) {
        findings.push(file_system(place));
        findings.push(share(place, session_bytes));
    }
    findings.extend(left_out());
    findings
}

fn directory(directory: &Path) -> Finding {
    const ABOUT: &str = "directory";
    let from = match env::var_os("RINGMARK_DIR") {
        Some(set) if !set.is_empty() => " (RINGMARK_DIR)",
        _ => "",
    };
    let shown = format!("{}{from}", directory.display());
    if let Some(obstacle) = notes::obstacle(directory) {
        return Finding::fails(ABOUT, obstacle, OTHER_PLACE);
    }
    match find::in_directory(directory) {
        Ok(_) if !directory.exists() => {
            Finding::works(ABOUT, format!("{shown}: the first program makes it"))
        }
        Ok(found) => Finding::works(ABOUT, format!("{shown}: {}", sessions(found.len()))),
        Err(error) => Finding::fails(ABOUT, error.to_string(), OTHER_PLACE),
    }
}

fn sessions(number: usize) -> String {
    match number {
        0 => "no session".to_owned(),
        1 => "1 session".to_owned(),
        more => format!("{more} sessions"),
    }
}

fn file_system(place: &Path) -> Finding {
    const ABOUT: &str = "file system";
    let (Some(mount), Ok(space)) = (Mount::of(place), statvfs(place)) else {
        return Finding::limited(ABOUT, "cannot be seen", "mount /proc");
    };
    let bytes = |blocks: u64| mib(blocks.saturating_mul(space.f_frsize));
    let found = format!(
        "{} at {}, {}, {} free of {}",
        mount.kind,
        mount.point.display(),
        mount.options,
        bytes(space.f_bavail),
        bytes(space.f_blocks)
    );
    if IN_MEMORY.contains(&mount.kind.as_str()) {
        return Finding::works(ABOUT, found);
    }
    let found = format!("{found}: its files are on a disk, which rings are then written to");
    Finding::limited(ABOUT, found, OTHER_PLACE)
}

/// How much a session that starts now gets.
fn share(place: &Path, wanted: u64) -> Finding {
    const ABOUT: &str = "session size";
    let (bytes, limit) = room::of_session(place, wanted, 0, &room::own_groups());
    match limit {
        None => Finding::works(ABOUT, format!("{}, the default", mib(bytes))),
        Some(limit) => Finding::limited(
            ABOUT,
            format!("{} in place of {}: {limit}", mib(bytes), mib(wanted)),
            "raise that limit, or run 'ringmark clean' to remove what dead processes left",
        ),
    }
}

/// Programs that wanted a session and have none, and directories that are not looked into.
fn left_out() -> Vec<Finding> {
    let advice = "'ringmark list' shows each with its reason";
    let mut findings = Vec::new();
    let off = notes::off_notes().len();
    if off > 0 {
        let found = format!("running programs that could not start a session: {off}");
        findings.push(Finding::limited("not traced", found, advice));
    }
    let own: PathBuf = session_dir::path();
    let refused = find::refused();
    let others = refused
        .iter()
        .map(ToString::to_string)
        .filter(|text| !text.starts_with(&own.display().to_string()));
    findings.extend(others.map(|found| {
        let advice = "remove it, or give it to the user of its name";
        Finding::limited("left out", found, advice)
    }));
    findings
}
