//! A store in a bucket, for a reader: footers are read by their ranges, and only segments that are chosen as a
//! whole.

use std::env;
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures_util::TryStreamExt;
use object_store::{Error, ObjectStore, ObjectStoreExt};
use ringmark_decoder::store::{ListedObject, ObjectSource};

use super::Bucket;

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

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(self.url(name))
    }
}

/// A temporary file that is gone when it is closed, however this process ends.
fn unnamed() -> io::Result<File> {
    let number = NEXT.fetch_add(1, Relaxed);
    let name = format!("ringmark-segment-{}-{number}", std::process::id());
    let path = env::temp_dir().join(name);
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}
