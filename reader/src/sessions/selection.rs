//! Which sessions a recording or a stream takes, and how it finds new ones.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringmark_format::session::ProcessId;
use ringmark_ring::identity;

use crate::error::ReaderError;
use crate::interval::Interval;
use crate::sessions::cgroup;
use crate::sessions::directories::directories;
use crate::sessions::directory_changes::DirectoryChanges;
use crate::sessions::file_id::FileId;
use crate::sessions::find;
use crate::sessions::found_session::FoundSession;
use crate::sessions::leases::{self, Leases, Removals};
use crate::sessions::session::{Access, Session};

/// How often a session is tried again that another recorder holds, or that could not be opened
/// because descriptors or memory were short.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// How often the files that a process maps are read.
const MAPS_EVERY: Duration = Duration::from_millis(250);

/// Which sessions to take. A process may have several, which come and go while it lives: where one
/// of them is selected by pid or tag, all are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Those of one process, by its pid in our pid namespace.
    Pid(u32),
    /// The session of this ring file.
    Path(PathBuf),
    /// All that this user may read, present and future.
    All,
    /// All that carry this tag (`key=value`), present and future.
    Tag(String),
    /// All of these services, or of programs of these names that have no service, present and future.
    Services(Vec<String>),
    /// All of processes in this control group or below it, present and future. A process that has
    /// ended is in none.
    Cgroup(String),
}

impl Selection {
    /// Whether sessions that do not exist yet are selected: such a recording ends only on request.
    #[must_use]
    pub fn is_open_ended(&self) -> bool {
        matches!(
            self,
            Self::All | Self::Tag(_) | Self::Services(_) | Self::Cgroup(_)
        )
    }

    /// Whether a session is selected.
    fn wants(&self, session: &Session) -> bool {
        match self {
            Self::Pid(pid) => {
                let header = session.header();
                header.pid == *pid && header.pid_namespace == identity::own_pid_namespace()
            }
            Self::Path(path) => session.path() == path,
            Self::All => true,
            Self::Tag(text) => session.has_tag(text),
            Self::Services(names) => names.contains(&session.name()),
            Self::Cgroup(group) => session
                .pid_here()
                .is_some_and(|pid| cgroup::is_in(pid, group)),
        }
    }
}

/// Finds sessions of a selection, each once.
#[derive(Debug)]
pub(crate) struct Finder {
    selection: Selection,
    /// Ring files that need no further look: taken, refused or not selected; with the process of
    /// those that were not selected.
    seen: HashMap<FoundSession, Option<ProcessId>>,
    /// Sessions that were taken: one file may be found by several paths.
    taken: HashMap<SessionFile, PathBuf>,
    group: Group,
    changes: DirectoryChanges,
    /// Sessions that could not be opened yet and will be tried again.
    postponed: HashMap<FoundSession, Postponed>,
    /// Selected sessions that another recorder held when they were met, and holds still.
    refused: HashSet<FoundSession>,
    /// Directories could not be read because descriptors or memory were short, and the caller has
    /// the error.
    is_short: bool,
    /// The leases of a selection of all sessions.
    leases: Option<Leases>,
}

/// A ring file and the identity in its header: numbers of files are used again.
type SessionFile = (FileId, [u8; 16]);

/// The processes of which a session was taken: all their sessions are.
#[derive(Debug, Default)]
struct Group {
    processes: HashSet<ProcessId>,
    /// Their pids here. What they map is looked at, too.
    pids: BTreeSet<u32>,
    maps: Interval,
}

impl Group {
    /// Whether the maps should be read now. The caller then reads them.
    fn is_due(&mut self) -> bool {
        self.maps.take_due(MAPS_EVERY) && !self.pids.is_empty()
    }

    /// The ring files that the processes map. One that is gone is forgotten.
    fn mapped(&mut self) -> Vec<FoundSession> {
        let mut found = Vec::new();
        self.pids.retain(|pid| match find::in_process(*pid) {
            Ok(mapped) => {
                found.extend(mapped);
                true
            }
            Err(_) => false,
        });
        found
    }
}

/// A session that will be tried again.
#[derive(Debug)]
struct Postponed {
    since: Instant,
    /// Descriptors or memory were short; otherwise another recorder holds it.
    is_short: bool,
}

/// What a look for new sessions found.
#[derive(Debug, Default)]
pub(crate) struct NewSessions {
    /// The sessions, open.
    pub(crate) sessions: Vec<Session>,
    /// Why others were not opened, each once.
    pub(crate) errors: Vec<ReaderError>,
}

impl Finder {
    /// A finder of the sessions that `selection` selects.
    pub(crate) fn new(selection: Selection) -> Self {
        let takes_all = selection == Selection::All;
        Self {
            leases: takes_all.then(Leases::new),
            selection,
            seen: HashMap::new(),
            taken: HashMap::new(),
            group: Group::default(),
            changes: DirectoryChanges::default(),
            postponed: HashMap::new(),
            refused: HashSet::new(),
            is_short: false,
        }
    }

    /// Whether sessions that do not exist yet are selected, too.
    pub(crate) fn is_open_ended(&self) -> bool {
        self.selection.is_open_ended()
    }

    /// Whether the session of a program that this process started is selected, by its tag.
    pub(crate) fn is_by_tag(&self) -> bool {
        matches!(self.selection, Selection::Tag(_))
    }

    /// The selected sessions that are there at the start. Those selected by tag, and
    /// all sessions, are left to [`Finder::look`].
    ///
    /// # Errors
    /// A session selected by pid or path is not there or cannot be opened, or no directory is
    /// usable.
    pub(crate) fn first(&mut self) -> Result<Vec<Session>, ReaderError> {
        let places = match &self.selection {
            Selection::Pid(pid) => find::by_pid(*pid)?,
            Selection::Path(path) => vec![FoundSession::at(path)],
            Selection::Tag(_) | Selection::Services(_) | Selection::Cgroup(_) => {
                return Ok(Vec::new());
            }
            Selection::All => {
                if let Some(leases) = &mut self.leases {
                    leases.update(&directories());
                }
                // Without one usable directory the recording would wait for ever.
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
            self.seen.insert(place, None);
        }
        sessions.iter().for_each(|session| self.take(session));
        Ok(sessions)
    }

    /// Opens the selected sessions that appeared since the last call.
    pub(crate) fn look(&mut self) -> NewSessions {
        if matches!(self.selection, Selection::Path(_)) {
            return NewSessions::default();
        }
        let has_waited = |postponed: &Postponed| postponed.since.elapsed() >= TRY_AGAIN;
        let maps_are_due = self.group.is_due();
        let is_due = self.changes.is_due() || maps_are_due;
        if !(is_due || self.postponed.values().any(has_waited)) {
            return NewSessions::default();
        }
        if let Some(leases) = &mut self.leases {
            leases.update(&directories());
        }
        let listing = find::look();
        let mut places: HashSet<FoundSession> = listing.files.into_iter().collect();
        if maps_are_due {
            places.extend(self.group.mapped());
        }
        let mut new = NewSessions {
            sessions: Vec::new(),
            errors: self.new_shortage(listing.errors),
        };
        if !self.is_short {
            let there: HashSet<_> = places.iter().collect();
            self.seen.retain(|place, _| there.contains(place));
            self.postponed.retain(|place, _| there.contains(place));
        }
        for place in places {
            if !self.seen.contains_key(&place) && self.postponed.get(&place).is_none_or(has_waited)
            {
                self.look_at(place, &mut new);
            }
        }
        new
    }

    /// Number of sessions that could not be opened because descriptors or memory were short.
    pub(crate) fn left_out(&self) -> usize {
        self.postponed.values().filter(|p| p.is_short).count()
    }

    /// Number of sessions that belong to what was selected by pid or tag, and that another recorder
    /// has.
    pub(crate) fn refused(&self) -> usize {
        match self.selection {
            Selection::All => 0,
            _ => self.refused.len(),
        }
    }

    /// Sessions that were removed before they could be read, since the start of a selection of all.
    pub(crate) fn removals(&self) -> Removals {
        self.leases
            .as_ref()
            .map(Leases::removals)
            .unwrap_or_default()
    }

    /// Brings [`Finder::removals`] up to date.
    pub(crate) fn count_removals(&mut self) {
        self.leases.iter_mut().for_each(Leases::count);
    }

    /// Notices about what was removed, since the last call.
    pub(crate) fn notices(&mut self) -> Vec<String> {
        let leases = self.leases.as_mut();
        leases.map(Leases::take_notices).unwrap_or_default()
    }

    /// Whether no other reader of all sessions will read this ring file.
    pub(crate) fn is_alone(&self, ring_file: &Path) -> bool {
        match &self.leases {
            Some(leases) => leases.is_alone(ring_file),
            None => leases::is_left_alone(ring_file),
        }
    }

    /// The shortage among the errors of directories, if there was none before. Directories that are
    /// refused have been reported at the start.
    fn new_shortage(&mut self, errors: Vec<ReaderError>) -> Vec<ReaderError> {
        let mut short = errors.into_iter().filter(ReaderError::is_shortage);
        let first = short.next();
        let was_short = std::mem::replace(&mut self.is_short, first.is_some());
        first.into_iter().filter(|_| !was_short).collect()
    }

    /// Has the next look find the session of this ring file again.
    pub(crate) fn forget(&mut self, path: &Path) {
        self.seen.retain(|place, _| place.path != path);
        self.taken.retain(|_, taken| taken != path);
        self.changes.look_again();
    }

    /// Has the next look read the directories and maps, changed or not.
    pub(crate) fn look_again(&mut self) {
        self.changes.look_again();
        self.group.maps = Interval::due();
    }

    fn look_at(&mut self, place: FoundSession, new: &mut NewSessions) {
        let mut passed_over = None;
        match self.open_wanted(&place) {
            Ok(Opened::Wanted(session)) => {
                self.take(&session);
                self.refused.remove(&place);
                new.sessions.push(*session);
            }
            Ok(Opened::PassedOver(process)) => passed_over = process,
            Err(error) if error.is_starting() => return self.changes.look_again(),
            Err(error) if error.is_shortage() || matches!(error, ReaderError::Busy { .. }) => {
                // Its recorder may end or be killed; then it is ours. Reported once.
                let is_short = error.is_shortage();
                if !is_short {
                    self.refused.insert(place.clone());
                }
                let postponed = Postponed {
                    since: Instant::now(),
                    is_short,
                };
                if self.postponed.insert(place, postponed).is_none() {
                    new.errors.push(error);
                }
                return;
            }
            Err(error) => new.errors.push(error),
        }
        self.postponed.remove(&place);
        self.seen.insert(place, passed_over);
    }

    /// Notes that a session is taken. Its process's others, which were passed over, are then looked
    /// at again.
    fn take(&mut self, session: &Session) {
        let header = session.header();
        let file = (session.file_id(), header.session);
        self.taken.insert(file, session.path().to_owned());
        let is_grouped = !matches!(self.selection, Selection::Path(_) | Selection::All);
        let Some(process) = header.process().filter(|_| is_grouped) else {
            return;
        };
        if self.group.processes.insert(process) {
            let pid = session.pid_here().filter(|_| !session.process_ended());
            self.group.pids.extend(pid);
            let seen = self.seen.len();
            self.seen.retain(|_, passed| *passed != Some(process));
            if self.seen.len() < seen {
                self.changes.look_again();
            }
        }
    }

    /// Opens a session if it is selected. It is observed first, so that only a selected one is
    /// locked.
    fn open_wanted(&self, place: &FoundSession) -> Result<Opened, ReaderError> {
        let wanted = |session| Opened::Wanted(Box::new(session));
        if self.selection == Selection::All {
            return Session::open_found(place, Access::Consume).map(wanted);
        }
        let session = Session::open_found(place, Access::Observe)?;
        let file = (session.file_id(), session.header().session);
        if self.taken.contains_key(&file) {
            return Ok(Opened::PassedOver(None));
        }
        match self.is_wanted(&session) {
            true => Session::open_found(place, Access::Consume).map(wanted),
            false => Ok(Opened::PassedOver(session.header().process())),
        }
    }

    /// Whether a session is selected, or another one of its process is.
    fn is_wanted(&self, session: &Session) -> bool {
        match session.header().process() {
            Some(process) if self.group.processes.contains(&process) => true,
            // An earlier process may have had the pid.
            Some(_) if matches!(self.selection, Selection::Pid(_)) => false,
            _ => self.selection.wants(session),
        }
    }
}

/// What a look at a ring file found.
enum Opened {
    Wanted(Box<Session>),
    /// Not selected, or taken already; with its process, if that may be selected later.
    PassedOver(Option<ProcessId>),
}
