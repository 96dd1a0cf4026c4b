//! What all sessions of a store share.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::mpsc::UnboundedSender;

use super::budget::Budget;
use super::options::StoreOptions;
use crate::figures::Figures;

/// What all sessions of a store share.
#[derive(Debug)]
pub(super) struct StoreContext {
    pub(super) options: StoreOptions,
    pub(super) figures: Arc<Figures>,
    pub(super) budget: Arc<Budget>,
    /// Segments that are closed and have no index yet.
    pub(super) unindexed: Mutex<Vec<PathBuf>>,
    /// Segments in which damage was found and reported.
    pub(super) damaged: Mutex<BTreeSet<PathBuf>>,
    /// Where notices about damage are sent.
    pub(super) notices: OnceLock<UnboundedSender<String>>,
}

/// What a thread needs to sync a session without keeping it locked.
pub(super) struct SyncHandles {
    /// To be held during the sync.
    pub(super) turn: Arc<Mutex<()>>,
    pub(super) context: Arc<StoreContext>,
}
