//! Finds a session again in its files, after the collector or the machine stopped, or after the
//! session was forgotten.
//!
//! Positions are not stored anywhere else: they are read from the blocks, or from the index of a
//! closed segment. The last segment may end within a block, which is cut off. Damage before the end
//! stays: other blocks follow it, and the pages in it count as holes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringmark_decoder::store::{self as files, SegmentName};
use ringmark_decoder::{BlockReader, Damage, Fault, Item};
use ringmark_format::Uuid;
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::stream::HostClock;
use zerocopy::FromBytes;

use super::context::StoreContext;
use super::damaged::is_cut;
use super::error::{StoreError, io_at};
use super::positions::Before;
use super::segment::Segment;
use super::session::StoredSession;

/// Reads the session's segments in `directory`, in order, and goes on with the last one. `None`: no
/// segment is left. `content` is what the streamer says in SESSION, in case no segment has it any
/// more.
///
/// # Errors
/// A file cannot be read, or the session would take too much memory.
pub(super) fn session(
    uuid: Uuid,
    directory: &Path,
    content: &[u8],
    context: &Arc<StoreContext>,
) -> Result<Option<StoredSession>, StoreError> {
    let host = directory.file_name().unwrap_or_default().to_string_lossy();
    let mut session = StoredSession::new(uuid, &host, directory.to_owned(), &[], context)?;
    let segments = segments(directory, uuid)?;
    let newest = segments.last().map(|segment| segment.number);
    // A newest segment that is whole at its beginning repeats the schema of all before it.
    // Otherwise these are read although they have indexes.
    let has_beginning = segments.last().is_some_and(|segment| begins(&segment.path));
    for NumberedSegment { number, path } in segments {
        let is_last = Some(number) == newest;
        let index = match !is_last && has_beginning {
            true => files::load_index(&path),
            false => None,
        };
        if let Some(index) = index {
            for slot in &index.slots {
                session.contents.have_until(slot);
            }
            let lost = index.slots.iter().map(|slot| slot.last_lost);
            session.losses.have_lost(lost.fold(0, u64::saturating_add));
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
        let file = File::open(&path).map_err(io_at("open", &path))?;
        session.segments.note_closed(number, file);
    }
    if session.contents.session().is_empty() {
        session.contents.set_session(content);
    }
    session.contents.charge_all()?;
    Ok(Some(session).filter(StoredSession::is_stored))
}

/// Goes on with the last segment, after cutting off what is not whole at its end.
fn go_on(
    number: u32,
    path: &Path,
    found: &SegmentContent,
    session: &mut StoredSession,
    context: &StoreContext,
) -> Result<(), StoreError> {
    // A segment with a beginning that is not whole holds nothing else: it is begun again.
    let is_begun = found.begins_with_all(session);
    if let Some(damage) = found.damage.as_ref().filter(|damage| !damage.is_cut) {
        let from = if is_begun { damage.offset } else { 0 };
        context.keep_end(path, from, &damage.text)?;
    }
    if !is_begun {
        return fs::remove_file(path).map_err(io_at("remove", path));
    }
    let segment = Segment::resume(path, found.bytes)?;
    session.segments.go_on_with(number, segment);
    Ok(())
}

/// Whether the preamble of a segment is whole: a page or counters follow it.
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

/// A segment of a session. The order is that of writing.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NumberedSegment {
    number: u32,
    path: PathBuf,
}

/// The segments of a session in a directory, in order. Empty files are removed.
fn segments(directory: &Path, uuid: Uuid) -> Result<Vec<NumberedSegment>, StoreError> {
    let files = fs::read_dir(directory).map_err(io_at("read", directory))?;
    let mut found = Vec::new();
    for file in files {
        let path = file.map_err(io_at("read", directory))?.path();
        if let Some(SegmentName { session, number }) = files::parse(&path)
            && session == uuid
        {
            // An empty one was cut back to nothing, or lost its content with the power.
            match path.metadata().map_err(io_at("stat", &path))?.len() {
                0 => fs::remove_file(&path).map_err(io_at("remove", &path))?,
                _ => found.push(NumberedSegment { number, path }),
            }
        }
    }
    found.sort();
    Ok(found)
}

/// What reading a segment found.
#[derive(Debug, Default)]
struct SegmentContent {
    /// Bytes of whole blocks, up to the first damage.
    bytes: u64,
    has_session: bool,
    /// Whether pages or counters are in it.
    has_more: bool,
    /// Bytes of the schema stream that it holds.
    schema_bytes: usize,
    damage: Option<FirstDamage>,
    /// Whether blocks follow the damage, or may follow it.
    is_followed: bool,
}

/// The first damage in a segment.
#[derive(Debug)]
struct FirstDamage {
    offset: u64,
    text: String,
    /// Whether it is only that the file ends within a block.
    is_cut: bool,
}

impl SegmentContent {
    /// Whether blocks can be appended: it is whole, or can be cut where the damage at its end
    /// begins.
    fn can_be_written(&self) -> bool {
        self.damage.is_none() || !self.is_followed
    }

    /// Whether it can be read alone: it has SESSION, and all schema known so far.
    fn begins_with_all(&self, session: &StoredSession) -> bool {
        let is_whole = self.has_session && self.schema_bytes == session.contents.schema().len();
        is_whole || self.has_more
    }

    /// Takes note of a block.
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

    /// Takes note of damage.
    fn take_damage(&mut self, damage: &Damage) {
        // After a part that the disk cannot read, blocks may follow unseen.
        self.is_followed |= matches!(damage.fault, Fault::Io(_));
        self.damage.get_or_insert_with(|| FirstDamage {
            offset: damage.offset,
            text: damage.to_string(),
            is_cut: is_cut(&damage.fault),
        });
    }
}

/// Reads a segment into a session, also after damage: a flipped bit costs no more than its block.
fn read(path: &Path, session: &mut StoredSession) -> Result<SegmentContent, StoreError> {
    let mut found = SegmentContent::default();
    let file = File::open(path).map_err(io_at("open", path))?;
    let mut reader = BlockReader::new(&path.display().to_string(), file);
    while let Some(item) = reader.next_item() {
        match item {
            // Damage may be anything, even whole blocks of another session.
            Item::Block(block) if block.header.session != session.uuid.0 => {}
            Item::Block(block) => {
                let before = match found.damage {
                    Some(_) => Before::Damage,
                    None => Before::Whole,
                };
                take(&block.header, block.content, before, session);
                found.take(&block.header, block.content);
            }
            Item::Damage(damage) => found.take_damage(&damage),
        }
    }
    let end = reader.offset();
    found.bytes = found.damage.as_ref().map_or(end, |damage| damage.offset);
    Ok(found)
}

/// Adds what one block says to a session.
fn take(header: &BlockHeader, content: &[u8], before: Before, session: &mut StoredSession) {
    match header.kind {
        kind::SESSION => session.contents.set_session(content),
        kind::SCHEMA => session
            .contents
            .add_stored_schema(header.page_number, content),
        // A page that contradicts itself is left out.
        kind::PAGE => {
            if let Ok(place) = session.contents.place_of(header, content) {
                session.contents.note_page(header, place.slot, before);
            }
        }
        kind::COUNTERS => session.losses.have_counters(content),
        kind::HOST_CLOCK => {
            if let Ok((clock, _)) = HostClock::read_from_prefix(content) {
                session.clocks.stored(clock);
            }
        }
        _ => {}
    }
}
