//! A segment on its way to its place: which of its objects may be put now, and what follows from each answer.
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
    /// Another object may be put.
    Next,
    /// All of the segment is durable.
    Durable,
    /// The same object is put again after this time.
    Again(Duration),
}

/// A segment that is being put: its schema, in any order and several at the same time, then itself.
#[derive(Debug)]
pub(in crate::store) struct Putting {
    /// Number of the segment.
    pub(super) number: u64,
    /// Memory that it takes until it is durable.
    pub(in crate::store) held: u64,
    /// Schema of which no put has begun.
    schema: VecDeque<Upload>,
    /// The segment itself, until its put begins.
    segment: Option<Upload>,
    /// Objects whose put has begun and has not succeeded.
    under_way: usize,
    /// Those of them whose last put failed.
    failing: usize,
}

/// An object whose put has begun.
#[derive(Debug)]
pub(in crate::store) struct PutObject {
    pub(in crate::store) upload: Upload,
    wait: Duration,
}

impl PutObject {
    /// Whether its last put failed.
    fn has_failed(&self) -> bool {
        self.wait > AGAIN_AFTER
    }
}

/// What of an answer is worth a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worth {
    Nothing,
    /// The first failure while no other object fails.
    Fails,
    /// The end of the last failure.
    IsPut,
}

impl Putting {
    /// The objects of a closed segment, named by the hour of now and by its collector.
    pub(super) fn new(segment: OpenSegment, hour: &str, collector: Uuid) -> Self {
        let (number, held) = (segment.number, segment.held());
        let (schema, segment) = segment.objects(hour, collector);
        Self {
            number,
            held,
            schema: schema.into(),
            segment: Some(segment),
            under_way: 0,
            failing: 0,
        }
    }

    /// How many objects can be put at the same time now.
    pub(super) fn at_once(&self) -> usize {
        self.schema.len().max(1)
    }

    /// Begins the put of the next object; `None`: there is none that may be put now.
    pub(in crate::store) fn begin(&mut self) -> Option<PutObject> {
        let upload = match self.schema.pop_front() {
            Some(schema) => schema,
            // A segment that is there says that its schema is.
            None if self.under_way == 0 => self.segment.take()?,
            None => return None,
        };
        self.under_way += 1;
        Some(PutObject {
            upload,
            wait: AGAIN_AFTER,
        })
    }

    /// Takes the answer to the put of an object. After a failure it may be there or not; the same bytes are put under
    /// the same name until there is one that says it is.
    pub(super) fn take(
        &mut self,
        object: &mut PutObject,
        answer: &io::Result<()>,
    ) -> (Then, Worth) {
        let failed_before = object.has_failed();
        if answer.is_err() {
            let wait = object.wait;
            object.wait = (wait * 2).min(AGAIN_AFTER_MAX);
            self.failing += usize::from(!failed_before);
            let is_first = !failed_before && self.failing == 1;
            let worth = if is_first {
                Worth::Fails
            } else {
                Worth::Nothing
            };
            return (Then::Again(wait), worth);
        }
        self.under_way -= 1;
        self.failing -= usize::from(failed_before);
        let is_last = failed_before && self.failing == 0;
        let worth = if is_last {
            Worth::IsPut
        } else {
            Worth::Nothing
        };
        let is_durable = self.under_way == 0 && self.segment.is_none();
        let then = if is_durable {
            Then::Durable
        } else {
            Then::Next
        };
        (then, worth)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::open_segment::{Owner, SchemaPiece};
    use super::*;

    /// A segment with the schema of this many sessions.
    fn putting(sessions: u8) -> Putting {
        let mut segment = OpenSegment::new(4, Instant::now());
        for session in 1..=sessions {
            let owner = Owner {
                session: Uuid([session; 16]),
                host: "web-1".to_owned(),
                service: String::new(),
                epoch: 1,
                schema_bytes: 8,
                from: 0,
            };
            let piece = SchemaPiece::new(&owner, &[0; 320], 0, &[0; 8]);
            segment.add_schema(&owner, piece, Vec::new());
        }
        Putting::new(segment, "2026-11-26-19", Uuid([99; 16]))
    }

    fn is_of(object: &PutObject, begin: &str) -> bool {
        object.upload.name.starts_with(begin)
    }

    #[test]
    fn schema_is_put_first_and_what_failed_again_and_later_each_time() {
        let mut putting = putting(1);
        let mut schema = putting.begin().unwrap();
        assert!(is_of(&schema, "schema/") && putting.number == 4);
        let failed = || Err(io::Error::other("503"));
        let answers: Vec<_> = (0..10)
            .map(|_| putting.take(&mut schema, &failed()))
            .collect();
        let again = |millis| Then::Again(Duration::from_millis(millis));
        assert_eq!(answers[0], (again(20), Worth::Fails));
        assert_eq!(answers[1], (again(40), Worth::Nothing));
        assert_eq!(answers[9], (Then::Again(AGAIN_AFTER_MAX), Worth::Nothing));
        assert!(putting.begin().is_none(), "its schema is not there");
        assert_eq!(
            putting.take(&mut schema, &Ok(())),
            (Then::Next, Worth::IsPut)
        );
        let mut segment = putting.begin().unwrap();
        assert!(is_of(&segment, "raw/") && putting.begin().is_none());
        let (then, _) = putting.take(&mut segment, &failed());
        assert_eq!(then, again(20), "the wait begins anew");
        assert_eq!(putting.take(&mut segment, &Ok(())).0, Then::Durable);
    }

    #[test]
    fn schema_is_put_at_the_same_time_and_the_segment_after_all_of_it() {
        let mut putting = putting(3);
        assert_eq!(putting.at_once(), 3);
        let mut all: Vec<_> = std::iter::from_fn(|| putting.begin()).collect();
        assert!(all.len() == 3 && all.iter().all(|object| is_of(object, "schema/")));
        let failed = || Err(io::Error::other("503"));
        // One notice for what fails at the same time, and one for its end.
        assert_eq!(putting.take(&mut all[2], &failed()).1, Worth::Fails);
        assert_eq!(putting.take(&mut all[0], &failed()).1, Worth::Nothing);
        for (object, worth) in [(2, Worth::Nothing), (1, Worth::Nothing), (0, Worth::IsPut)] {
            assert!(putting.begin().is_none(), "schema is missing");
            let answer = putting.take(&mut all[object], &Ok(()));
            assert_eq!(answer, (Then::Next, worth));
        }
        assert!(is_of(&putting.begin().unwrap(), "raw/"));
    }
}
