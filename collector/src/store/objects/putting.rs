//! A segment on its way to its place: which of its objects is put now, and what follows from each answer.
//!
//! Nothing here reads a clock or puts an object: `uploader` does.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use ringmark_format::Uuid;

use super::open_segment::{OpenSegment, Upload};

/// How long after a failed put the first next try is.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
/// The longest such wait.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(5);

/// What follows from the answer to a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The next object is put.
    Next,
    /// All of the segment is durable.
    Durable,
    /// The same object is put again after this time.
    Again(Duration),
}

/// A segment that is being put: its schema, then itself.
#[derive(Debug)]
pub(in crate::store) struct Putting {
    /// Number of the segment.
    pub(super) number: u64,
    /// Memory that it takes until it is durable.
    pub(in crate::store) held: u64,
    objects: VecDeque<Upload>,
    wait: Duration,
}

impl Putting {
    /// The objects of a closed segment, named by the hour of now and by its collector.
    pub(super) fn new(segment: OpenSegment, hour: &str, collector: Uuid) -> Self {
        Self {
            number: segment.number,
            held: segment.held(),
            objects: segment.objects(hour, collector).into(),
            wait: AGAIN_AFTER,
        }
    }

    /// The object that is put now.
    pub(in crate::store) fn object(&self) -> Option<&Upload> {
        self.objects.front()
    }

    /// Whether the last put of this object failed.
    pub(super) fn has_failed(&self) -> bool {
        self.wait > AGAIN_AFTER
    }

    /// Takes the answer. After a failure the object may be there or not; the same bytes are put under
    /// the same name until there is one that says it is.
    pub(super) fn take(&mut self, answer: &io::Result<()>) -> Then {
        if answer.is_err() {
            let wait = self.wait;
            self.wait = (wait * 2).min(AGAIN_AFTER_MAX);
            return Then::Again(wait);
        }
        let _ = self.objects.pop_front();
        self.wait = AGAIN_AFTER;
        match self.objects.is_empty() {
            true => Then::Durable,
            false => Then::Next,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::open_segment::{Owner, SchemaPiece};
    use super::*;

    #[test]
    fn schema_is_put_first_and_what_failed_again_and_later_each_time() {
        let owner = Owner {
            session: Uuid([1; 16]),
            host: "web-1".to_owned(),
            service: String::new(),
            epoch: 1,
            schema_bytes: 8,
            from: 0,
        };
        let mut segment = OpenSegment::new(4, Instant::now());
        let piece = SchemaPiece::new(&owner, &[0; 320], 0, &[0; 8]);
        segment.add_schema(&owner, piece, Vec::new());
        let mut putting = Putting::new(segment, "2026-11-26-19", Uuid([2; 16]));
        let is_of = |putting: &Putting, begin: &str| {
            let object = putting.object();
            object.is_some_and(|object| object.name.starts_with(begin))
        };
        assert!(is_of(&putting, "schema/") && putting.number == 4);
        let failed = || Err(io::Error::other("503"));
        let waits: Vec<_> = (0..10).map(|_| putting.take(&failed())).collect();
        let again = |millis| Then::Again(Duration::from_millis(millis));
        assert_eq!(waits[..3], [again(20), again(40), again(80)]);
        assert_eq!(waits[9], Then::Again(AGAIN_AFTER_MAX));
        assert!(is_of(&putting, "schema/") && putting.has_failed());
        assert_eq!(putting.take(&Ok(())), Then::Next);
        assert!(is_of(&putting, "raw/") && !putting.has_failed());
        assert_eq!(putting.take(&failed()), again(20), "the wait begins anew");
        assert_eq!(putting.take(&Ok(())), Then::Durable);
    }
}
