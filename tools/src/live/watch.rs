//! Sessions under observation. Nothing of them is released, locked or waited for.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use ringmark_decoder::{Dump, Follower, OpenThread, Sampled, Samples};
use ringmark_format::Uuid;
use ringmark_format::session::Mode;
use ringmark_reader::find::{self, FoundSession};
use ringmark_reader::{Access, Look, ReaderError, Session, SessionInfo, Tap};

use super::budget::{Budget, cpu_time};
use ringmark_console::json::Head;
use ringmark_console::{Failure, printable};

/// How often sessions that have begun since are looked for.
const FIND_EVERY: Duration = Duration::from_secs(2);

/// Which sessions are observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// Those of a process.
    Pid(u32),
    /// All that may be read.
    All,
}

/// What does not change in a session.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) uuid: Uuid,
    /// Its process here, or in its own pid namespace if it is out of sight.
    pub(crate) pid: u32,
    /// Name of its service or its process, safe for a terminal.
    pub(crate) name: String,
    pub(crate) mode: Option<Mode>,
    pub(crate) head: Head,
}

/// The sessions that are observed.
pub(crate) struct Watch {
    target: Target,
    sessions: Vec<Watched>,
    /// Ring files that need no further look.
    known: HashSet<FoundSession>,
    found_at: Option<Instant>,
    looked_at: Option<Instant>,
    budget: Budget,
}

struct Watched {
    about: About,
    tap: Tap,
    follower: Follower,
    samples: Samples,
    /// `None`: the first sample says nothing, and needs no pages.
    sampled_at: Option<Instant>,
}

/// What one look at all of them found.
#[derive(Debug, Default)]
pub(crate) struct Tick {
    pub(crate) sessions: Vec<SessionTick>,
    /// What happened to sessions that are not there any more.
    pub(crate) gone: Vec<String>,
}

/// What a look at a session found.
#[derive(Debug)]
pub(crate) struct SessionTick {
    pub(crate) about: About,
    pub(crate) look: Look,
    /// When it was taken.
    pub(crate) at: Instant,
    /// `None`: there was no CPU time for one.
    pub(crate) sample: Option<Sample>,
}

/// What the newest pages of a session and its stacks of open spans say.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    /// `None`: there was no sample before.
    pub(crate) sampled: Option<Sampled>,
    /// Time since the sample before.
    pub(crate) over: Duration,
    pub(crate) open: Vec<OpenThreadText>,
}

/// The open spans of a thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenThreadText {
    pub(crate) tid: u32,
    pub(crate) thread: String,
    /// Each with its name and the time since it began in ns, the outermost first.
    pub(crate) spans: Vec<(String, u64)>,
    /// How many more are open inside these.
    pub(crate) deeper: u64,
}

impl Watch {
    /// Observes these sessions from now on.
    ///
    /// # Errors
    /// The process is not there or has no session, or we may not look.
    pub(crate) fn new(target: Target) -> anyhow::Result<Self> {
        let mut watch = Self {
            target,
            sessions: Vec::new(),
            known: HashSet::new(),
            found_at: None,
            looked_at: None,
            budget: Budget::new(),
        };
        if let Target::Pid(pid) = target {
            for place in find::by_pid(pid)? {
                let session = Session::open_found(&place, Access::Observe)?;
                watch.add(place, session);
            }
        }
        Ok(watch)
    }

    /// Which sessions are observed.
    pub(crate) const fn target(&self) -> Target {
        self.target
    }

    /// Descriptors that can be read when the process that is observed ends.
    pub(crate) fn ends(&self) -> Vec<&OwnedFd> {
        let sessions = self.sessions.iter().filter(|_| self.target != Target::All);
        sessions
            .filter_map(|one| one.tap.session().pidfd())
            .collect()
    }

    /// The processes of the sessions, each once.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let mut pids: Vec<_> = self.sessions.iter().map(|s| s.about.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Whether the process that is observed has ended, or closed its sessions.
    pub(crate) fn has_ended(&self) -> bool {
        let mut sessions = self.sessions.iter();
        self.target != Target::All && sessions.all(|one| one.tap.session().ended())
    }

    /// The sessions, to be read in another way.
    pub(crate) fn into_sessions(self) -> Vec<Session> {
        let sessions = self.sessions.into_iter();
        sessions.map(|one| one.tap.into_session()).collect()
    }

    /// Looks at all sessions, those included that have begun since.
    pub(crate) fn look(&mut self) -> Tick {
        self.find();
        let mut tick = Tick {
            gone: self.remove_ended(),
            ..Tick::default()
        };
        let now = Instant::now();
        let passed = self.looked_at.map(|at| now.duration_since(at));
        self.looked_at = Some(now);
        let bytes = self.budget.after(passed.unwrap_or(FIND_EVERY));
        let bytes = bytes.map(|bytes| bytes / self.sessions.len().max(1) as u64);
        let begin = cpu_time();
        self.sessions.retain_mut(|one| match one.look(bytes) {
            Ok(found) => {
                tick.sessions.push(found);
                true
            }
            Err(error) => {
                tick.gone.push(one.what(&error));
                false
            }
        });
        if bytes.is_some() {
            self.budget.spend(cpu_time().saturating_sub(begin));
        }
        tick
    }

    fn find(&mut self) {
        if self.found_at.is_some_and(|at| at.elapsed() < FIND_EVERY) {
            return;
        }
        self.found_at = Some(Instant::now());
        let places = match self.target {
            Target::Pid(pid) => find::by_pid(pid).unwrap_or_default(),
            Target::All => find::all(),
        };
        if self.target == Target::All {
            let there: HashSet<_> = places.iter().collect();
            self.known.retain(|place| there.contains(place));
        }
        for place in places {
            if self.known.contains(&place) {
                continue;
            }
            match Session::open_found(&place, Access::Observe) {
                Ok(session) if session.ended() => _ = self.known.insert(place),
                Ok(session) => self.add(place, session),
                Err(error) if error.is_starting() => {}
                Err(_) => _ = self.known.insert(place),
            }
        }
    }

    fn add(&mut self, place: FoundSession, session: Session) {
        self.known.insert(place);
        let uuid = session.uuid();
        if self.sessions.iter().all(|one| one.about.uuid != uuid) {
            self.sessions.push(Watched::new(session));
        }
    }

    /// Takes out the sessions that have ended, unless their process is the one that is observed; says how.
    fn remove_ended(&mut self) -> Vec<String> {
        let mut gone = Vec::new();
        if self.target == Target::All {
            self.sessions.retain(|one| {
                let ending = one.tap.session().ended();
                let ending = ending.then(|| one.tap.session().ending()).flatten();
                gone.extend(ending.map(|ending| one.what(&ending)));
                ending.is_none()
            });
        }
        gone
    }
}

impl Watched {
    fn new(session: Session) -> Self {
        let info = SessionInfo::of(&session);
        let pid_here = session.pid_here();
        let about = About {
            uuid: info.uuid,
            pid: pid_here.unwrap_or(info.pid),
            name: printable(&info.name),
            mode: Some(info.mode),
            head: Head::of_info(&info, pid_here),
        };
        Self {
            about,
            tap: Tap::new(session),
            follower: Follower::default(),
            samples: Samples::default(),
            sampled_at: None,
        }
    }

    /// A message about it, after its name.
    fn what(&self, what: &dyn std::fmt::Display) -> String {
        printable(&format!("{}[{}]: {what}", self.about.name, self.about.pid))
    }

    /// `bytes`: of sealed pages in the sample; `None`: there is to be none.
    fn look(&mut self, bytes: Option<u64>) -> Result<SessionTick, ReaderError> {
        self.tap.session().look_thoroughly();
        let mut blocks = Vec::new();
        match bytes {
            Some(bytes) => {
                let open_spans = self.tap.open_spans();
                let bytes = self.sampled_at.map_or(0, |_| bytes);
                blocks = self.tap.newest(bytes)?;
                blocks.extend(open_spans);
            }
            None => self.tap.count()?,
        }
        let (at, look) = (Instant::now(), self.tap.look());
        let sample = bytes.and_then(|_| self.sample(&blocks, &look, at).ok());
        Ok(SessionTick {
            about: self.about.clone(),
            look,
            at,
            sample,
        })
    }

    fn sample(&mut self, blocks: &[u8], look: &Look, at: Instant) -> anyhow::Result<Sample> {
        let name = &self.about.name;
        let dump = self.follower.read(name, blocks);
        let dump = dump.map_err(|damage| Failure::unreadable(damage.to_string()))?;
        let totals = look.rings.iter().map(|ring| (ring.info.slot, ring.events));
        let before = self.sampled_at.replace(at).unwrap_or(at);
        Ok(Sample {
            sampled: self.samples.take(&dump, totals),
            over: at.duration_since(before),
            open: open(&dump),
        })
    }
}

fn open(dump: &Dump) -> Vec<OpenThreadText> {
    let text = |bytes: &[u8]| printable(&String::from_utf8_lossy(bytes));
    let thread = |thread: &OpenThread<'_>| OpenThreadText {
        tid: thread.tid,
        thread: text(thread.name()),
        spans: thread
            .spans
            .iter()
            .map(|span| (text(&span.ty.name), span.open_ns))
            .collect(),
        deeper: thread.deeper,
    };
    dump.open_spans().iter().map(thread).collect()
}
