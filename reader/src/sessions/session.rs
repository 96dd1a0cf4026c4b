//! One session: its mapped ring file, whether its process lives, and who may consume it.
//!
//! The file may be any other process's, and its writer may be gone, broken or hostile. The header
//! is validated once, when the file is mapped; what changes later is read through the ring's own
//! views.

mod clocks;
mod ending;
mod mapped_mailbox;
mod pidfd;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use ringmark_format::Uuid;
use ringmark_format::attribute::{Attributes, tag};
use ringmark_format::session::{Clock, Mode, SessionHeader, phase};
use ringmark_ring::identity::{self, Liveness};
use ringmark_ring::process_end::MemoryKills;
use ringmark_ring::session_dir::OpenFor;
use ringmark_ring::{RingFile, RingFileError, clock, file_lock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use clocks::{nominal_ns, shares_clocks};
use mapped_mailbox::MappedMailbox;
use pidfd::{is_alive, watch_process};

use crate::error::{ReaderError, io_at};
use crate::sessions::file_id::{FileId, same_file};
use crate::sessions::found_session::FoundSession;
use crate::sessions::pids::{self, holder_of};

/// What a session is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To look at: nothing in the file is written.
    Observe,
    /// To be recorded: a discard session is consumed, by one recorder only.
    Consume,
    /// To send requests to its process: the mailbox is written.
    Control,
}

/// Which sessions [`Session::remove_drained`] removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemovalScope {
    /// Those that do not request to be kept.
    NotKept,
    /// All.
    Any,
}

/// A session that is open.
#[derive(Debug)]
pub struct Session {
    ring: RingFile,
    access: Access,
    /// `None`: the process is dead, or in a pid namespace that we do not see.
    pidfd: Option<OwnedFd>,
    kills: Option<MemoryKills>,
    /// The process lived when the session was opened, and can be seen.
    lived: bool,
    /// The process was found dead; it stays so.
    dead: AtomicBool,
    /// Tick of the session's clock at which it was found dead; 0: it was dead before, or cannot be seen.
    dead_tick: AtomicU64,
    /// Pid of the holder of the life lock when it was last found alive; 0: it has no pid here.
    holder: AtomicI32,
    shares_clocks: bool,
    /// Set by the first request.
    mailbox: MappedMailbox,
    /// The uuid in the header, or another one if a second ring file claims the same.
    uuid: Uuid,
}

impl Session {
    /// Opens the ring file at `path`.
    ///
    /// # Errors
    /// The file is not there, is another user's, is no ring file, is still being set up, or is
    /// consumed by another recorder.
    pub fn open(path: &Path, access: Access) -> Result<Self, ReaderError> {
        Self::open_found(&FoundSession::at(path), access)
    }

    /// Opens a session that [`crate::sessions::find`] found.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_found(found: &FoundSession, access: Access) -> Result<Self, ReaderError> {
        let file = found.open(match access {
            Access::Observe => OpenFor::Reading,
            Access::Consume | Access::Control => OpenFor::Writing,
        })?;
        let wrong = |source| ReaderError::RingFile {
            path: found.path.clone(),
            source,
        };
        let ring = match access {
            Access::Consume => RingFile::consume(file, &found.path),
            Access::Observe | Access::Control => RingFile::observe(file, &found.path),
        };
        let ring = ring.map_err(wrong)?;
        if ring.phase() == phase::STARTING {
            return Err(wrong(RingFileError::Starting));
        }
        let pidfd = watch_process(&ring);
        let session = Self {
            shares_clocks: shares_clocks(&ring, pidfd.is_some()),
            uuid: Uuid(ring.geometry().header.session),
            kills: MemoryKills::of(ring.geometry().header.pid),
            lived: pidfd.as_ref().is_some_and(is_alive),
            pidfd,
            ring,
            access,
            dead: AtomicBool::new(false),
            dead_tick: AtomicU64::new(0),
            holder: AtomicI32::new(0),
            mailbox: MappedMailbox::default(),
        };
        session.exclude_others()?;
        Ok(session)
    }

    /// Takes the consumer's lock, if the session was opened for that. A discard session has one
    /// consumer, which holds it alone. Readers of an overwrite session share it: while one holds
    /// it, no other process removes the file.
    fn exclude_others(&self) -> Result<(), ReaderError> {
        if self.access != Access::Consume {
            return Ok(());
        }
        let (file, at) = (self.ring.file(), self.header().consumed_offset);
        if !self.consumes() {
            return match file_lock::hold_shared(file, at) {
                Err(error) if file_lock::is_taken(&error) => Err(self.busy(None)),
                _ => Ok(()),
            };
        }
        let hold = || file_lock::hold_exclusive(file, at);
        let Err(_) = hold() else { return Ok(()) };
        let holder = holder_of(file);
        // The holder was gone before it could be named: for example a process that the last
        // recorder forked, and that closed its files at exec.
        if holder.is_none() && hold().is_ok() {
            return Ok(());
        }
        Err(self.busy(holder))
    }

    fn busy(&self, holder: Option<u32>) -> ReaderError {
        let path = self.path().to_owned();
        ReaderError::Busy { path, holder }
    }

    /// Its mapped ring file.
    #[must_use]
    pub fn ring(&self) -> &RingFile {
        &self.ring
    }

    /// Its mailbox, for requests.
    pub(crate) fn mailbox(&self) -> &MappedMailbox {
        &self.mailbox
    }

    /// The path under which the ring file was found.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.ring.path()
    }

    /// The header, as validated when the file was mapped.
    #[must_use]
    pub fn header(&self) -> &SessionHeader {
        &self.ring.geometry().header
    }

    /// Identity of the session in blocks and messages.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// Identity of the ring file, by which two paths to one session are recognised.
    #[must_use]
    pub fn file_id(&self) -> FileId {
        let about = self.ring.file().metadata();
        about.map_or_else(|_| FileId::default(), |about| FileId::of(&about))
    }

    /// Gives the session a uuid made of the claimed one and its file's identity. Another file
    /// claims the same uuid, and the events of both must stay apart.
    pub(crate) fn set_apart(&mut self) {
        let FileId { device, inode } = self.file_id();
        let claimed = u128::from_le_bytes(self.uuid.0);
        let file = (u128::from(device) << 64) | u128::from(inode);
        self.uuid = Uuid((claimed ^ file.rotate_left(32) ^ 1).to_le_bytes());
    }

    /// Gives the session another uuid.
    #[cfg(feature = "stream")]
    pub(crate) fn set_uuid(&mut self, uuid: Uuid) {
        self.uuid = uuid;
    }

    /// Process id in the process's own pid namespace.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.header().pid
    }

    /// Process id in our pid namespace: the one in the header, or if the process has a namespace of
    /// its own, the one that `/proc` shows for it. `None`: it is gone or out of sight.
    #[must_use]
    pub fn pid_here(&self) -> Option<u32> {
        let header = self.header();
        pids::pid_here(header.pid, header.pid_namespace)
    }

    /// Whether pages are released to their writer once they are stored.
    #[must_use]
    pub fn consumes(&self) -> bool {
        self.access == Access::Consume && self.ring.geometry().mode == Mode::Discard
    }

    /// The first attribute with this tag, as text with bytes that are not UTF-8 replaced.
    #[must_use]
    pub fn attribute(&self, tag: u16) -> Option<String> {
        let value = Attributes::new(&self.ring.geometry().attributes).find(tag)?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    /// Whether the session has the tag `text`, `key=value`.
    #[must_use]
    pub fn has_tag(&self, text: &str) -> bool {
        Attributes::new(&self.ring.geometry().attributes)
            .any(|a| a.tag == tag::TAG && a.value == text.as_bytes())
    }

    /// Service name, or the name of the process without one; empty without both.
    #[must_use]
    pub fn name(&self) -> String {
        let service = self.attribute(tag::SERVICE_NAME).filter(|s| !s.is_empty());
        service
            .or_else(|| self.attribute(tag::PROCESS_NAME))
            .unwrap_or_default()
    }

    /// Whether the process is gone. Where the process can be seen this costs one `poll`.
    #[must_use]
    pub fn process_ended(&self) -> bool {
        if !self.is_known_dead() {
            match &self.pidfd {
                Some(_) => wait_for_end(std::iter::once(self), Duration::ZERO),
                None => self.look_thoroughly(),
            }
        }
        self.is_known_dead()
    }

    fn is_known_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// Notes that the process is dead, and when that was seen.
    fn note_dead(&self) {
        if self.lived && self.shares_clocks {
            let now = clock::sample(self.ring.geometry().clock).tick;
            self.dead_tick.store(now, Ordering::Relaxed);
        }
        self.dead.store(true, Ordering::Relaxed);
    }

    /// Tick at which the process, which this reader had seen alive, was found dead; 0: it was not.
    pub(crate) fn dead_tick(&self) -> u64 {
        self.dead_tick.load(Ordering::Relaxed)
    }

    /// As [`Session::ended`], but for a process that can be seen as of the last [`wait_for_end`]:
    /// no system call.
    pub(crate) fn has_ended_by_now(&self) -> bool {
        self.ring.closed() || self.is_known_dead() || self.pidfd.is_none() && self.process_ended()
    }

    /// Whether the process still holds this session. Also finds a process that has become another
    /// program by `exec`. This costs some file reads in `/proc`.
    #[must_use]
    pub fn liveness(&self) -> Liveness {
        identity::liveness(self.header(), self.ring.file())
    }

    /// Has [`Session::process_ended`] know what [`Session::liveness`] finds. While the same process
    /// holds the life lock as in the last call nothing has changed, which costs one system call.
    pub fn look_thoroughly(&self) {
        let holder = identity::lock_holder(self.ring.file());
        if holder.is_some_and(|pid| pid == self.holder.load(Ordering::Relaxed)) {
            return;
        }
        if self.liveness() == Liveness::Dead {
            self.dead.store(true, Ordering::Relaxed);
        }
        let is_elsewhere = self.header().pid_namespace != identity::own_pid_namespace();
        let known = holder.filter(|pid| is_elsewhere || *pid as u32 == self.pid());
        self.holder.store(known.unwrap_or(0), Ordering::Relaxed);
    }

    /// Whether our clocks are the session's. Those of another boot or time namespace are not; a
    /// clock sample of ours would then move the session's events in time.
    #[must_use]
    pub fn shares_clocks(&self) -> bool {
        self.shares_clocks
    }

    /// `CLOCK_MONOTONIC` now, in ns, as the session's process reads it. `None`: it cannot be known.
    #[must_use]
    pub fn monotonic_ns(&self) -> Option<u64> {
        let geometry = self.ring.geometry();
        if self.shares_clocks {
            return Some(clock::monotonic_ns());
        }
        let is_here =
            geometry.clock == Clock::Tsc && geometry.header.boot_id == identity::boot_id();
        is_here.then(|| nominal_ns(&geometry.header, clock::tsc()))
    }

    /// Whether no more events will come: the session is closed, or the process is gone.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ring.closed() || self.process_ended()
    }

    /// Descriptor that becomes readable when the process ends, where the process can be seen.
    #[must_use]
    pub fn pidfd(&self) -> Option<&OwnedFd> {
        self.pidfd.as_ref()
    }

    /// Checks that the file still has its size: a mapping beyond the end of its file must not be
    /// touched.
    ///
    /// # Errors
    /// [`ReaderError::Truncated`], or what `fstat` said.
    pub fn check_size(&self) -> Result<(), ReaderError> {
        let about = self.ring.file().metadata();
        let found = about.map_err(io_at("fstat", self.path()))?.len();
        let expected = self.ring.map().bytes();
        if found < expected || self.ring.is_broken() {
            return Err(ReaderError::Truncated {
                path: self.path().to_owned(),
                found,
                expected,
            });
        }
        Ok(())
    }

    /// Checks that nothing was read beyond the end of a truncated file, in a process that is
    /// guarded ([`ringmark_ring::guard`]). It is to be called after reading, before what was read
    /// is used.
    ///
    /// # Errors
    /// As [`Session::check_size`].
    pub fn check_whole(&self) -> Result<(), ReaderError> {
        if self.ring.is_broken() {
            return self.check_size();
        }
        Ok(())
    }

    /// Marks all pages of an ended session as consumed: they are stored elsewhere for good.
    pub(crate) fn set_taken(&self) {
        if self.access != Access::Consume {
            return;
        }
        let slots = (0..self.ring.slots_used()).filter_map(|index| self.ring.slot(index));
        slots.for_each(|slot| slot.release(slot.produced()));
    }

    /// Removes the ring file of a session that is stored elsewhere for good, if `scope` allows it.
    ///
    /// A discard session is not kept unless it requests that always. A session in overwrite mode is
    /// removed where its program would have done so on a clean exit without readers, and if this
    /// reader is `alone`: no other reader of all sessions will read it.
    ///
    /// # Errors
    /// As [`Session::remove_file`].
    pub(crate) fn remove_drained(
        &self,
        scope: RemovalScope,
        alone: impl FnOnce(&Path) -> bool,
    ) -> Result<(), ReaderError> {
        const KEEP_CRASH: u32 = 0;
        const KEEP_ALWAYS: u32 = 1;
        let keep = self.header().keep;
        let removes = match self.ring.geometry().mode {
            Mode::Discard => keep != KEEP_ALWAYS,
            Mode::Overwrite => {
                keep == KEEP_CRASH && self.ring.exit_status() == Some(0) && alone(self.path())
            }
        };
        if scope == RemovalScope::Any || removes {
            self.remove_file()?;
        }
        Ok(())
    }

    /// Removes the ring file, if its path still leads to the file that is open. Returns whether it
    /// did.
    ///
    /// # Errors
    /// What `unlink` said.
    pub fn remove_file(&self) -> Result<bool, ReaderError> {
        if !same_file(self.path(), self.ring.file()) {
            return Ok(false);
        }
        std::fs::remove_file(self.path()).map_err(io_at("remove", self.path()))?;
        Ok(true)
    }
}

/// Waits until the process of one of these sessions ends, a signal arrives, or `time` has passed.
/// [`Session::has_ended_by_now`] then knows which have ended. Sessions whose end was known before
/// are left out: they would end every wait at once.
pub(crate) fn wait_for_end<'a>(sessions: impl Iterator<Item = &'a Session>, time: Duration) {
    let seen = sessions.filter(|session| !session.is_known_dead());
    let (seen, mut fds): (Vec<_>, Vec<_>) = seen
        .filter_map(|session| {
            let pidfd = session.pidfd.as_ref()?;
            Some((session, PollFd::new(pidfd, PollFlags::IN)))
        })
        .unzip();
    let time = Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    // After a signal nothing new is known; the caller goes on with its next pass.
    if poll(&mut fds, Some(&time)).unwrap_or(0) == 0 {
        return;
    }
    for (session, fd) in seen.iter().zip(&fds) {
        if !fd.revents().is_empty() {
            session.note_dead();
        }
    }
}
