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
pub(super) struct Context {
    pub(super) options: StoreOptions,
    pub(super) figures: Arc<Figures>,
    pub(super) budget: Arc<Budget>,
    /// Segments that are closed and have no index yet.
    pub(super) unindexed: Mutex<Vec<PathBuf>>,
    /// Segments that damage was found in, and told.
    pub(super) damaged: Mutex<BTreeSet<PathBuf>>,
    /// Where people are told.
    pub(super) people: OnceLock<UnboundedSender<String>>,
}
