//! Tables of all that collectors have stored as objects: complete spans, calls and events as Parquet, and a
//! Delta log beside each table that says which files count.
//!
//! [`inputs`] reads the segments that no batch has read; the decoder makes rows of them, and says what the next
//! batch needs. [`files`] writes the rows by date and hour, which [`rows`] gathers, [`losses`] what is not there, [`plan`] keeps what is known after a batch, with [`forgotten`] and [`given_up`] sessions, which [`undo`] takes back, [`tables`] what all are called, [`log`]
//! reads and writes the logs, [`snapshot`] is what one says, [`store_clock`] what time it is, [`checkpoint`] what engines read in their place, [`batch`] puts it all together. [`merge`] makes one
//! file of small ones, [`remove`] removes a host, [`retention`] and [`orphans`] delete what is not needed any more, [`list`] names the files that count.
//! [`objects`] is what a store must do, [`faults`] where a test ends the process.
//! [`now`] reads the tables for queries.

mod added_file;
mod batch;
mod checkpoint;
mod faults;
mod files;
mod forgotten;
mod given_up;
mod inputs;
mod list;
mod log;
mod losses;
mod merge;
mod now;
mod objects;
mod orphans;
mod plan;
mod remove;
mod retention;
mod rows;
mod snapshot;
mod store_clock;
mod tables;
mod time;
mod undo;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};
use ringmark_cli::CompactOptions;
use ringmark_console::extension::store_url;
use ringmark_decoder::duration_ns;
use ringmark_decoder::store::{self, DirectorySource, ObjectSource};
use ringmark_format::Uuid;
use serde_json::{Value, json};

use crate::remote::Bucket;
pub use added_file::AddedFile;
use batch::{Compactor, Done};
pub(crate) use files::table_of;
pub(crate) use forgotten::Forgotten;
pub(crate) use inputs::read_schema_of;
pub(crate) use list::{TableFiles, list};
pub(crate) use now::TablesNow;
use objects::Objects;
pub(crate) use objects::path;
use remove::Removal;
use retention::Raw;
use store_clock::StoreClock;

/// Lines about damage that are printed.
const DAMAGE: usize = 10;

/// Files that no log names stay as long: a run that goes on has some, and ends within half of it.
const ORPHANS_NS: u64 = 24 * time::HOUR_NS;

/// Makes tables of what is new. Returns whether nothing was damaged.
pub(crate) fn run(options: &CompactOptions) -> anyhow::Result<bool> {
    let silent_ns = time_of("--silent", &options.silent)?;
    // What is wrong is said before anything is done.
    if let Some(text) = &options.keep_raw {
        time_of("--keep-raw", text)?;
    }
    let raw = source(&options.store)?;
    if let Some(into) = &options.into {
        objects::make_directory(into)?;
    }
    let into = options.into.as_ref().unwrap_or(&options.store);
    let tables = &*objects::place(into, new_uuid()?)?;
    let compactor = Compactor {
        raw: &*raw,
        tables,
        new_id: || Ok(new_uuid()?.to_string()),
        silent_ns,
    };
    let done = compactor.run()?;
    report(into, &done);
    let mut told = json!({
        "rows": done.rows,
        "batches": done.batches,
        "segments": done.segments,
        "waiting_segments": done.waiting,
        "unended": done.unended,
        "late_pages": done.late,
        "late_segments": done.plan.late.len(),
        "damaged": done.damage.len(),
    });
    let clock = StoreClock::of(&inputs::segments(&*raw)?);
    let (before, after) = match options.merge {
        true => merge::merge(tables, (&new_uuid()?.to_string(), clock.stamp_ns()))?,
        false => (0, 0),
    };
    if options.merge {
        eprintln!("ringmark-fleet: {into}: {before} small files are {after} now");
    }
    (told["merged_files"], told["merged_into"]) = (before.into(), after.into());
    delete(options, (&*raw, tables), (&done, clock), &mut told)?;
    if let Some(line) = options.compacted(told) {
        println!("{line}");
    }
    Ok(done.damage.is_empty())
}

/// Deletes what is not needed or wanted any more, and says how much.
fn delete(
    options: &CompactOptions,
    (source, tables): (&dyn ObjectSource, &dyn Objects),
    (done, clock): (&Done, StoreClock),
    told: &mut Value,
) -> anyhow::Result<()> {
    let into = options.into.as_ref().unwrap_or(&options.store);
    let (mut segments, mut schema, mut rows) = (0, 0, 0);
    if let Some(text) = &options.keep_raw {
        let objects = &*objects::place(&options.store, new_uuid()?)?;
        let keep_ns = time_of("--keep-raw", text)?;
        (segments, schema) = Raw { source, objects }.delete(&done.plan, keep_ns)?;
        eprintln!(
            "ringmark-fleet: {}: {segments} segments and {schema} schema objects deleted",
            options.store
        );
    }
    if let Some(host) = &options.rm_host {
        let removal = Removal {
            objects: tables,
            host,
            writer: new_uuid()?.to_string(),
            stamp_ns: clock.stamp_ns(),
        };
        rows = removal.run()?;
        let host = host.escape_debug();
        eprintln!("ringmark-fleet: {into}: {rows} rows of {host} removed");
    }
    let now_ns = clock.now_ns();
    checkpoint::write(tables, now_ns)?;
    retention::tables(tables, now_ns)?;
    let orphans = orphans::delete(tables, (now_ns, ORPHANS_NS), &new_uuid()?.to_string())?;
    if orphans > 0 {
        eprintln!("ringmark-fleet: {into}: {orphans} files deleted that no log names");
    }
    told["deleted_segments"] = segments.into();
    told["deleted_schema"] = schema.into();
    told["removed_rows"] = rows.into();
    told["deleted_orphans"] = orphans.into();
    Ok(())
}

/// A time of an option, in ns.
fn time_of(option: &str, text: &str) -> anyhow::Result<u64> {
    duration_ns(text).with_context(|| format!("{option} {text}: expected a time such as 24h"))
}

fn report(into: &str, done: &Done) {
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
    if done.taken_back > 0 {
        eprintln!(
            "ringmark-fleet: sessions that go on, as their hosts were given up and are heard again: {}",
            done.taken_back
        );
    }
    if let Some(doubt) = &done.doubt {
        eprintln!("ringmark-fleet: {into}: {doubt}");
    }
    if done.late > 0 {
        eprintln!(
            "ringmark-fleet: pages that came more than a week after their session ended or their host was given up, without rows: {}",
            done.late
        );
    }
    if !done.plan.late.is_empty() {
        eprintln!(
            "ringmark-fleet: segments that are damaged or have such pages, and are kept: {}",
            done.plan.late.len()
        );
    }
    for damage in done.damage.iter().take(DAMAGE) {
        eprintln!("ringmark-fleet: {damage}");
    }
    if done.damage.len() > DAMAGE {
        eprintln!("ringmark-fleet: and {} more", done.damage.len() - DAMAGE);
    }
}

/// The store that collectors write to.
fn source(url: &str) -> anyhow::Result<Box<dyn ObjectSource>> {
    let source: Box<dyn ObjectSource> = match store_url(Path::new(url)) {
        Some(url) => Box::new(Bucket::open(url).with_context(|| url.to_owned())?),
        None => Box::new(DirectorySource::new(&objects::path(url)?)),
    };
    if source.get(store::OBJECTS_ID, 0..1).is_err() {
        bail!(
            "{url}: found no {}, expected a store that 'ringmark collect --objects' writes to",
            store::OBJECTS_ID
        );
    }
    Ok(source)
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
