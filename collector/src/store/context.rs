//! What all sessions of a store share.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::mpsc::UnboundedSender;

use super::budget::Budget;
use super::error::StoreError;
use super::options::StoreOptions;
use super::room::Room;
use crate::figures::Figures;

/// What all sessions of a store share.
#[derive(Debug)]
pub(super) struct StoreContext {
    pub(super) options: StoreOptions,
    pub(super) figures: Arc<Figures>,
    pub(super) budget: Arc<Budget>,
    pub(super) room: Room,
    /// Segments that are closed and have no index yet.
    pub(super) unindexed: Mutex<Vec<PathBuf>>,
    /// Segments in which damage was found and reported.
    pub(super) damaged: Mutex<BTreeSet<PathBuf>>,
    /// Where notices are sent.
    pub(super) notices: OnceLock<UnboundedSender<String>>,
}

impl StoreContext {
    /// Sends a notice for the operator.
    pub(super) fn notice(&self, text: String) {
        if let Some(notices) = self.notices.get() {
            let _ = notices.send(text);
        }
    }

    /// Takes note of a failed write, and returns it.
    pub(super) fn failed(&self, error: StoreError) -> StoreError {
        if let Some(notice) = self.room.failed(&error) {
            self.notice(notice);
        }
        error
    }
}

/// What a thread needs to sync a session without keeping it locked.
pub(super) struct SyncHandles {
    /// To be held during the sync.
    pub(super) turn: Arc<Mutex<()>>,
    pub(super) context: Arc<StoreContext>,
}
