//! Objects as files of a directory: `file:///PATH`.
//!
//! An object is written under another name, synced, and then gets its own, so that no reader sees a part
//! of it. What a killed collector leaves lies in `tmp/`, under a name of that collector. The next collector
//! that starts an hour later or more removes it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ringmark_decoder::store::{
    ID_FILE, OBJECTS_ID, RAW, SCHEMA, objects_below, parse_with, refuse_links_in,
};
use ringmark_format::Uuid;
use ringmark_format::stream::ack_level;

use super::object_store::{ObjectStore, check_name};
use crate::mutex::lock;
use crate::store::error::{NotAStore, StoreError, io_at};
use crate::store::identity::is_blank;
use crate::store::options::SyncMode;
use crate::store::store_directory::DirectoryOptions;

/// Where objects are written until they have their names.
const UNNAMED: &str = "tmp";
/// How long a file there was not written to that no collector is writing. Should one do it all the same, its put fails
/// and is done again.
const LEFT_AFTER: Duration = Duration::from_secs(3600);
/// Directories that are remembered as durable.
const DURABLE_MAX: usize = 4096;

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
    /// Directories of which the names are durable, with all above them.
    durable: Mutex<BTreeSet<PathBuf>>,
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
        for part in [UNNAMED, RAW, SCHEMA] {
            let at_start = refuse_links_in(root, &format!("{part}/object"));
            at_start.map_err(io_at("use", root))?;
        }
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
            None => {
                remove_left(&root.join(UNNAMED));
                Ok(Self {
                    root: root.to_owned(),
                    sync,
                    directory,
                    collector,
                    next: AtomicU64::new(0),
                    durable: Mutex::default(),
                })
            }
        }
    }

    /// Writes a file that has no name of its own yet, and returns its path.
    fn write(&self, bytes: &[u8]) -> io::Result<PathBuf> {
        refuse_links_in(&self.root, &format!("{UNNAMED}/file"))?;
        let directory = self.root.join(UNNAMED);
        let _ = self.directory.make_directory(&directory)?;
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
        refuse_links_in(&self.root, name)?;
        let is_made = self.directory.make_directory(above)?;
        name_it(unnamed, &path)?;
        match self.sync {
            SyncMode::Disk => self.make_durable(above, is_made),
            SyncMode::Cache => Ok(()),
        }
    }

    /// Makes the names in a directory durable, and its own name and those of all above it if they may not be.
    fn make_durable(&self, directory: &Path, is_made: bool) -> io::Result<()> {
        sync(directory)?;
        if !is_made && lock(&self.durable).contains(directory) {
            return Ok(());
        }
        let is_below = |path: &&Path| path.starts_with(&self.root);
        let mut above = directory.ancestors().skip(1).take_while(is_below);
        above.try_for_each(sync)?;
        let mut durable = lock(&self.durable);
        if durable.len() >= DURABLE_MAX {
            durable.clear();
        }
        let _ = durable.insert(directory.to_owned());
        Ok(())
    }
}

/// Makes the names in a directory durable.
fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Removes what killed collectors left without a name.
fn remove_left(unnamed: &Path) {
    let is_left = |path: &Path| {
        let about = path.symlink_metadata().ok().filter(fs::Metadata::is_file);
        let written = about.and_then(|about| about.modified().ok());
        let age = written.and_then(|written| written.elapsed().ok());
        parse_with(path, "").is_some() && age.is_some_and(|age| age >= LEFT_AFTER)
    };
    let files = fs::read_dir(unnamed).into_iter().flatten().flatten();
    let left = files.map(|file| file.path()).filter(|path| is_left(path));
    left.for_each(|path| {
        let _ = fs::remove_file(path);
    });
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
    use std::time::SystemTime;

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
        let refused = objects.list("raw").unwrap_err().to_string();
        assert!(refused.contains("found a symbolic link"), "{refused}");
        assert!(objects.put("raw/v2/a", b"ours").is_err() && !outside.join("v2").exists());
        drop(objects);
        assert!(scene.open().is_err(), "nor does a collector start");
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
    fn what_killed_collectors_left_goes_and_nothing_else() {
        let scene = Scene::new("left");
        let unnamed = scene.0.join(UNNAMED);
        fs::create_dir_all(&unnamed).unwrap();
        let put = |name: String, minutes: u64| {
            let file = File::create(unnamed.join(&name)).unwrap();
            let before = SystemTime::now() - Duration::from_secs(60 * minutes);
            file.set_modified(before).unwrap();
            name
        };
        let of = |collector| Uuid([collector; 16]);
        let gone = put(format!("{}.7", of(2)), 61);
        let kept = [
            put(format!("{}.8", of(2)), 59),
            put(format!("{}.0", of(3)), 0),
            put("notes.1".to_owned(), 100_000),
            put(format!("{}.x", of(2)), 100_000),
        ];
        let objects = scene.open().unwrap();
        assert!(!unnamed.join(gone).exists());
        for name in kept {
            assert!(unnamed.join(&name).exists(), "{name}");
        }
        objects.put("raw/v2/a", b"1").unwrap();
    }

    #[test]
    fn a_directory_that_is_made_again_is_durable_again() {
        let scene = Scene::new("durable");
        let objects = scene.open().unwrap();
        let known = || lock(&objects.durable).len();
        objects.put("schema/web-1/x/a", b"1").unwrap();
        objects.put("schema/web-1/x/b", b"1").unwrap();
        assert_eq!(known(), 1, "the directories above are synced once");
        fs::remove_dir_all(scene.0.join("schema")).unwrap();
        let above = scene.0.join("schema/web-1/x");
        assert!(objects.directory.make_directory(&above).unwrap());
        assert!(!objects.directory.make_directory(&above).unwrap());
        objects.put("schema/web-1/x/a", b"1").unwrap();
        assert_eq!(objects.list("schema").unwrap(), ["schema/web-1/x/a"]);
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
