//! A store in a bucket, for a collector.
//!
//! A put is plain and idempotent: no other object has its name, so after any failure the same bytes are put
//! again. What is created once is compared with what is there: what an answer says proves nothing.

use std::io;
use std::ops::Range;

use object_store::{Error, ObjectStore as _, ObjectStoreExt, PutMode, PutPayload};
use ringmark_collector::store::objects::ObjectStore;
use ringmark_decoder::store::ObjectSource;
use ringmark_format::stream::ack_level;

use super::Bucket;

/// How often an object is created again of which one answer says that it is there, and another that it is not.
const CREATE_AGAIN: usize = 5;

impl Bucket {
    /// Puts an object unless there is one of that name; `false`: there is another one.
    ///
    /// # Errors
    /// Whether it is there is not known. It may come later.
    pub(crate) fn create_only(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let mut failed = None;
        for _ in 0..CREATE_AGAIN {
            let (store, key) = (self.store.clone(), self.key(name)?);
            let payload = PutPayload::from(bytes.to_vec());
            let created = self
                .wait(async move { store.put_opts(&key, payload, PutMode::Create.into()).await });
            let Err(error) = created else {
                return Ok(true);
            };
            // An earlier try that got no answer may be what is there. A conflict may be with one that fails.
            match self.whole(name) {
                Ok(found) => return Ok(found == bytes),
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Err(_) => failed = Some(error),
            }
        }
        let failed = failed.map_or_else(String::new, |error| format!(": {error}"));
        Err(io::Error::other(format!(
            "found no object and could create none{failed}: create it again later"
        )))
    }

    /// All bytes of an object.
    pub(crate) fn whole(&self, name: &str) -> io::Result<Vec<u8>> {
        let (store, key) = (self.store.clone(), self.key(name)?);
        let got = self.wait(async move { store.get(&key).await?.bytes().await });
        Ok(got?.to_vec())
    }

    /// When an object was put, in ns since 1970.
    pub(crate) fn put_ns(&self, name: &str) -> io::Result<u64> {
        let (store, key) = (self.store.clone(), self.key(name)?);
        let about = self.wait(async move { store.head(&key).await })?;
        let ns = about.last_modified.timestamp_nanos_opt();
        Ok(ns.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0))
    }

    /// Deletes an object; `false`: the service says that it is not there.
    pub(crate) fn remove(&self, name: &str) -> io::Result<bool> {
        let (store, key) = (self.store.clone(), self.key(name)?);
        match self.wait(async move { store.delete(&key).await }) {
            Err(Error::NotFound { .. }) => Ok(false),
            deleted => Ok(deleted.map(|()| true)?),
        }
    }
}

impl ObjectStore for Bucket {
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let (store, key) = (self.store.clone(), self.key(name)?);
        let payload = PutPayload::from(bytes.to_vec());
        self.wait(async move { store.put(&key, payload).await })?;
        Ok(())
    }

    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.create_only(name, bytes)?;
        Ok(())
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<String>> {
        let listed = ObjectSource::list(self, prefix)?;
        Ok(listed.into_iter().map(|object| object.name).collect())
    }

    fn get(&self, name: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        ObjectSource::get(self, name, range)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.remove(name)?;
        Ok(())
    }

    fn level(&self) -> u32 {
        ack_level::OBJECT
    }
}
