//! What becomes of each request.

use tokio::sync::Notify;

/// Any error: the program ends with it, and the test shows it.
pub(crate) type Failed = Box<dyn std::error::Error + Send + Sync>;

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Quick,
    Slow,
    /// Its client goes away while it waits for the answer.
    Cancelled,
    /// Part of it runs on a thread for blocking work.
    Blocking,
    /// It reports all that there is to report.
    Wide,
}

impl Fate {
    pub(crate) fn of(letter: char) -> Option<Self> {
        match letter {
            'q' => Some(Self::Quick),
            's' => Some(Self::Slow),
            'c' => Some(Self::Cancelled),
            'b' => Some(Self::Blocking),
            'w' => Some(Self::Wide),
            _ => None,
        }
    }
}

/// A request, known by its place.
pub(crate) struct Order {
    pub(crate) fate: Fate,
    /// The handler waits: the client may go away.
    pub(crate) is_waiting: Notify,
}

impl Order {
    pub(crate) fn new(fate: Fate) -> Self {
        let is_waiting = Notify::new();
        Self { fate, is_waiting }
    }
}

pub(crate) type Orders = Vec<Order>;
