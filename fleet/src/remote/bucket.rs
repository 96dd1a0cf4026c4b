//! A connection to a bucket.

use std::io;
use std::sync::{Arc, mpsc};

use object_store::ObjectStore;
use object_store::path::Path;
use tokio::runtime::{Builder, Runtime};

use super::service::{Service, Variables};

/// The objects of a bucket below a prefix.
#[derive(Debug)]
pub(crate) struct Bucket {
    pub(super) store: Arc<dyn ObjectStore>,
    root: Path,
    url: String,
    /// Only a drop takes it away.
    runtime: Option<Runtime>,
}

impl Bucket {
    /// The bucket of an address such as `s3://BUCKET/PREFIX`. Whether it is there, the first call says.
    ///
    /// # Errors
    /// The address is wrong, or settings in the environment are.
    pub(crate) fn open(url: &str) -> io::Result<Self> {
        // A segment that is fetched is an open file while it is read.
        ringmark_console::descriptors::take_all();
        let set = std::env::vars_os().filter_map(|(name, value)| {
            let text = (name.into_string(), value.into_string());
            Some((text.0.ok()?, text.1.ok()?))
        });
        Self::with(set.collect(), url)
    }

    /// The same with these settings.
    pub(super) fn with(set: Variables, url: &str) -> io::Result<Self> {
        let (service, bucket, root) = parse(url)?;
        // Several libraries here want a provider of cryptography, and none says which.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("objects")
            .enable_all()
            .build()?;
        let store = {
            // DNS and others look for a runtime.
            let _inside = runtime.enter();
            service.client(bucket, set)?
        };
        Ok(Self {
            store,
            root,
            url: url.trim_end_matches('/').to_owned(),
            runtime: Some(runtime),
        })
    }

    /// Does it on a thread of its own and waits. It may be called where other things run, too.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        call: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> object_store::Result<T> {
        let (done, result) = mpsc::sync_channel(1);
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move { done.send(call.await) });
        }
        let gone = |source| object_store::Error::Generic {
            store: "objects",
            source: Box::new(source),
        };
        result.recv().map_err(gone)?
    }

    /// The key of an object of the store.
    pub(super) fn key(&self, name: &str) -> io::Result<Path> {
        let name = Path::parse(name).map_err(|error| wrong(&error.to_string()))?;
        Ok(self.root.parts().chain(name.parts()).collect())
    }

    /// The name of an object below the store's root.
    pub(super) fn name(&self, key: &Path) -> Option<String> {
        let parts: Vec<_> = key.prefix_match(&self.root)?.collect();
        let parts: Vec<_> = parts.iter().map(AsRef::as_ref).collect();
        Some(parts.join("/"))
    }

    /// The address of an object.
    pub(super) fn url(&self, name: &str) -> String {
        format!("{}/{name}", self.url)
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        // Nothing waits for it any more, and a drop may happen where waiting is forbidden.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Service, bucket and prefix of an address.
fn parse(url: &str) -> io::Result<(Service, &str, Path)> {
    let expected = || {
        wrong(&format!(
            "found {url:?}, expected s3://BUCKET/PREFIX or az://CONTAINER/PREFIX"
        ))
    };
    let (service, rest) = Service::of(url).ok_or_else(expected)?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = Path::parse(prefix).map_err(|_| expected())?;
    match bucket.is_empty() || rest.contains("//") {
        true => Err(expected()),
        false => Ok((service, bucket, prefix)),
    }
}

fn wrong(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_bucket_and_a_prefix() {
        for (url, service, prefix) in [
            ("s3://b", Service::S3, ""),
            ("s3://b/", Service::S3, ""),
            ("s3://b/a/c/", Service::S3, "a/c"),
            ("az://b/a", Service::Azure, "a"),
        ] {
            let (found, bucket, root) = parse(url).unwrap();
            assert_eq!(
                (found, bucket, root.to_string()),
                (service, "b", prefix.to_owned())
            );
        }
        for other in ["s3://", "s3:///a", "s3://b//a", "s3://b/a/../c", "gs://b"] {
            assert!(parse(other).is_err(), "{other}");
        }
    }

    #[test]
    fn names_are_below_the_prefix() {
        let bucket = Bucket::open("s3://b/a/c/").unwrap();
        let key = bucket.key("raw/v2/x.rms").unwrap();
        assert_eq!(key.to_string(), "a/c/raw/v2/x.rms");
        assert_eq!(bucket.name(&key).unwrap(), "raw/v2/x.rms");
        assert_eq!(bucket.name(&Path::from("a/cd/x")), None);
        assert_eq!(bucket.url("raw/x"), "s3://b/a/c/raw/x");
        assert!(bucket.key("a/../b").is_err() && bucket.key("a//b").is_err());
    }
}
