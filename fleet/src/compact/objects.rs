//! What a store of objects must do for its tables.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, bail};
use ringmark_collector::store::objects::ObjectStore;
use ringmark_console::extension::store_url;
use ringmark_decoder::store::{ObjectSource, objects_below, refuse_links_in};
use ringmark_format::Uuid;

use super::faults::Faults;
use crate::remote::Bucket;

/// Where files are until they have their names.
const UNNAMED: &str = "tmp";

/// A place for objects.
pub(crate) trait Objects {
    /// Names of the objects below `prefix`, sorted.
    fn list(&self, prefix: &str) -> io::Result<Vec<String>>;

    /// An object, to be read at any place.
    fn open(&self, name: &str) -> io::Result<File>;

    /// The bytes of an object.
    fn get(&self, name: &str) -> io::Result<Vec<u8>>;

    /// Puts an object, in place of one of that name. It is durable when this returns.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// The same, unless there is one of that name: then `false`.
    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<bool>;

    /// Deletes an object; `false`: it is not there.
    fn delete(&self, name: &str) -> io::Result<bool>;

    /// When an object was put, by the clock of the store, in ns since 1970.
    fn put_ns(&self, name: &str) -> io::Result<u64>;
}

/// The place that is at `url`. `writer`: a uuid that no other writer has.
pub(crate) fn place(url: &str, writer: Uuid) -> anyhow::Result<Box<dyn Objects>> {
    Ok(match store_url(Path::new(url)) {
        Some(url) => Box::new(Remote {
            bucket: Bucket::open(url).with_context(|| url.to_owned())?,
            versions: RefCell::default(),
            faults: Faults::of_environment(),
        }),
        None => Box::new(Directory::new(url, writer)?),
    })
}

/// Makes the directory that is at `url`, unless it is there or `url` is no directory.
pub(crate) fn make_directory(url: &str) -> anyhow::Result<()> {
    if store_url(Path::new(url)).is_some() {
        return Ok(());
    }
    let path = named(url)?;
    fs::create_dir_all(&path).with_context(|| path.display().to_string())
}

/// Objects in S3 and the like.
struct Remote {
    bucket: Bucket,
    /// Versions of logs, which never change: they are read once.
    versions: RefCell<HashMap<String, Vec<u8>>>,
    faults: Faults,
}

impl Objects for Remote {
    fn list(&self, prefix: &str) -> io::Result<Vec<String>> {
        ObjectStore::list(&self.bucket, prefix)
    }

    fn open(&self, name: &str) -> io::Result<File> {
        ObjectSource::open(&self.bucket, name)
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        if let Some(known) = self.versions.borrow().get(name) {
            return Ok(known.clone());
        }
        let bytes = self.bucket.whole(name)?;
        if name.contains("/_delta_log/0") {
            let _ = self
                .versions
                .borrow_mut()
                .insert(name.to_owned(), bytes.clone());
        }
        Ok(bytes)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.faults.pass();
        self.bucket.put(name, bytes)?;
        self.faults.pass();
        Ok(())
    }

    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        self.faults.pass();
        let is_created = self.bucket.create_only(name, bytes)?;
        self.faults.pass();
        Ok(is_created)
    }

    fn delete(&self, name: &str) -> io::Result<bool> {
        self.faults.pass();
        self.bucket.remove(name)
    }

    fn put_ns(&self, name: &str) -> io::Result<u64> {
        self.bucket.put_ns(name)
    }
}

/// The path of a directory that is there, named by `file:///PATH` or as it is.
pub(crate) fn path(url: &str) -> anyhow::Result<PathBuf> {
    fs::canonicalize(named(url)?).with_context(|| url.to_owned())
}

/// The same, whether it is there or not.
fn named(url: &str) -> anyhow::Result<PathBuf> {
    if let Some((scheme, _)) = url
        .split_once("://")
        .filter(|(scheme, _)| *scheme != "file")
    {
        bail!("{url}: found {scheme}://, expected a directory as file:///PATH");
    }
    Ok(url.strip_prefix("file://").unwrap_or(url).into())
}

/// Objects that are files below a directory.
struct Directory {
    root: PathBuf,
    /// Name of its next file that has none yet.
    writer: Uuid,
    next: std::cell::Cell<u64>,
    faults: Faults,
}

impl Directory {
    /// The directory of `url`: `file:///PATH` or a path. `writer`: a uuid that no other writer has.
    fn new(url: &str, writer: Uuid) -> anyhow::Result<Self> {
        Ok(Self {
            root: path(url)?,
            writer,
            next: std::cell::Cell::new(0),
            faults: Faults::of_environment(),
        })
    }

    /// Writes a file, gives it its name by `name_it`, and makes both durable.
    fn write(
        &self,
        name: &str,
        bytes: &[u8],
        name_it: impl Fn(&Path, &Path) -> io::Result<()>,
    ) -> io::Result<()> {
        self.faults.pass();
        refuse_links_in(&self.root, &format!("{UNNAMED}/file"))?;
        refuse_links_in(&self.root, name)?;
        let directory = self.root.join(UNNAMED);
        fs::create_dir_all(&directory)?;
        let number = self.next.replace(self.next.get() + 1);
        let unnamed = directory.join(format!("{}.{number}", self.writer));
        let written = File::create(&unnamed).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_data()
        });
        // On a full disk each run would leave one more.
        written.inspect_err(|_| drop(fs::remove_file(&unnamed)))?;
        self.faults.pass();
        let path = self.root.join(name);
        let above = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(above)?;
        let named = name_it(&unnamed, &path);
        let _ = fs::remove_file(&unnamed);
        named?;
        let mut above = Some(above);
        while let Some(directory) = above {
            File::open(directory)?.sync_all()?;
            above = directory.parent().filter(|_| directory != self.root);
        }
        self.faults.pass();
        Ok(())
    }
}

impl Objects for Directory {
    fn list(&self, prefix: &str) -> io::Result<Vec<String>> {
        objects_below(&self.root, prefix)
    }

    fn open(&self, name: &str) -> io::Result<File> {
        File::open(self.root.join(name))
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.root.join(name))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.write(name, bytes, |from, to| fs::rename(from, to))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        match self.write(name, bytes, |from, to| fs::hard_link(from, to)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            written => written.map(|()| true),
        }
    }

    fn delete(&self, name: &str) -> io::Result<bool> {
        self.faults.pass();
        match fs::remove_file(self.root.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            removed => removed.map(|()| true),
        }
    }

    fn put_ns(&self, name: &str) -> io::Result<u64> {
        let changed = fs::metadata(self.root.join(name))?.modified()?;
        let since = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}
