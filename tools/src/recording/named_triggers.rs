//! `record --on-death` with `--on` and `--ends panic`: a trace file when an event or a span of a name comes, while its
//! process goes on.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ringmark_decoder::{Filter, Follower, Output};
use ringmark_format::{Uuid, panics};
use ringmark_reader::on_death::file_name;
use ringmark_reader::{Access, Codec, Destination, Dump, Durability, Session, Tap, find, snapshot};

use ringmark_console::units::count;
use ringmark_console::{note, now_ns, printable};

/// How often new events are looked for.
const POLL_EVERY: Duration = Duration::from_millis(50);
/// How often new sessions are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long what happens after the event is waited for. A process that dies in it gets the file of its death.
const AFTER: Duration = Duration::from_millis(500);
/// Least time between two files of a session.
const REST: Duration = Duration::from_secs(10);

/// The names that are waited for.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    filter: Filter,
    /// What is older was there before, in ns since 1970.
    since_ns: u64,
}

impl Names {
    /// Those that match these patterns, and panics if that is asked for; `None`: nothing is.
    pub(crate) fn new(patterns: &[String], with_panics: bool) -> Option<Self> {
        let mut filter = Filter::new();
        for pattern in patterns {
            filter.name(pattern);
        }
        if with_panics {
            filter.name(&format!("{}::{}", panics::TARGET, panics::NAME));
        }
        filter.has_names().then(|| Self {
            filter,
            since_ns: now_ns(),
        })
    }
}

/// A session that is followed.
struct Followed {
    tap: Tap,
    follower: Follower,
    /// When a name came, and which; until its file is written.
    came: Option<(Instant, String)>,
    written: Option<Instant>,
}

/// Follows all sessions until `stop`.
pub(crate) fn watch(directory: &Path, codec: Codec, names: &Names, stop: &AtomicBool) {
    let mut watch = Watch {
        directory,
        codec,
        names,
        known: HashSet::new(),
        followed: HashMap::new(),
    };
    let mut looked: Option<Instant> = None;
    while !stop.load(Ordering::Relaxed) {
        if looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY) {
            watch.look();
            looked = Some(Instant::now());
        }
        watch.poll();
        thread::sleep(POLL_EVERY);
    }
}

struct Watch<'w> {
    directory: &'w Path,
    codec: Codec,
    names: &'w Names,
    known: HashSet<PathBuf>,
    followed: HashMap<Uuid, Followed>,
}

impl Watch<'_> {
    /// Follows what has started since.
    fn look(&mut self) {
        let found = find::all();
        self.known
            .retain(|path| found.iter().any(|place| place.path == *path));
        for place in found {
            if !self.known.insert(place.path.clone()) {
                continue;
            }
            match Session::open_found(&place, Access::Observe) {
                Ok(session) if session.ended() => {}
                Ok(session) => {
                    let followed = Followed {
                        tap: Tap::new(session),
                        follower: Follower::default(),
                        came: None,
                        written: None,
                    };
                    let uuid = followed.tap.session().uuid();
                    let _ = self.followed.insert(uuid, followed);
                }
                // Holding it says why, or it is looked at again when it has started.
                Err(_) => drop(self.known.remove(&place.path)),
            }
        }
    }

    fn poll(&mut self) {
        let mut due = Vec::new();
        let names = self.names;
        self.followed.retain(|uuid, followed| {
            if followed.tap.session().ended() {
                return false;
            }
            let is_rested = followed.written.is_none_or(|at| at.elapsed() >= REST);
            let name = followed.newest(names);
            if let Some(name) = name.filter(|_| followed.came.is_none() && is_rested) {
                followed.came = Some((Instant::now(), name));
            }
            let is_due = followed
                .came
                .as_ref()
                .is_some_and(|(at, _)| at.elapsed() >= AFTER);
            if is_due && let Some((_, name)) = followed.came.take() {
                followed.written = Some(Instant::now());
                due.push((*uuid, name));
            }
            true
        });
        for (uuid, name) in due {
            if let Err(error) = self.write(uuid, &name) {
                note(&printable(&format!("{error:#}")));
            }
        }
    }

    /// Writes the file of a session's process: all its sessions.
    fn write(&self, uuid: Uuid, name: &str) -> anyhow::Result<()> {
        let Some(followed) = self.followed.get(&uuid) else {
            return Ok(());
        };
        let own = followed.tap.session();
        let process = own.header().process();
        let pid = own.pid();
        let path = self.free_path(own, name);
        let mut dump = Dump::create(&Destination::File(path.clone()), Durability::System)?;
        dump.set_codec(self.codec);
        let mut pages = 0;
        for place in find::all() {
            let Ok(session) = Session::open_found(&place, Access::Observe) else {
                continue;
            };
            let is_its = process.is_some() && session.header().process() == process;
            if session.uuid() == uuid || is_its {
                pages += snapshot(session, None, &mut dump)?.pages;
            }
        }
        dump.finish()?;
        let shown = path.display();
        note(&printable(&format!(
            "pid {pid}: {name}: {shown}, {} pages",
            count(pages)
        )));
        Ok(())
    }

    /// A file of an earlier moment is there to stay.
    fn free_path(&self, session: &Session, name: &str) -> PathBuf {
        let mut number = 1;
        loop {
            let end = match number {
                1 => name.to_owned(),
                _ => format!("{name}-{number}"),
            };
            let path = self.directory.join(file_name(session, &end));
            if !path.exists() {
                return path;
            }
            number += 1;
        }
    }
}

impl Followed {
    /// The name of the newest event or span that is waited for and was not met before.
    fn newest(&mut self, names: &Names) -> Option<String> {
        // A file that was truncated or damaged is told of by those who hold it.
        let news = self.tap.poll().ok().filter(|news| !news.is_empty())?;
        let dump = self.follower.read("session", &news).ok()?;
        let mut found = None;
        self.follower.news(&dump, |item| {
            if let Output::Event(event) = item
                && event.wall_ns() >= names.since_ns
                && names.filter.passes(event)
            {
                found = Some(String::from_utf8_lossy(event.name()).into_owned());
            }
        });
        found
    }
}
