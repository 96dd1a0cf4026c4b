//! Making the ring file of a new session.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

use ringmark_format::Uuid;
use ringmark_format::session::Clock;
use ringmark_ring::session_dir::{self, DRAFT_ENDING, RING_FILE_ENDING};
use ringmark_ring::{
    ClockSample, MapError, RingFile, clean, clock, consumer_lease, guard, identity, mapping, room,
};
use rustix::thread::futex::Timespec;

use super::super::wiped::Wiped;
use super::attributes;
use super::control::Helper;
use super::core::Core;
use super::layout::{self, Facts, Regions};
use super::memory;
use super::other_copies::{self, TimeBase};
use super::{pin, process};
use crate::setup::Options;
use crate::setup::StartError;

/// How long a start waits, once, for room that another process makes.
const ROOM_WITHIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};

/// Makes the ring file and maps it. Where there is no room for it, the oldest of what the dead left
/// goes, and it is tried once more.
pub(super) fn create(options: Options) -> Result<(Core, Option<Helper>), StartError> {
    let dir = session_dir::path();
    let is_full = |error: &StartError| !options.memfd && error.is_lack_of_room();
    let mut created = create_in(&dir, options.clone());
    if created.as_ref().is_err_and(is_full) {
        if clean::make_room(&dir, options.session_bytes()) == 0 {
            // Perhaps because another process removes the dead right now.
            let _ = rustix::thread::nanosleep(&ROOM_WITHIN);
        }
        created = create_in(&dir, options.clone());
    }
    if created.as_ref().is_err_and(is_full) {
        clean::count_refused(&dir);
    }
    created
}

fn create_in(dir: &Path, options: Options) -> Result<(Core, Option<Helper>), StartError> {
    let mut notices = Vec::new();
    if options.guard && !guard::install() {
        notices.push("guard: the handler for SIGBUS could not be installed".to_owned());
    }
    if !options.memfd {
        prepare_dir(dir, options.session_bytes(), &mut notices)?;
    }
    let (clock, fell_back) = usable_clock(options.clock, &mut notices);
    let identity = identity::own();
    let shared = other_copies::time_base(&identity, clock)?;
    let zero = process::fork_time(clock).unwrap_or_else(|| first_sample(clock));
    let groups = room::own_groups();
    let cap = bytes_for_rings(dir, &options, &groups, &mut notices)?;
    let regions = Regions::for_cap(cap);
    let file_bytes = (regions.end + cap).next_multiple_of(layout::system_page());
    let session = random_uuid();
    let draft = Draft::create(dir, session, options.memfd, file_bytes)?;
    layout::allocate(&draft.file, &regions, file_bytes).map_err(|e| draft.failed(e))?;
    let wiped = Wiped::map(regions.slots()).map_err(|e| draft.io("mmap", e))?;
    let helper = spawn_helper(&options, &mut notices);
    let attributes = attributes::gather(&options, &groups, &notices);
    let time = shared.unwrap_or_else(|| TimeBase::measured(clock, zero));
    let facts = Facts {
        options: &options,
        control: helper.is_some(),
        identity,
        session,
        clock,
        fell_back,
        time,
        attributes: &attributes,
    };
    layout::write(&draft.file, &regions, file_bytes, &facts)
        .map_err(|e| draft.io("write header", e))?;
    let inode = memory::inode(&draft.file).unwrap_or_default();
    let file = draft.publish()?;
    let core = Core {
        file,
        wiped,
        clock,
        rate: time.rate,
        cap: file_bytes,
        half: regions.end + memory::half(cap, u64::from(options.ring_bytes)),
        inode,
        forked_by: Core::parent(),
        is_awaited: AtomicBool::new(is_announced(dir, &options)),
        options,
        waits_asked_ns: AtomicU64::new(0),
    };
    Ok((core, helper))
}

/// Whether a consumer has announced that it comes for this session. Asked where threads may wait for it.
fn is_announced(dir: &Path, options: &Options) -> bool {
    let mut tags = options.tags.iter();
    !options.wait.is_zero()
        && !options.memfd
        && (consumer_lease::is_held(dir) || tags.any(|tag| consumer_lease::is_held_for(dir, tag)))
}

fn spawn_helper(options: &Options, notices: &mut Vec<String>) -> Option<Helper> {
    if !options.control {
        return None;
    }
    if Core::parent().is_some() && pin::has_tsan() {
        notices.push(
            "control is off: ThreadSanitizer ends a forked child that makes a thread".to_owned(),
        );
        return None;
    }
    let helper = Helper::spawn();
    if let Err(error) = &helper {
        notices.push(format!("control is off: no helper thread: {error}"));
    }
    helper.ok()
}

fn prepare_dir(dir: &Path, own_bytes: u64, notices: &mut Vec<String>) -> Result<(), StartError> {
    session_dir::ensure(dir).map_err(StartError::Dir)?;
    let removed = clean::before_start(dir, own_bytes);
    if removed > 0 {
        notices.push(format!("dead sessions removed to make room: {removed}"));
    }
    Ok(())
}

/// Bytes that the rings may take.
fn bytes_for_rings(
    dir: &Path,
    options: &Options,
    groups: &str,
    notices: &mut Vec<String>,
) -> Result<u64, StartError> {
    let (available, limit) = memory::cap(dir, options.session_bytes(), groups);
    let available = available & !4095;
    let needed = memory::RING_BYTES_MIN;
    if available < needed {
        let limit = limit.unwrap_or("the option session");
        return Err(StartError::NoSpace {
            path: dir.to_owned(),
            needed,
            available,
            limit,
        });
    }
    if let Some(limit) = limit {
        notices.push(format!("session cut to {available} bytes by {limit}"));
    }
    Ok(available)
}

/// The sample that all times count from: always with a time.
fn first_sample(clock: Clock) -> ClockSample {
    let sample = clock::sample(clock);
    match sample.mono_ns {
        0 if clock != Clock::None => ClockSample {
            mono_ns: clock::monotonic_ns(),
            ..sample
        },
        _ => sample,
    }
}

fn usable_clock(wanted: Clock, notices: &mut Vec<String>) -> (Clock, bool) {
    if wanted == Clock::Tsc && !clock::tsc_is_invariant() {
        notices.push("clock tsc is not invariant here: monotonic is used".to_owned());
        return (Clock::Monotonic, true);
    }
    (wanted, false)
}

pub(super) fn random_uuid() -> [u8; 16] {
    let mut bytes = [0; 16];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK);
    if got != Ok(16) {
        let seed = u128::from(clock::realtime_ns()) << 64 | u128::from(clock::tsc());
        bytes = seed.to_le_bytes();
    }
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    bytes
}

/// A ring file that no other process sees yet.
struct Draft {
    file: File,
    /// Name while it is being laid out.
    draft: PathBuf,
    /// Name afterwards.
    path: PathBuf,
    memfd: bool,
}

impl Draft {
    fn create(dir: &Path, session: [u8; 16], memfd: bool, bytes: u64) -> Result<Self, StartError> {
        let short = Uuid(session).to_string();
        let stem = format!("{}-{}", std::process::id(), &short[..8]);
        let path = dir.join(format!("{stem}{RING_FILE_ENDING}"));
        let draft = dir.join(format!("{stem}{DRAFT_ENDING}"));
        let io = |source| StartError::Io {
            step: "create",
            path: draft.clone(),
            source,
        };
        let file = if memfd {
            mapping::sealed_memfd("ringmark.ring", bytes).map_err(|e| io(e.source))?
        } else {
            session_dir::create(&draft).map_err(io)?
        };
        let path = if memfd {
            PathBuf::from("memfd:ringmark.ring")
        } else {
            path
        };
        let moved = above_standard(file);
        let draft = Self {
            file: moved.0,
            draft,
            path,
            memfd,
        };
        match moved.1 {
            None => Ok(draft),
            Some(error) => Err(draft.io("a descriptor above 2", error)),
        }
    }

    fn io(&self, step: &'static str, source: io::Error) -> StartError {
        self.remove();
        StartError::Io {
            step,
            path: self.path.clone(),
            source,
        }
    }

    fn failed(&self, error: MapError) -> StartError {
        self.io(error.step, error.source)
    }

    fn remove(&self) {
        if !self.memfd {
            let _ = fs::remove_file(&self.draft);
        }
    }

    /// Takes the lock, maps the file, and only then gives it the name under which readers find it:
    /// a start that failed leaves no file.
    fn publish(self) -> Result<RingFile, StartError> {
        identity::hold_lock(&self.file);
        let Self {
            file,
            draft,
            path,
            memfd,
        } = self;
        let ring = RingFile::produce(file, &path).map_err(StartError::File);
        if memfd {
            return ring;
        }
        let named = ring.and_then(|ring| match fs::rename(&draft, &path) {
            Ok(()) => Ok(ring),
            Err(source) => Err(StartError::Io {
                step: "rename",
                path,
                source,
            }),
        });
        if named.is_err() {
            let _ = fs::remove_file(&draft);
        }
        named
    }
}

/// Moves the file to a descriptor above 2: what a program without standard output prints must not
/// land in it. Where there is none, also returns the error.
fn above_standard(file: File) -> (File, Option<io::Error>) {
    if file.as_raw_fd() > 2 {
        return (file, None);
    }
    match rustix::io::fcntl_dupfd_cloexec(&file, 3) {
        Ok(moved) => (File::from(moved), None),
        Err(error) => (file, Some(error.into())),
    }
}
