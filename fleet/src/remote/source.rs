//! A store in a bucket, for a reader: footers are read by their ranges, and so are parts of segments. Other
//! segments that are chosen are read as a whole.

use std::env;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{Error, ObjectStore, ObjectStoreExt};
use ringmark_decoder::store::{ListedObject, ObjectSource};

use super::Bucket;

/// Ends of objects that are requested at the same time.
const AT_A_TIME: usize = 16;

/// Number of the next temporary file of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl ObjectSource for Bucket {
    fn list(&self, prefix: &str) -> io::Result<Vec<ListedObject>> {
        let (store, key) = (self.store.clone(), self.key(prefix)?);
        let all = self.wait(async move { store.list(Some(&key)).try_collect::<Vec<_>>().await })?;
        let mut listed: Vec<_> = all
            .into_iter()
            .filter_map(|object| {
                let name = self.name(&object.location)?;
                let bytes = object.size;
                Some(ListedObject { name, bytes })
            })
            .collect();
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    fn get(&self, name: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        let (store, key) = (self.store.clone(), self.key(name)?);
        let (start, wanted) = (range.start, !range.is_empty());
        let (again, at) = (store.clone(), key.clone());
        if wanted {
            let got = self.wait(async move { store.get_range(&key, range).await });
            match got {
                Ok(bytes) => return Ok(bytes.to_vec()),
                Err(error @ Error::NotFound { .. }) => return Err(error.into()),
                Err(error) => {
                    // There is no such range in an object that is shorter.
                    let about = self.wait(async move { again.head(&at).await });
                    return match about {
                        Ok(about) if about.size <= start => Ok(Vec::new()),
                        _ => Err(error.into()),
                    };
                }
            }
        }
        self.wait(async move { again.head(&at).await })?;
        Ok(Vec::new())
    }

    fn ends(&self, objects: &[ListedObject], bytes: u64) -> Vec<io::Result<Vec<u8>>> {
        let ends = objects.iter().map(|object| {
            let (store, key, range) = (
                self.store.clone(),
                self.key(&object.name),
                object.end(bytes),
            );
            async move {
                match range.is_empty() {
                    true => Ok(Vec::new()),
                    false => Ok(store.get_range(&key?, range).await?.to_vec()),
                }
            }
        });
        let ends: Vec<_> = ends.collect();
        let all = async move { Ok(stream::iter(ends).buffered(AT_A_TIME).collect().await) };
        self.wait(all).unwrap_or_else(|error| {
            let why = || io::Error::other(error.to_string());
            objects.iter().map(|_| Err(why())).collect()
        })
    }

    fn open(&self, name: &str) -> io::Result<File> {
        let (store, key) = (self.store.clone(), self.key(name)?);
        let mut file = unnamed()?;
        let fetched = self.wait(async move {
            let mut pieces = store.get(&key).await?.into_stream();
            while let Some(piece) = pieces.try_next().await? {
                if let Err(error) = file.write_all(&piece) {
                    return Ok(Err(error));
                }
            }
            Ok(file.rewind().map(|()| file))
        });
        fetched?
    }

    fn open_range(&self, name: &str, range: Range<u64>) -> io::Result<File> {
        let bytes = self.get(name, range.clone())?;
        let file = unnamed()?;
        file.write_all_at(&bytes, range.start)?;
        Ok(file)
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(self.url(name))
    }
}

/// A temporary file that is gone when it is closed, however this process ends.
fn unnamed() -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(0o600);
    loop {
        let number = NEXT.fetch_add(1, Relaxed);
        let name = format!("ringmark-segment-{}-{number}", std::process::id());
        let path = env::temp_dir().join(name);
        match options.open(&path) {
            // Another's, who may have chosen the name on purpose.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) => return fs::remove_file(&path).map(|()| file),
        }
    }
}
