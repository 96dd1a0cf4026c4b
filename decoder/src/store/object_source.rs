//! Where the objects of a store are read from: a directory, or whatever else keeps objects.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::object_names::objects_below;

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// Its name, below the root of the store.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

impl ListedObject {
    /// The range of its last bytes, `bytes` at most.
    #[must_use]
    pub fn end(&self, bytes: u64) -> Range<u64> {
        self.bytes.saturating_sub(bytes)..self.bytes
    }
}

/// The objects of a store, for its readers. All calls may wait for a disk or a network.
pub trait ObjectSource {
    /// The objects below `prefix`, which ends where a part of their names does; sorted by name.
    ///
    /// # Errors
    /// They cannot be listed.
    fn list(&self, prefix: &str) -> io::Result<Vec<ListedObject>>;

    /// Bytes of an object, as far as it has them.
    ///
    /// # Errors
    /// There is none of that name, or it cannot be read.
    fn get(&self, name: &str, range: Range<u64>) -> io::Result<Vec<u8>>;

    /// The last bytes of objects, `bytes` at most of each: one result for each object, in their order.
    fn ends(&self, objects: &[ListedObject], bytes: u64) -> Vec<io::Result<Vec<u8>>> {
        let end = |object: &ListedObject| self.get(&object.name, object.end(bytes));
        objects.iter().map(end).collect()
    }

    /// The whole object as a file, read from its start and then in any order.
    ///
    /// # Errors
    /// As [`Self::get`].
    fn open(&self, name: &str) -> io::Result<File>;

    /// The object as a file that has at least these bytes of it, each at its place.
    ///
    /// # Errors
    /// As [`Self::get`].
    fn open_range(&self, name: &str, _range: Range<u64>) -> io::Result<File> {
        self.open(name)
    }

    /// Where an object is, for messages.
    fn path(&self, name: &str) -> PathBuf;
}

/// A directory in which objects are files.
#[derive(Debug)]
pub struct DirectorySource(PathBuf);

impl DirectorySource {
    /// The store whose root this is.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self(root.to_owned())
    }
}

impl ObjectSource for DirectorySource {
    fn list(&self, prefix: &str) -> io::Result<Vec<ListedObject>> {
        let names = objects_below(&self.0, prefix)?.into_iter();
        let listed = names.map(|name| ListedObject {
            // One that was removed since then is missed when it is opened.
            bytes: self.path(&name).metadata().map_or(0, |about| about.len()),
            name,
        });
        Ok(listed.collect())
    }

    fn get(&self, name: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        let file = File::open(self.path(name))?;
        let bytes = file.metadata()?.len();
        let (from, to) = (range.start.min(bytes), range.end.min(bytes));
        let mut read = vec![0; to.saturating_sub(from) as usize];
        file.read_exact_at(&mut read, from)?;
        Ok(read)
    }

    fn open(&self, name: &str) -> io::Result<File> {
        File::open(self.path(name))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}
