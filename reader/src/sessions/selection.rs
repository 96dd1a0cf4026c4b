//! Which sessions a recorder records, and how it finds new ones.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringmark_ring::identity;

use crate::error::ReaderError;
use crate::sessions::directories::directories;
use crate::sessions::find;
use crate::sessions::found::Found;
use crate::sessions::glance::Glance;
use crate::sessions::leases::{self, Gone, Leases};
use crate::sessions::session::{Access, Session};

/// How often a session is tried again that another recorder has, or for which descriptors or
/// memory were short.
const TRY_AGAIN: Duration = Duration::from_secs(1);

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
    glance: Glance,
    /// Sessions that could not be had yet.
    waiting: HashMap<Found, Waiting>,
    /// The directories could not be looked into for shortage, and this was told.
    is_short: bool,
    /// The leases of a recording of all sessions.
    leases: Option<Leases>,
}

/// Why a session has to wait.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    /// Descriptors or memory are short; else another recorder has it.
    is_short: bool,
}

impl Finder {
    pub(crate) fn new(selection: Selection) -> Self {
        let comes_for_all = selection == Selection::All;
        Self {
            leases: comes_for_all.then(Leases::new),
            selection,
            seen: HashSet::new(),
            glance: Glance::default(),
            waiting: HashMap::new(),
            is_short: false,
        }
    }

    /// What is there at the start. A selection by pid or path must be there.
    pub(crate) fn first(&mut self) -> Result<Vec<Session>, ReaderError> {
        let places = match &self.selection {
            Selection::Pid(pid) => find::by_pid(*pid)?,
            Selection::Path(path) => vec![Found::at(path)],
            Selection::Tag(_) => return Ok(Vec::new()),
            Selection::All => {
                if let Some(leases) = &mut self.leases {
                    leases.come_for(&directories());
                }
                // Waiting in a place that is refused would last for ever.
                let mut refused = find::refused();
                return match refused.len() >= directories().len() {
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
        let has_waited = |waiting: &Waiting| waiting.since.elapsed() >= TRY_AGAIN;
        if !(self.glance.is_due() || self.waiting.values().any(has_waited)) {
            return Default::default();
        }
        if let Some(leases) = &mut self.leases {
            leases.come_for(&directories());
        }
        let (places, wrong) = find::look();
        let places: HashSet<Found> = places.into_iter().collect();
        let mut news = (Vec::new(), self.told_once(wrong));
        if !self.is_short {
            let there: HashSet<_> = places.iter().collect();
            self.seen.retain(|place| there.contains(place));
            self.waiting.retain(|place, _| there.contains(place));
        }
        for place in places {
            if !self.seen.contains(&place) && self.waiting.get(&place).is_none_or(has_waited) {
                self.look_at(place, &mut news);
            }
        }
        news
    }

    /// Sessions that are there and were not had, because descriptors or memory were short.
    pub(crate) fn left_out(&self) -> usize {
        self.waiting.values().filter(|w| w.is_short).count()
    }

    /// Sessions that were removed before they could be read, since we came for all.
    pub(crate) fn gone(&self) -> Gone {
        self.leases.as_ref().map(Leases::gone).unwrap_or_default()
    }

    /// Counts them anew.
    pub(crate) fn count_gone(&mut self) {
        self.leases.iter_mut().for_each(Leases::count);
    }

    /// Notices of what was removed.
    pub(crate) fn notices(&mut self) -> Vec<String> {
        let leases = self.leases.as_mut();
        leases.map(Leases::take_notices).unwrap_or_default()
    }

    /// Whether no other reader of all sessions comes for this ring file.
    pub(crate) fn is_alone(&self, ring_file: &Path) -> bool {
        match &self.leases {
            Some(leases) => leases.is_alone(ring_file),
            None => leases::is_left_alone(ring_file),
        }
    }

    /// Keeps of what kept us from looking for sessions a shortage, if it is new. Directories that
    /// are refused have been told at the start.
    fn told_once(&mut self, wrong: Vec<ReaderError>) -> Vec<ReaderError> {
        let mut short = wrong.into_iter().filter(ReaderError::is_shortage);
        let first = short.next();
        let was_short = std::mem::replace(&mut self.is_short, first.is_some());
        first.into_iter().filter(|_| !was_short).collect()
    }

    /// Finds the session of this ring file anew next time.
    pub(crate) fn forget(&mut self, path: &Path) {
        self.seen.retain(|place| place.path != path);
        self.glance.again();
    }

    /// Has the directories read next time, however they look.
    pub(crate) fn look_again(&mut self) {
        self.glance.again();
    }

    fn look_at(&mut self, place: Found, news: &mut (Vec<Session>, Vec<ReaderError>)) {
        match self.open_wanted(&place) {
            Ok(session) => news.0.extend(session),
            Err(error) if error.is_starting() => return self.glance.again(),
            Err(error) if error.is_shortage() || matches!(error, ReaderError::Busy { .. }) => {
                // Its recorder may be killed: then it is ours. Told once.
                let waiting = Waiting {
                    since: Instant::now(),
                    is_short: error.is_shortage(),
                };
                if self.waiting.insert(place, waiting).is_none() {
                    news.1.push(error);
                }
                return;
            }
            Err(error) => news.1.push(error),
        }
        self.waiting.remove(&place);
        self.seen.insert(place);
    }

    /// Looked at first, if not all are wanted: only what is wanted is locked.
    fn open_wanted(&self, place: &Found) -> Result<Option<Session>, ReaderError> {
        if self.selection == Selection::All {
            return Session::open_found(place, Access::Consume).map(Some);
        }
        let session = Session::open_found(place, Access::Observe)?;
        match self.selection.wants(&session) {
            true => Session::open_found(place, Access::Consume).map(Some),
            false => Ok(None),
        }
    }
}
