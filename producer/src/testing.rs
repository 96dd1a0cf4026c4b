//! For tests of code that records events: what this thread has recorded since a mark.
//!
//! Tests that run in threads of one process do not see each other's events. Nothing of this is in a
//! program that does not use it.
//!
//! ```
//! use ringmark::event;
//! use ringmark::testing::{Mark, Recorded};
//!
//! fn send(bytes: u32, to: &str) {
//!     event!("queue.sent", bytes = bytes, to = to);
//! }
//!
//! let mark = Mark::here().expect("a session");
//! send(512, "peer");
//! let events: Vec<Recorded> = mark.events();
//! assert_eq!(events.len(), 1);
//! assert_eq!(events[0].name, "queue.sent");
//! assert_eq!(events[0].field("bytes"), Some("512"));
//! assert_eq!(events[0].field("to"), Some("peer"));
//! ```

pub use crate::recorded::Recorded;
use crate::{Session, StartError};

/// A place in what this thread records: made by [`Mark::here`].
///
/// ```
/// use ringmark::{span, testing::Mark};
///
/// let mark = Mark::here().expect("a session");
/// drop(span!("parse", file = "a.txt"));
/// let names: Vec<String> = mark.events().into_iter().map(|event| event.name).collect();
/// assert_eq!(names, ["parse"]);
/// ```
#[derive(Debug)]
pub struct Mark {
    session: Session,
    records: Vec<u64>,
    /// It holds for the thread that made it.
    _here: core::marker::PhantomData<*const ()>,
}

impl Mark {
    /// What comes from here on. Starts a session if there is none.
    ///
    /// # Errors
    /// There is no session, and none can be started: why.
    pub fn here() -> Result<Self, StartError> {
        let session = match Session::current() {
            Some(session) => session,
            None => Session::builder().start()?,
        };
        Ok(Self {
            records: session.reservations(),
            session,
            _here: core::marker::PhantomData,
        })
    }

    /// The events of this thread since the mark, in the order in which they were recorded: a span when it ends.
    ///
    /// # Panics
    /// When some of them were overwritten, as the ring is too small for them.
    #[must_use]
    pub fn events(&self) -> Vec<Recorded> {
        let (events, gone) = self.session.own_events(&self.records);
        assert_eq!(
            gone, 0,
            "events since the mark were overwritten: start a session with a larger ring before"
        );
        events
    }
}
