//! What all sessions of a store share.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use super::budget::Budget;
use super::error::StoreError;
use super::options::{Retention, StoreOptions};
use super::room::Room;
use crate::figures::Figures;
use crate::mutex::lock;
use crate::notice::Notice;

/// Segments that are being written may take one part in this many of what is kept.
const PARTS: u64 = 4;
/// Segments are not made smaller than this: each repeats the schema.
const SEGMENT_BYTES_MIN: u64 = 1 << 20;

/// What all sessions of a store share.
#[derive(Debug)]
pub(super) struct StoreContext {
    /// Identity of the store.
    pub(super) id: [u8; 16],
    /// What it was opened with; what is kept may have changed since.
    pub(super) options: StoreOptions,
    /// What is kept now.
    pub(super) retention: Mutex<Retention>,
    pub(super) figures: Arc<Figures>,
    pub(super) budget: Arc<Budget>,
    pub(super) room: Room,
    /// Size at which a segment is closed now: less than configured where many are open.
    pub(super) segment_bytes: AtomicU64,
    /// Bytes of segments that are kept; `u64::MAX`: all.
    pub(super) keep_bytes: AtomicU64,
    /// Notified when more came than may be kept.
    pub(super) too_much: Notify,
    /// Segments that are closed and have no index yet.
    pub(super) unindexed: Mutex<Vec<PathBuf>>,
    /// Segments in which damage was found and reported.
    pub(super) damaged: Mutex<BTreeSet<PathBuf>>,
    /// Where notices are sent.
    pub(super) notices: OnceLock<UnboundedSender<Notice>>,
}

impl StoreContext {
    /// Sends a notice for the operator.
    pub(super) fn notice(&self, notice: Notice) {
        if let Some(notices) = self.notices.get() {
            let _ = notices.send(notice);
        }
    }

    /// Counts a block that was appended to a segment since `begun`.
    pub(super) fn appended(&self, bytes: u64, begun: Instant) {
        self.figures.write_duration_seconds.count(begun.elapsed());
        Figures::add(&self.figures.stored_bytes_total, bytes);
        let all = self.figures.store_bytes.fetch_add(bytes, Relaxed) + bytes;
        if all > self.keep_bytes.load(Relaxed) {
            self.too_much.notify_one();
        }
    }

    /// Keeps this from now on.
    pub(super) fn keep(&self, retention: Retention) {
        let bytes = retention.bytes.unwrap_or(u64::MAX);
        self.keep_bytes.store(bytes, Relaxed);
        *lock(&self.retention) = retention;
    }

    /// What it was opened with, but for what is kept now.
    pub(super) fn options_now(&self) -> StoreOptions {
        StoreOptions {
            retention: lock(&self.retention).clone(),
            ..self.options.clone()
        }
    }

    /// Takes note of how many sessions write segments: all of these together must be less than may
    /// be kept.
    pub(super) fn open_sessions(&self, count: usize) {
        let share = |most: u64| (most / PARTS / count.max(1) as u64).max(SEGMENT_BYTES_MIN);
        let share = share(self.keep_bytes.load(Relaxed));
        let bytes = self.options.segment_bytes.min(share);
        self.segment_bytes.store(bytes, Relaxed);
    }

    /// Takes note of a failed write, and returns it.
    pub(super) fn failed(&self, error: StoreError) -> StoreError {
        if let Some(notice) = self.room.failed(&error) {
            self.notice(Notice::error(notice));
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
