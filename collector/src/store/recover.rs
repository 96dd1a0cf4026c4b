//! A session found again in its files: where the collector, or the machine, stopped.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringmark_decoder::{BlockReader, Fault, Item};
use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::stream::HostClock;
use zerocopy::FromBytes;

use super::segment::Segment;
use super::session::StoredSession;
use super::{Context, StoreError, index, io_at, name};

/// Reads the session's segments in `directory`, in order; cuts off what is not whole at the end of
/// the last one and goes on with it. `None`: nothing is left of it. Only the last one may lack
/// something: another one gets its name when those before it are durable.
pub(super) fn session(
    uuid: Uuid,
    directory: &Path,
    context: &Arc<Context>,
) -> Result<Option<StoredSession>, StoreError> {
    let host = directory.file_name().unwrap_or_default().to_string_lossy();
    let mut session = StoredSession::new(uuid, &host, directory.to_owned(), &[], context)?;
    let segments = segments(directory, uuid)?;
    let newest = segments.last().map(|(number, _)| *number);
    // The newest one begins with all that was known; if it may not, none of them is left out.
    let has_beginning = segments.last().is_some_and(|(_, path)| begins(path));
    for (number, path) in segments {
        let is_last = Some(number) == newest;
        if !is_last
            && has_beginning
            && let Some(index) = index::load(&path)
        {
            index.slots.iter().for_each(|slot| session.have_until(slot));
            session.number = number + 1;
            session.found(File::open(&path).map_err(io_at("open", &path))?);
            continue;
        }
        let found = read(&path, is_last, &mut session)?;
        if is_last && !found.begins_with_all(&session) {
            // Nothing stands behind a beginning that is not whole: it is begun again.
            fs::remove_file(&path).map_err(io_at("remove", &path))?;
            continue;
        }
        session.number = number + 1;
        if is_last {
            session.found_last(Segment::resume(&path, found.bytes)?);
        } else {
            session.found(File::open(&path).map_err(io_at("open", &path))?);
        }
    }
    session.charge_all()?;
    Ok(Some(session).filter(StoredSession::is_stored))
}

/// Whether a segment's beginning is whole: something stands behind it.
fn begins(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let mut reader = BlockReader::new("a segment", file);
    while let Some(Item::Block(block)) = reader.next_item() {
        if matches!(block.header.kind, kind::PAGE | kind::COUNTERS) {
            return true;
        }
    }
    false
}

fn segments(directory: &Path, uuid: Uuid) -> Result<Vec<(u32, PathBuf)>, StoreError> {
    let files = fs::read_dir(directory).map_err(io_at("read", directory))?;
    let mut found = Vec::new();
    for file in files {
        let path = file.map_err(io_at("read", directory))?.path();
        if let Some((of, number)) = name::parse(&path)
            && of == uuid
        {
            // One that was cut, or whose content did not come to the disk before the power went.
            match path.metadata().map_err(io_at("stat", &path))?.len() {
                0 => fs::remove_file(&path).map_err(io_at("remove", &path))?,
                _ => found.push((number, path)),
            }
        }
    }
    found.sort();
    Ok(found)
}

/// What is there of a segment.
#[derive(Debug, Default)]
struct Found {
    /// Bytes of whole blocks.
    bytes: u64,
    has_session: bool,
    /// Schema bytes in it.
    schema_bytes: usize,
}

impl Found {
    /// Whether it can be read alone: what was known before stands in it.
    fn begins_with_all(&self, session: &StoredSession) -> bool {
        self.has_session && self.schema_bytes == session.schema.len()
    }

    fn take(&mut self, header: &BlockHeader, content: &[u8]) {
        match header.kind {
            kind::SESSION => self.has_session = true,
            kind::SCHEMA => {
                let end = header.page_number as usize + content.len();
                self.schema_bytes = self.schema_bytes.max(end);
            }
            _ => {}
        }
    }
}

/// Takes what a segment says. `is_last`: it was being written; what lies behind the first damage
/// was never acknowledged as a whole, and does not count.
fn read(path: &Path, is_last: bool, session: &mut StoredSession) -> Result<Found, StoreError> {
    let mut found = Found::default();
    let file = File::open(path).map_err(io_at("open", path))?;
    let mut reader = BlockReader::new(&path.display().to_string(), file);
    while let Some(item) = reader.next_item() {
        let damage = match item {
            Item::Block(block) => {
                take(&block.header, block.content, session)?;
                found.take(&block.header, block.content);
                continue;
            }
            Item::Damage(damage) => damage,
        };
        if is_last {
            let is_cut = matches!(
                damage.fault,
                Fault::TruncatedHeader { .. } | Fault::TruncatedContent { .. }
            );
            if !is_cut {
                keep_copy(path)?;
            }
            found.bytes = damage.offset;
            return Ok(found);
        }
    }
    found.bytes = reader.offset();
    Ok(found)
}

/// What is about to be cut off is more than one block: somebody may want to look at it.
fn keep_copy(path: &Path) -> Result<(), StoreError> {
    let copy = path.with_extension("damaged");
    let copied = fs::copy(path, &copy);
    copied.map(drop).map_err(io_at("copy", path))
}

fn take(
    header: &BlockHeader,
    content: &[u8],
    session: &mut StoredSession,
) -> Result<(), StoreError> {
    match header.kind {
        kind::SESSION => session.content = content.to_vec(),
        kind::SCHEMA => {
            let known = session
                .schema
                .len()
                .checked_sub(header.page_number as usize);
            // What stands behind a gap is no use.
            let new = known.and_then(|known| content.get(known..));
            session.schema.extend_from_slice(new.unwrap_or_default());
        }
        kind::PAGE => {
            let (_, slot) = session.is_new(header, content)?;
            session.have(header, slot);
        }
        kind::HOST_CLOCK => {
            if let Ok((clock, _)) = HostClock::read_from_prefix(content) {
                session.clocks.stored(clock);
            }
        }
        _ => {}
    }
    Ok(())
}
