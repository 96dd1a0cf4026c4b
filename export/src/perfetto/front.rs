//! The first fields of an event: what it is, its name, its track.

use super::fields::event;
use super::proto::Short;

/// The first fields of an event.
pub(super) struct About {
    pub(super) kind: u64,
    /// Number of its name.
    pub(super) name: Option<u64>,
    /// `None`: the track of its sequence.
    pub(super) track: Option<u64>,
}

impl About {
    #[inline]
    pub(super) fn front(&self) -> Short {
        let mut front = Short::default();
        front.number(event::TYPE, self.kind);
        if let Some(name) = self.name {
            front.number(event::NAME_IID, name);
        }
        if let Some(track) = self.track {
            front.number(event::TRACK_UUID, track);
        }
        front
    }

    pub(super) const fn begin(name: u64, track: Option<u64>) -> Self {
        Self {
            kind: event::SLICE_BEGIN,
            name: Some(name),
            track,
        }
    }

    pub(super) const fn end(track: Option<u64>) -> Self {
        Self {
            kind: event::SLICE_END,
            name: None,
            track,
        }
    }

    pub(super) const fn instant(name: Option<u64>, track: Option<u64>) -> Self {
        Self {
            kind: event::INSTANT,
            name,
            track,
        }
    }

    pub(super) const fn counter(track: u64) -> Self {
        Self {
            kind: event::COUNTER,
            name: None,
            track: Some(track),
        }
    }
}
