//! A connection to a bucket.

use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use object_store::ClientConfigKey::{ConnectTimeout, Timeout};
use object_store::RetryConfig;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use tokio::runtime::{Builder, Runtime};

/// Longest time that a request may take, body included, unless `AWS_TIMEOUT` says another.
const REQUEST_WITHIN: &str = "60s";
/// The same for a connection: `AWS_CONNECT_TIMEOUT`.
const CONNECT_WITHIN: &str = "5s";
/// How often a request is made again before its failure is told. A collector goes on all the same.
const AGAIN: usize = 3;
/// No request is begun again later than this.
const AGAIN_WITHIN: Duration = Duration::from_secs(20);

/// The objects of a bucket below a prefix.
#[derive(Debug)]
pub(crate) struct Bucket {
    pub(super) store: Arc<AmazonS3>,
    root: Path,
    url: String,
    /// Only a drop takes it away.
    runtime: Option<Runtime>,
}

impl Bucket {
    /// The bucket of `s3://BUCKET/PREFIX`. Whether it is there, the first call says.
    ///
    /// # Errors
    /// The address is wrong, or settings in the environment are.
    pub(crate) fn open(url: &str) -> io::Result<Self> {
        Self::with(from_environment(), url)
    }

    /// The same with these settings.
    pub(super) fn with(builder: AmazonS3Builder, url: &str) -> io::Result<Self> {
        let (bucket, root) = parse(url)?;
        let builder = builder.with_bucket_name(bucket).with_retry(RetryConfig {
            max_retries: AGAIN,
            retry_timeout: AGAIN_WITHIN,
            ..RetryConfig::default()
        });
        // Several libraries here want a provider of cryptography, and none says which.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("s3")
            .enable_all()
            .build()?;
        let store = {
            // DNS and others look for a runtime.
            let _inside = runtime.enter();
            builder.build()?
        };
        Ok(Self {
            store: Arc::new(store),
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
            store: "S3",
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

/// Settings in variables of the environment, which other tools for S3 read, too.
fn from_environment() -> AmazonS3Builder {
    let mut builder = AmazonS3Builder::from_env();
    for (key, variable, value) in [
        (Timeout, "AWS_TIMEOUT", REQUEST_WITHIN),
        (ConnectTimeout, "AWS_CONNECT_TIMEOUT", CONNECT_WITHIN),
    ] {
        if std::env::var_os(variable).is_none() {
            builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
        }
    }
    builder
}

/// Bucket and prefix of an address.
fn parse(url: &str) -> io::Result<(String, Path)> {
    let expected = || wrong(&format!("found {url:?}, expected s3://BUCKET/PREFIX"));
    let rest = url.strip_prefix("s3://").ok_or_else(expected)?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = Path::parse(prefix).map_err(|_| expected())?;
    match bucket.is_empty() || rest.contains("//") {
        true => Err(expected()),
        false => Ok((bucket.to_owned(), prefix)),
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
        let parsed = |url| parse(url).map(|(bucket, prefix)| (bucket, prefix.to_string()));
        let found = |bucket: &str, prefix: &str| (bucket.to_owned(), prefix.to_owned());
        assert_eq!(parsed("s3://b").unwrap(), found("b", ""));
        assert_eq!(parsed("s3://b/").unwrap(), found("b", ""));
        assert_eq!(parsed("s3://b/a/c/").unwrap(), found("b", "a/c"));
        for other in ["s3://", "s3:///a", "s3://b//a", "s3://b/a/../c", "gs://b"] {
            assert!(parsed(other).is_err(), "{other}");
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
