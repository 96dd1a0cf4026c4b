//! A session found again in its files: where the collector, or the machine, stopped.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringmark_decoder::store as files;
use ringmark_decoder::{BlockReader, Damage, Fault, Item};
use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::stream::HostClock;
use zerocopy::FromBytes;

use super::context::Context;
use super::damaged::is_cut;
use super::error::{StoreError, io_at};
use super::positions::Before;
use super::segment::Segment;
use super::session::StoredSession;

/// Reads the session's segments in `directory`, in order; goes on with the last one, and cuts off
/// what is not whole at its end. One with damage that blocks follow stays as it is. `None`: nothing
/// is left of it. `content` is what the host says of the session, if no segment says it any more.
pub(super) fn session(
    uuid: Uuid,
    directory: &Path,
    content: &[u8],
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
        let index = match !is_last && has_beginning {
            true => files::load_index(&path),
            false => None,
        };
        if let Some(index) = index {
            index.slots.iter().for_each(|slot| session.have_until(slot));
        } else {
            let found = read(&path, &mut session)?;
            if is_last && found.can_be_written() {
                go_on(number, &path, &found, &mut session, context)?;
                continue;
            }
            if let Some(damage) = &found.damage {
                context.damaged(&path, &damage.text);
            }
        }
        session.number = number + 1;
        session.found(File::open(&path).map_err(io_at("open", &path))?);
    }
    if session.content.is_empty() {
        session.content = content.to_vec();
    }
    session.charge_all()?;
    Ok(Some(session).filter(StoredSession::is_stored))
}

/// Goes on with the last segment, without what is torn at its end.
fn go_on(
    number: u32,
    path: &Path,
    found: &Found,
    session: &mut StoredSession,
    context: &Context,
) -> Result<(), StoreError> {
    // Nothing follows a beginning that is not whole: it is begun again.
    let is_begun = found.begins_with_all(session);
    if let Some(damage) = found.damage.as_ref().filter(|damage| !damage.is_cut) {
        let from = if is_begun { damage.offset } else { 0 };
        context.keep_end(path, from, &damage.text)?;
    }
    if !is_begun {
        return fs::remove_file(path).map_err(io_at("remove", path));
    }
    session.number = number + 1;
    session.found_last(Segment::resume(path, found.bytes)?);
    Ok(())
}

/// Whether a segment's beginning is whole: something stands after it.
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
        if let Some((of, number)) = files::parse(&path)
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
    /// Bytes of whole blocks, up to the first damage.
    bytes: u64,
    has_session: bool,
    /// Pages or counters are in it.
    has_more: bool,
    /// Schema bytes in it.
    schema_bytes: usize,
    /// The first one.
    damage: Option<Damaged>,
    /// Something follows damage, or might.
    is_followed: bool,
}

#[derive(Debug)]
struct Damaged {
    offset: u64,
    text: String,
    /// The file ends within a block.
    is_cut: bool,
}

impl Found {
    /// Whether blocks can be added to it: it is whole, or torn at its end and can be cut there.
    fn can_be_written(&self) -> bool {
        self.damage.is_none() || !self.is_followed
    }

    /// Whether it can be read alone: what was known before stands in it.
    fn begins_with_all(&self, session: &StoredSession) -> bool {
        let is_whole = self.has_session && self.schema_bytes == session.schema.len();
        is_whole || self.has_more
    }

    fn take(&mut self, header: &BlockHeader, content: &[u8]) {
        match header.kind {
            kind::SESSION => self.has_session = true,
            kind::SCHEMA => {
                let end = header.page_number as usize + content.len();
                self.schema_bytes = self.schema_bytes.max(end);
            }
            kind::PAGE | kind::COUNTERS => self.has_more = true,
            _ => {}
        }
        self.is_followed |= self.damage.is_some();
    }

    fn is_damaged(&mut self, damage: &Damage) {
        // What follows a part that the disk does not give is not known.
        self.is_followed |= matches!(damage.fault, Fault::Io(_));
        self.damage.get_or_insert_with(|| Damaged {
            offset: damage.offset,
            text: damage.to_string(),
            is_cut: is_cut(&damage.fault),
        });
    }
}

/// Takes what a segment says, after damage too: a bit that turned costs its block.
fn read(path: &Path, session: &mut StoredSession) -> Result<Found, StoreError> {
    let mut found = Found::default();
    let file = File::open(path).map_err(io_at("open", path))?;
    let mut reader = BlockReader::new(&path.display().to_string(), file);
    while let Some(item) = reader.next_item() {
        match item {
            // In damage lies anything, another session's blocks too.
            Item::Block(block) if block.header.session != session.uuid.0 => {}
            Item::Block(block) => {
                let before = match found.damage {
                    Some(_) => Before::Damage,
                    None => Before::Whole,
                };
                take(&block.header, block.content, before, session);
                found.take(&block.header, block.content);
            }
            Item::Damage(damage) => found.is_damaged(&damage),
        }
    }
    let end = reader.offset();
    found.bytes = found.damage.as_ref().map_or(end, |damage| damage.offset);
    Ok(found)
}

fn take(header: &BlockHeader, content: &[u8], before: Before, session: &mut StoredSession) {
    match header.kind {
        kind::SESSION => session.content = content.to_vec(),
        kind::SCHEMA => {
            let known = session
                .schema
                .len()
                .checked_sub(header.page_number as usize);
            // What stands after a gap is no use: it comes again.
            let new = known.and_then(|known| content.get(known..));
            session.schema.extend_from_slice(new.unwrap_or_default());
        }
        // One that contradicts itself is no page of the session.
        kind::PAGE => {
            if let Ok(place) = session.place_of(header, content) {
                session.have_found(header, place.slot, before);
            }
        }
        kind::HOST_CLOCK => {
            if let Ok((clock, _)) = HostClock::read_from_prefix(content) {
                session.clocks.stored(clock);
            }
        }
        _ => {}
    }
}
