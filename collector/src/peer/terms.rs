//! What a collector tells its streamers about acknowledgements, in WELCOME.

use std::time::Duration;

use ringmark_format::attribute::{self, tag};

use super::acks::WINDOW;
use crate::storage::Storage;

/// How long a sync waits for more bytes: one sync for many blocks costs as much as for one.
pub(super) const ACK_AFTER: Duration = Duration::from_millis(1);
/// How long connections may take to say BYE after DRAIN.
pub(crate) const DRAIN_WITHIN: Duration = Duration::from_secs(10);

/// The attributes of WELCOME, of a collector that stores so.
pub(super) fn attributes(store: &Storage) -> Vec<u8> {
    let millis = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    let mut all = Vec::new();
    attribute::push(&mut all, tag::WINDOW, &WINDOW.to_le_bytes());
    for (tag, number) in [
        (tag::ACK_WITHIN, millis(store.ack_within())),
        (tag::END_WITHIN, millis(DRAIN_WITHIN)),
        (tag::ACK_LEVEL, store.level()),
    ] {
        attribute::push(&mut all, tag, &number.to_le_bytes());
    }
    all
}
