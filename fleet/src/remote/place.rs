//! A store in a bucket, for a collector.
//!
//! A put is plain and idempotent: no other object has its name, so after any failure the same bytes are put
//! again. Only the store's identity is created, and what an answer to that says proves nothing.

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
    /// Whether an object is there.
    fn has(&self, name: &str) -> io::Result<bool> {
        let (store, key) = (self.store.clone(), self.key(name)?);
        match self.wait(async move { store.head(&key).await }) {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
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
        for _ in 0..CREATE_AGAIN {
            let (store, key) = (self.store.clone(), self.key(name)?);
            let payload = PutPayload::from(bytes.to_vec());
            let created = self
                .wait(async move { store.put_opts(&key, payload, PutMode::Create.into()).await });
            match created {
                Ok(_) => return Ok(()),
                // An earlier try that got no answer may be what is there. A conflict may be with one that fails.
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                    if self.has(name)? {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::other(
            "found that it is there, and that it is not: create it again later",
        ))
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<String>> {
        let listed = ObjectSource::list(self, prefix)?;
        Ok(listed.into_iter().map(|object| object.name).collect())
    }

    fn get(&self, name: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        ObjectSource::get(self, name, range)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        let (store, key) = (self.store.clone(), self.key(name)?);
        self.wait(async move { store.delete(&key).await })?;
        Ok(())
    }

    fn level(&self) -> u32 {
        ack_level::OBJECT
    }
}
