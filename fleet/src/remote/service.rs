//! The services that keep objects. Here alone they differ: in their addresses, and in their settings, which are
//! variables of the environment that other tools read, too.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::{ObjectStore, Result, RetryConfig};

/// Longest time that a request may take, body included, unless a variable says another: `AWS_TIMEOUT`.
const REQUEST_WITHIN: &str = "60s";
/// The same for a connection: `AWS_CONNECT_TIMEOUT`.
const CONNECT_WITHIN: &str = "5s";
/// How often a request is made again before its failure is told. A collector goes on all the same.
const AGAIN: usize = 3;
/// No request is begun again later than this.
const AGAIN_WITHIN: Duration = Duration::from_secs(20);

/// A service that keeps objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    /// S3, or what speaks its protocol.
    S3,
    /// Azure Blob Storage.
    Azure,
}

/// Names and values of variables of the environment.
pub(super) type Variables = Vec<(String, String)>;

/// A builder with the variables of this prefix.
macro_rules! builder {
    ($builder:ty, $prefix:literal, $variables:expr) => {{
        let mut builder = <$builder>::new().with_retry(RetryConfig {
            max_retries: AGAIN,
            retry_timeout: AGAIN_WITHIN,
            ..RetryConfig::default()
        });
        for (key, value) in [
            ("timeout", REQUEST_WITHIN),
            ("connect_timeout", CONNECT_WITHIN),
        ] {
            builder = builder.with_config(key.parse()?, value);
        }
        for (name, value) in $variables {
            if name.starts_with($prefix)
                && let Ok(key) = name.to_ascii_lowercase().parse()
            {
                builder = builder.with_config(key, value);
            }
        }
        builder
    }};
}

impl Service {
    const SCHEMES: [(&str, Self); 2] = [("s3://", Self::S3), ("az://", Self::Azure)];

    /// The service of an address, and the rest of it.
    pub(super) fn of(url: &str) -> Option<(Self, &str)> {
        let mut all = Self::SCHEMES.into_iter();
        all.find_map(|(scheme, service)| Some((service, url.strip_prefix(scheme)?)))
    }

    /// A client of a bucket, or of a container, as Azure calls it.
    pub(super) fn client(self, bucket: &str, set: Variables) -> Result<Arc<dyn ObjectStore>> {
        Ok(match self {
            Self::S3 => {
                let builder = builder!(AmazonS3Builder, "AWS_", set);
                Arc::new(builder.with_bucket_name(bucket).build()?)
            }
            Self::Azure => {
                let builder = builder!(MicrosoftAzureBuilder, "AZURE_", set);
                Arc::new(builder.with_container_name(bucket).build()?)
            }
        })
    }
}
