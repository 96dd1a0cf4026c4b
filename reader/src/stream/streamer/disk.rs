//! Pages on disk: what this process spills, and what an earlier one left there.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ringmark_format::Uuid;

use crate::error::ReaderError;
use crate::interval::Interval;
use crate::stream::spill::{self, Spill, SpillDirectory, SpillOptions};
use crate::stream::streamed_session::Spilled;

/// The directory where pages wait while there is no collector, if there is one.
#[derive(Default)]
pub(super) struct Disk {
    directory: Option<Arc<SpillDirectory>>,
    /// What an earlier process left there, of sessions that were not found yet.
    left: HashMap<Uuid, Spill>,
    /// It was full, as a notice says.
    is_full: bool,
    /// When that notice was made.
    told: Interval,
}

/// How often a spill may be said to be full: one that has a little room again and again is not news.
const TELL_EVERY: Duration = Duration::from_secs(60);

impl Disk {
    /// Opens the directory; without options there is none.
    ///
    /// # Errors
    /// The directory cannot be used.
    pub(super) fn open(options: Option<SpillOptions>) -> Result<Self, ReaderError> {
        let Some(options) = options else {
            return Ok(Self::default());
        };
        let opened = spill::open(options)?;
        Ok(Self {
            directory: Some(opened.directory),
            left: opened.sessions,
            is_full: false,
            told: Interval::due(),
        })
    }

    /// What opening it brought to light.
    pub(super) fn notices(&self) -> Vec<String> {
        let notices = self.directory.as_ref().map(|spill| spill.notices.clone());
        notices.unwrap_or_default()
    }

    /// Whether pages may go to disk.
    pub(super) fn is_there(&self) -> bool {
        self.directory.is_some()
    }

    /// Bytes of the pages on disk.
    pub(super) fn used(&self) -> u64 {
        self.directory.as_ref().map_or(0, |spill| spill.used())
    }

    /// The spill of a session: what an earlier process left of it, or a new one.
    pub(super) fn spill_of(&mut self, uuid: Uuid) -> Option<Spill> {
        let left = self.left.remove(&uuid);
        left.or_else(|| Some(Spill::new(self.directory.clone()?, uuid)))
    }

    /// What an earlier process left of sessions that were not found; empty after that.
    pub(super) fn take_left(&mut self) -> HashMap<Uuid, Spill> {
        std::mem::take(&mut self.left)
    }

    /// The notice of a full spill; none before it was half empty again, and none within a minute.
    pub(super) fn notice_if_full(
        &mut self,
        options: Option<&SpillOptions>,
        spilled: &Spilled,
    ) -> Option<String> {
        let (spill, options) = (self.directory.as_ref()?, options?);
        let was_full = self.is_full && spill.used() > options.bytes_max / 2;
        self.is_full = was_full || spilled.is_full;
        if was_full || !spilled.is_full || !self.told.is_due(TELL_EVERY) {
            return None;
        }
        self.told.done();
        let directory = options.directory.display();
        let why = match &spilled.error {
            Some(error) => error.to_string(),
            None if spill.used() > options.bytes_max / 2 => {
                format!("{directory}: the spill is full")
            }
            None => format!("{directory}: its disk is full, before the spill has its size"),
        };
        Some(format!(
            "{why}; pages stay in their rings, what these cannot hold is counted"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_with_a_little_room_again_and_again_is_told_once() {
        let name = format!("ringmark-spill-told-{}", std::process::id());
        let options = SpillOptions {
            directory: std::env::temp_dir().join(name),
            bytes_max: 1 << 30,
        };
        let mut disk = Disk::open(Some(options.clone())).expect("a spill");
        let full = Spilled {
            is_full: true,
            ..Spilled::default()
        };
        let room = Spilled::default();
        let passes = (0..300).map(|pass| if pass % 3 == 0 { &full } else { &room });
        let told: Vec<_> = passes
            .filter_map(|spilled| disk.notice_if_full(Some(&options), spilled))
            .collect();
        drop(disk);
        std::fs::remove_dir_all(&options.directory).expect("its directory");
        assert!(
            matches!(&told[..], [told] if told.contains("its disk is full")),
            "{told:?}"
        );
    }
}
