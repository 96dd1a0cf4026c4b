//! Links in a store: none is followed, by nobody.
//!
//! What reads a store, removes from it or measures its disk means the files below its root. A link to a
//! directory would be written through by one and passed over by another. So whoever meets one where a store
//! has its own files refuses it, and says where it is.

use std::fs;
use std::io;
use std::path::Path;

/// How deep segments lie: `DAY/SERVICE/HOST/`.
pub(super) const DEPTH: usize = 3;

/// The error for a link where a store has a directory or a file of its own.
pub(super) fn refused(path: &Path) -> io::Error {
    io::Error::other(format!(
        "{}: found a symbolic link, expected a directory or file of the store; links in a store are not followed: \
         put back what it leads to, or mount the other disk there",
        path.display()
    ))
}

/// Refuses links among the last directories of a path in a store of one disk: that of the host, of the
/// service and of the day.
///
/// # Errors
/// One of them is a link.
pub fn refuse_links_above(host: &Path) -> io::Result<()> {
    host.ancestors().take(DEPTH).try_for_each(refuse_link)
}

/// Refuses links in a name below the root of a store of objects, the last part of it left out.
///
/// # Errors
/// A directory in it is a link.
pub fn refuse_links_in(root: &Path, name: &str) -> io::Result<()> {
    let above = Path::new(name).ancestors().skip(1);
    above
        .take_while(|part| *part != Path::new(""))
        .try_for_each(|part| refuse_link(&root.join(part)))
}

/// Refuses a path that is a link.
pub(super) fn refuse_link(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(about) if about.is_symlink() => Err(refused(path)),
        _ => Ok(()),
    }
}
