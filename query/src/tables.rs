//! The files of tables, as DataFusion reads objects: parts of them, and nothing else.

use std::fmt;
use std::ops::Range;

use datafusion::object_store::path::Path;
use datafusion::object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use ringmark_fleet::Source;

/// Where the files are.
pub(crate) struct Tables(pub(crate) Source);

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tables")
    }
}

impl fmt::Display for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tables")
    }
}

fn failed(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic {
        store: "tables",
        source: why.into(),
    }
}

fn refused() -> Error {
    failed("parts of files are read here, and nothing else is done")
}

impl Tables {
    async fn part(&self, name: String, range: Range<u64>) -> Result<Vec<u8>> {
        let (source, bytes) = (self.0.clone(), range.end - range.start);
        let shown = name.clone();
        let read = tokio::task::spawn_blocking(move || source.get(&name, range)).await;
        let read = read
            .map_err(failed)?
            .map_err(|error| failed(format!("{shown}: {error}")))?;
        match read.len() as u64 == bytes {
            true => Ok(read),
            false => Err(failed(format!(
                "{shown}: found {} bytes, expected {bytes}: it is not as its log says",
                read.len()
            ))),
        }
    }
}

#[async_trait::async_trait]
impl ObjectStore for Tables {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let Some(GetRange::Bounded(range)) = options.range else {
            return Err(refused());
        };
        let read = self.part(location.to_string(), range.clone()).await?;
        let meta = ObjectMeta {
            location: location.clone(),
            last_modified: Default::default(),
            size: range.end,
            e_tag: None,
            version: None,
        };
        let payload = GetResultPayload::Stream(stream::once(async { Ok(read.into()) }).boxed());
        Ok(GetResult {
            payload,
            meta,
            range,
            attributes: Attributes::new(),
        })
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(refused())
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Err(refused())
    }

    fn delete_stream(
        &self,
        _: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        stream::once(async { Err(refused()) }).boxed()
    }

    fn list(&self, _: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        stream::once(async { Err(refused()) }).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        Err(refused())
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(refused())
    }
}
