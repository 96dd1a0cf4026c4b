//! Pages on disk: what this process spills, and what an earlier one left there.

use std::collections::HashMap;
use std::sync::Arc;

use ringmark_format::Uuid;

use crate::error::ReaderError;
use crate::stream::spill::{self, Spill, SpillDirectory, SpillOptions};
use crate::stream::streamed_session::Spilled;

/// The directory where pages wait while there is no collector, if there is one.
#[derive(Default)]
pub(super) struct Disk {
    directory: Option<Arc<SpillDirectory>>,
    /// What an earlier process left there, of sessions that were not found yet.
    left: HashMap<Uuid, Spill>,
    /// The notice that it is full was made.
    is_full: bool,
}

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

    /// The notice of a full spill; none before it was half empty again.
    pub(super) fn notice_if_full(
        &mut self,
        options: Option<&SpillOptions>,
        spilled: &Spilled,
    ) -> Option<String> {
        let (spill, options) = (self.directory.as_ref()?, options?);
        let was_full = self.is_full && spill.used() > options.bytes_max / 2;
        self.is_full = was_full || spilled.is_full;
        if was_full || !spilled.is_full {
            return None;
        }
        let why = match &spilled.error {
            Some(error) => error.to_string(),
            None => format!("{}: the spill is full", options.directory.display()),
        };
        Some(format!(
            "{why}; pages stay in their rings, what these cannot hold is counted"
        ))
    }
}
