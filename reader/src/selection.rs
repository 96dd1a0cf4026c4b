//! Which sessions a recorder records, and how it finds new ones.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringmark_ring::identity;

use crate::error::ReaderError;
use crate::find::{self, Found};
use crate::session::{Access, Session};

/// How often a session that somebody else records is tried again.
const BUSY_AGAIN: Duration = Duration::from_secs(1);

/// Which sessions to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Those of one process, by the caller's number for it.
    Pid(u32),
    /// The one ring file.
    Path(PathBuf),
    /// All that this user may read, present and future.
    All,
    /// All that carry this tag (`key=value`), present and future.
    Tag(String),
}

impl Selection {
    /// Whether sessions that do not exist yet are selected: such a recording only ends when told.
    #[must_use]
    pub fn is_open_ended(&self) -> bool {
        matches!(self, Self::All | Self::Tag(_))
    }

    fn wants(&self, session: &Session) -> bool {
        match self {
            Self::Pid(pid) => {
                let header = session.header();
                header.pid == *pid && header.pid_namespace == identity::own_pid_namespace()
            }
            Self::Path(path) => session.path() == path,
            Self::All => true,
            Self::Tag(text) => session.has_tag(text),
        }
    }
}

/// Finds sessions of a selection, each once.
#[derive(Debug)]
pub(crate) struct Finder {
    selection: Selection,
    seen: HashSet<Found>,
    /// Sessions that somebody else records, and when that was last seen.
    busy: HashMap<Found, Instant>,
}

impl Finder {
    pub(crate) fn new(selection: Selection) -> Self {
        Self {
            selection,
            seen: HashSet::new(),
            busy: HashMap::new(),
        }
    }

    /// What is there at the start. A selection by pid or path must be there.
    pub(crate) fn first(&mut self) -> Result<Vec<Session>, ReaderError> {
        let places = match &self.selection {
            Selection::Pid(pid) => find::by_pid(*pid)?,
            Selection::Path(path) => vec![Found::at(path)],
            Selection::Tag(_) => return Ok(Vec::new()),
            Selection::All => {
                // Waiting in a place that is refused would last for ever.
                let mut refused = find::refused();
                return match refused.len() >= find::directories().len() {
                    true => Err(refused.swap_remove(0)),
                    false => Ok(Vec::new()),
                };
            }
        };
        let mut sessions = Vec::new();
        for place in places {
            sessions.push(Session::open_found(&place, Access::Consume)?);
            self.seen.insert(place);
        }
        Ok(sessions)
    }

    /// Sessions that appeared since the last call, and what stood in the way of others.
    pub(crate) fn news(&mut self) -> (Vec<Session>, Vec<ReaderError>) {
        if matches!(self.selection, Selection::Path(_)) {
            return Default::default();
        }
        let places = find::all();
        self.seen.retain(|place| places.contains(place));
        self.busy.retain(|place, _| places.contains(place));
        let mut news = (Vec::new(), Vec::new());
        for place in places {
            let waits = |at: &Instant| at.elapsed() < BUSY_AGAIN;
            if !self.seen.contains(&place) && !self.busy.get(&place).is_some_and(waits) {
                self.look_at(place, &mut news);
            }
        }
        news
    }

    /// Finds the session of this ring file anew next time.
    pub(crate) fn forget(&mut self, path: &Path) {
        self.seen.retain(|place| place.path != path);
    }

    fn look_at(&mut self, place: Found, news: &mut (Vec<Session>, Vec<ReaderError>)) {
        // Looked at first: only what is wanted is locked.
        let wanted = match Session::open_found(&place, Access::Observe) {
            Ok(session) => self.selection.wants(&session),
            Err(error) if error.is_starting() => return,
            Err(error) => {
                news.1.push(error);
                false
            }
        };
        if wanted {
            match Session::open_found(&place, Access::Consume) {
                Ok(session) => news.0.push(session),
                Err(error @ ReaderError::Busy { .. }) => {
                    // Its recorder may be killed: then it is ours. Told once.
                    if self.busy.insert(place, Instant::now()).is_none() {
                        news.1.push(error);
                    }
                    return;
                }
                Err(error) => news.1.push(error),
            }
        }
        self.seen.insert(place);
    }
}
