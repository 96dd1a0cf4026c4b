//! Objects as files of a directory: `file:///PATH`.
//!
//! An object is written under another name, synced, and then gets its own, so that no reader sees a part
//! of it. What a killed collector leaves lies in `tmp/`, under a name of that collector.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ringmark_decoder::store::{ID_FILE, OBJECTS_ID, objects_below};
use ringmark_format::Uuid;
use ringmark_format::stream::ack_level;

use super::object_store::{ObjectStore, check_name};
use crate::store::error::{NotAStore, StoreError, io_at};
use crate::store::identity::is_blank;
use crate::store::options::SyncMode;
use crate::store::store_directory::DirectoryOptions;

/// Where objects are written until they have their names.
const UNNAMED: &str = "tmp";

/// A directory of objects.
#[derive(Debug)]
pub struct FileObjects {
    root: PathBuf,
    sync: SyncMode,
    directory: DirectoryOptions,
    /// The collector, whose files in `tmp/` no other one touches.
    collector: Uuid,
    /// Number of its next file there.
    next: AtomicU64,
}

impl FileObjects {
    /// Opens a directory, or makes it. `collector` is a uuid that no other collector has.
    ///
    /// # Errors
    /// It cannot be made, or holds other files.
    pub fn open(
        root: &Path,
        sync: SyncMode,
        directory: DirectoryOptions,
        collector: Uuid,
    ) -> Result<Self, StoreError> {
        let made = directory.make_root(root);
        made.map_err(io_at("create", root))?;
        let has = |name: &str| root.join(name).symlink_metadata().is_ok();
        // Another collector may be about to put the identity, or was killed before.
        let blank = is_blank(root, &[ID_FILE, UNNAMED]).map_err(io_at("read", root))?;
        let source = match () {
            () if has(ID_FILE) => Some(NotAStore::OneDisk),
            () if blank || has(OBJECTS_ID) || directory.init => None,
            () => Some(NotAStore::OtherObjects),
        };
        match source {
            Some(source) => Err(StoreError::NotOurs {
                path: root.to_owned(),
                source,
            }),
            None => Ok(Self {
                root: root.to_owned(),
                sync,
                directory,
                collector,
                next: AtomicU64::new(0),
            }),
        }
    }

    /// Writes a file that has no name of its own yet, and returns its path.
    fn write(&self, bytes: &[u8]) -> io::Result<PathBuf> {
        let directory = self.root.join(UNNAMED);
        self.directory.make_directory(&directory)?;
        let number = self.next.fetch_add(1, Relaxed);
        let path = directory.join(format!("{}.{number}", self.collector));
        let write = || {
            let mut file = self.directory.create(&path)?;
            file.write_all(bytes)?;
            match self.sync {
                SyncMode::Disk => file.sync_data(),
                SyncMode::Cache => Ok(()),
            }
        };
        let written = write();
        if written.is_err() {
            let _ = fs::remove_file(&path);
        }
        written.map(|()| path)
    }

    /// Gives a written file its name by `name_it`, and makes the name durable.
    fn name(
        &self,
        unnamed: &Path,
        name: &str,
        name_it: impl Fn(&Path, &Path) -> io::Result<()>,
    ) -> io::Result<()> {
        let path = self.root.join(name);
        let above = path.parent().unwrap_or(&self.root);
        self.directory.make_directory(above)?;
        name_it(unnamed, &path)?;
        let mut above = Some(above).filter(|_| self.sync == SyncMode::Disk);
        while let Some(directory) = above {
            File::open(directory)?.sync_all()?;
            above = directory.parent().filter(|_| directory != self.root);
        }
        Ok(())
    }
}

impl ObjectStore for FileObjects {
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        check_name(name)?;
        let unnamed = self.write(bytes)?;
        let named = self.name(&unnamed, name, |from, to| fs::rename(from, to));
        if named.is_err() {
            let _ = fs::remove_file(&unnamed);
        }
        named
    }

    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        check_name(name)?;
        let unnamed = self.write(bytes)?;
        let named = self.name(&unnamed, name, |from, to| match fs::hard_link(from, to) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        });
        fs::remove_file(&unnamed)?;
        named
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<String>> {
        check_name(prefix)?;
        objects_below(&self.root, prefix)
    }

    fn get(&self, name: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        check_name(name)?;
        let file = File::open(self.root.join(name))?;
        let bytes = file.metadata()?.len();
        let (from, to) = (range.start.min(bytes), range.end.min(bytes));
        let mut read = vec![0; to.saturating_sub(from) as usize];
        file.read_exact_at(&mut read, from)?;
        Ok(read)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        fs::remove_file(self.root.join(name))
    }

    fn level(&self) -> u32 {
        match self.sync {
            SyncMode::Disk => ack_level::DISK,
            SyncMode::Cache => ack_level::CACHE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that is removed at the end.
    struct Scene(PathBuf);

    impl Scene {
        fn new(name: &str) -> Self {
            let name = format!("ringmark-objects-{name}-{}", std::process::id());
            let root = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&root);
            Self(root)
        }

        fn open(&self) -> Result<FileObjects, StoreError> {
            let directory = DirectoryOptions::default();
            FileObjects::open(&self.0, SyncMode::Disk, directory, Uuid([1; 16]))
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn objects_are_put_listed_read_and_deleted() {
        let scene = Scene::new("all");
        let objects = scene.open().unwrap();
        objects.put("raw/v2/b", b"12345").unwrap();
        objects.put("raw/v2/a", b"1").unwrap();
        objects.put("raw/v2/a", b"1").unwrap();
        objects.put("schema/x", b"").unwrap();
        objects.create("id", b"first").unwrap();
        objects.create("id", b"second").unwrap();
        assert_eq!(objects.list("raw").unwrap(), ["raw/v2/a", "raw/v2/b"]);
        assert_eq!(objects.list("none").unwrap(), [""; 0]);
        assert_eq!(objects.get("raw/v2/b", 1..3).unwrap(), b"23");
        assert_eq!(objects.get("raw/v2/b", 3..99).unwrap(), b"45");
        assert_eq!(objects.get("raw/v2/b", 9..12).unwrap(), b"");
        assert_eq!(objects.get("id", 0..99).unwrap(), b"first");
        objects.delete("raw/v2/b").unwrap();
        assert!(objects.get("raw/v2/b", 0..1).is_err() && objects.delete("raw/v2/b").is_err());
        let left = fs::read_dir(scene.0.join(UNNAMED)).unwrap().count();
        assert_eq!(left, 0, "nothing is left without a name");
    }

    #[test]
    fn no_name_leads_out_of_the_store() {
        let scene = Scene::new("names");
        let objects = scene.open().unwrap();
        for name in [
            "",
            "/etc/x",
            "a/../../x",
            "a//b",
            ".hidden",
            "a/.",
            "a b",
            "a\n",
            "a/",
        ] {
            assert!(objects.put(name, b"").is_err(), "{name:?}");
            assert!(objects.create(name, b"").is_err(), "{name:?}");
            assert!(objects.delete(name).is_err() && objects.get(name, 0..1).is_err());
        }
        let outside = scene.0.with_extension("outside");
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("a"), "theirs").unwrap();
        std::os::unix::fs::symlink(&outside, scene.0.join("raw")).unwrap();
        assert_eq!(
            objects.list("raw").unwrap(),
            [""; 0],
            "links are not followed"
        );
        fs::remove_dir_all(&outside).unwrap();
    }

    #[test]
    fn a_store_that_another_collector_begins_is_not_refused() {
        let scene = Scene::new("begun");
        fs::create_dir_all(scene.0.join(UNNAMED)).unwrap();
        fs::write(scene.0.join(UNNAMED).join("other.0"), "{").unwrap();
        let objects = scene.open().unwrap();
        objects.put("raw/v2/a", b"1").unwrap();
        assert!(scene.0.join(UNNAMED).join("other.0").exists());
    }

    #[test]
    fn a_directory_of_others_is_no_store() {
        let scene = Scene::new("others");
        fs::create_dir_all(&scene.0).unwrap();
        fs::write(scene.0.join("mine"), "1").unwrap();
        let why = scene.open().unwrap_err().to_string();
        assert!(
            why.contains("expected a store of objects or an empty"),
            "{why}"
        );
        fs::write(scene.0.join(ID_FILE), "1").unwrap();
        let why = scene.open().unwrap_err().to_string();
        assert!(why.contains("--store"), "{why}");
        assert_eq!(fs::read_to_string(scene.0.join("mine")).unwrap(), "1");
    }
}
