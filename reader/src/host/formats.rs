//! The formats of the sessions that are there, which may be of programs with another version of the
//! library.

use std::cmp::Ordering;

use ringmark_format::{VERSION_MAJOR, VERSION_MINOR};
use ringmark_ring::RingFileError;

use super::finding::Finding;
use crate::error::ReaderError;
use crate::sessions::find;
use crate::sessions::session::{Access, Session};

/// How many sessions have which format.
#[derive(Debug, Default)]
struct Formats {
    same: u32,
    older: u32,
    /// A later minor version: what is new in it is passed over.
    newer: u32,
    /// A later major version: they cannot be read.
    unreadable: u32,
    damaged: u32,
}

/// What of it can be read.
pub(super) fn finding() -> Finding {
    let mut formats = Formats::default();
    for place in find::all() {
        match Session::open_found(&place, Access::Observe) {
            Ok(session) => {
                let header = session.header();
                formats.count((header.version_major, header.version_minor));
            }
            Err(ReaderError::RingFile {
                source: RingFileError::NewerMajor { .. },
                ..
            }) => formats.unreadable += 1,
            Err(error) if error.is_starting() => {}
            Err(_) => formats.damaged += 1,
        }
    }
    formats.finding()
}

impl Formats {
    fn count(&mut self, version: (u16, u16)) {
        match version.cmp(&(VERSION_MAJOR, VERSION_MINOR)) {
            Ordering::Less => self.older += 1,
            Ordering::Equal => self.same += 1,
            Ordering::Greater => self.newer += 1,
        }
    }

    fn finding(&self) -> Finding {
        const ABOUT: &str = "formats";
        let counts = [
            (self.same, "sessions of this version"),
            (self.older, "older, read as well"),
            (self.newer, "newer: what is new in them is passed over"),
            (self.unreadable, "too new to be read"),
            (self.damaged, "not readable: 'ringmark list' shows why"),
        ];
        let mut found = format!("format {VERSION_MAJOR}.{VERSION_MINOR}");
        for (number, what) in counts.iter().filter(|(number, _)| *number > 0) {
            found += &format!("; {number} {what}");
        }
        if self.newer + self.unreadable > 0 {
            let advice = "use the 'ringmark' that belongs to these programs' library";
            return Finding::limited(ABOUT, found, advice);
        }
        if self.damaged > 0 {
            return Finding::limited(ABOUT, found, "'ringmark clean' removes those of the dead");
        }
        Finding::works(ABOUT, found)
    }
}

#[cfg(test)]
mod tests {
    use ringmark_format::{VERSION_MAJOR, VERSION_MINOR};

    use super::super::Verdict;
    use super::Formats;

    #[test]
    fn newer_formats_are_a_limit_and_older_ones_are_none() {
        let of = |versions: &[(u16, u16)]| {
            let mut formats = Formats::default();
            versions.iter().for_each(|version| formats.count(*version));
            formats.finding()
        };
        let ours = (VERSION_MAJOR, VERSION_MINOR);
        assert_eq!(of(&[]).verdict, Verdict::Works);
        let old = of(&[ours, ours, (VERSION_MAJOR, 0)]);
        assert_eq!(old.verdict, Verdict::Works);
        assert!(
            old.found
                .ends_with("; 2 sessions of this version; 1 older, read as well")
        );
        let new = of(&[(VERSION_MAJOR, VERSION_MINOR + 1)]);
        assert_eq!(new.verdict, Verdict::Limited);
        assert!(new.found.contains("; 1 newer"), "{}", new.found);
    }
}
