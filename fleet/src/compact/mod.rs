//! Tables of all that collectors have stored as objects: complete spans, calls and events as Parquet, and a
//! Delta log beside each table that says which files count.
//!
//! [`inputs`] reads the segments that no batch has read; the decoder makes rows of them, and says what the next
//! batch needs. [`files`] writes the rows by date and hour, [`plan`] keeps what is known after a batch, [`log`]
//! reads and writes the logs, [`batch`] puts it all together. [`objects`] is what a store must do.

mod batch;
pub(crate) mod files;
mod inputs;
pub(crate) mod log;
mod objects;
mod plan;
pub(crate) mod time;

use std::fs::File;
use std::io::Read;

use anyhow::{Context, bail};
use ringmark_decoder::duration_ns;
use ringmark_decoder::store::{self, DirectorySource, ObjectSource};
use ringmark_format::Uuid;

use crate::s3::Bucket;
use batch::Compactor;
use objects::Directory;

/// Lines about damage that are printed.
const DAMAGE: usize = 10;

/// What to make tables of.
#[derive(Debug, clap::Args)]
pub(crate) struct Compact {
    /// The store that collectors write to with --objects: file:///DIR or s3://BUCKET/PREFIX
    #[arg(value_name = "URL")]
    store: String,
    /// Where the tables are: a directory [default: the store]
    #[arg(long, value_name = "file:///DIR")]
    into: Option<String>,
    /// A host that said nothing for so long is given up: what it has not sent does not come
    #[arg(long, value_name = "TIME", default_value = "24h")]
    silent: String,
}

/// Makes tables of what is new. Returns whether nothing was damaged.
pub(crate) fn run(options: &Compact) -> anyhow::Result<bool> {
    let silent_ns = duration_ns(&options.silent)
        .with_context(|| format!("--silent {}: expected a time such as 24h", options.silent))?;
    let raw = source(&options.store)?;
    if raw.get(store::OBJECTS_ID, 0..1).is_err() {
        bail!(
            "{}: found no {}, expected a store that 'ringmark collect --objects' writes to",
            options.store,
            store::OBJECTS_ID
        );
    }
    let into = options.into.as_ref().unwrap_or(&options.store);
    let tables = Directory::new(into, new_uuid()?)?;
    let compactor = Compactor {
        raw: &*raw,
        tables: &tables,
        new_id: || Ok(new_uuid()?.to_string()),
        silent_ns,
    };
    let done = compactor.run()?;
    eprintln!(
        "ringmark-fleet: {into}: {} rows of {} segments in {} batches",
        done.rows, done.segments, done.batches
    );
    if done.unended > 0 {
        eprintln!(
            "ringmark-fleet: spans and calls that were open when their session ended: {}",
            done.unended
        );
    }
    if done.waiting > 0 {
        eprintln!(
            "ringmark-fleet: segments that wait for earlier pages or for the end of their sessions: {}",
            done.waiting
        );
    }
    for damage in done.damage.iter().take(DAMAGE) {
        eprintln!("ringmark-fleet: {damage}");
    }
    if done.damage.len() > DAMAGE {
        eprintln!("ringmark-fleet: and {} more", done.damage.len() - DAMAGE);
    }
    Ok(done.damage.is_empty())
}

/// The store that collectors write to.
fn source(url: &str) -> anyhow::Result<Box<dyn ObjectSource>> {
    if url.starts_with("s3://") {
        return Ok(Box::new(Bucket::open(url).with_context(|| url.to_owned())?));
    }
    let path = objects::path(url)?;
    Ok(Box::new(DirectorySource::new(&path)))
}

/// A uuid of chance.
fn new_uuid() -> anyhow::Result<Uuid> {
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.context("/dev/urandom")?;
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    Ok(Uuid(bytes))
}
