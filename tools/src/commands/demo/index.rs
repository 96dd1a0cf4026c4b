//! The job that the demo traces: several threads read every regular file below a directory, in its file
//! system, and count bytes and lines. It traces itself as a user's program would, with `span!`, `event!` and
//! `counter!`.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::ops::AddAssign;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use ringmark::{Encoder, Kind, Value, counter, event, span};
use rustix::fs::OFlags;

use super::queue::{Queue, TakenTask, Task};

/// Names that are skipped wherever they stand.
const SKIPPED: [&[u8]; 2] = [b".git", b"target"];

/// The directory to index, and how much of it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) root: PathBuf,
    pub(super) workers: usize,
    /// Absolute path of the trace file that is being written: it grows while the job reads.
    pub(super) skip: Option<PathBuf>,
    /// Passes are repeated until this many events were emitted.
    pub(super) events_min: u64,
    pub(super) files_max: u64,
    /// The job is cut short after this time.
    pub(super) time_max: Duration,
    /// Where each worker writes its count of emitted events after each one: u64s side by side.
    pub(super) tally: Option<File>,
}

/// Totals of a job, or of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Totals {
    /// Regular files, unreadable ones included.
    pub(super) files: u64,
    pub(super) directories: u64,
    pub(super) bytes: u64,
    /// Line feeds, as `wc -l` counts.
    pub(super) lines: u64,
    /// Files and directories that could not be read to their end.
    pub(super) unreadable: u64,
    /// Calls of tracing macros.
    pub(super) events: u64,
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.directories += other.directories;
        self.bytes += other.bytes;
        self.lines += other.lines;
        self.unreadable += other.unreadable;
        self.events += other.events;
    }
}

/// A path as an argument of an event: its bytes as they are, UTF-8 or not.
#[derive(Clone, Copy)]
struct PathText<'a>(&'a [u8]);

impl<'a> PathText<'a> {
    fn new(path: &'a Path) -> Self {
        let bytes = path.as_os_str().as_bytes();
        Self(if bytes.is_empty() { b"." } else { bytes })
    }
}

impl Value for PathText<'_> {
    const KIND: Kind = Kind::Str;

    fn dynamic_bytes(&self) -> usize {
        self.0.len().next_multiple_of(8)
    }

    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        to.dynamic(offset, self.0);
    }
}

/// A job that is over.
#[derive(Debug)]
pub(super) struct JobDone {
    pub(super) totals: Totals,
    /// How often the directory was read from its beginning to its end.
    pub(super) passes: u64,
    pub(super) took: Duration,
}

impl Job {
    /// Does the job.
    pub(super) fn run(&self) -> JobDone {
        let start = Instant::now();
        let queue = Queue::new(self.files_max);
        let shared = Shared {
            job: self,
            queue: &queue,
            events: (0..self.workers).map(|_| AtomicU64::new(0)).collect(),
            end: start.checked_add(self.time_max),
            device: fs::metadata(&self.root).ok().map(|about| about.dev()),
            cut: AtomicBool::new(false),
        };
        let totals = thread::scope(|scope| {
            let start_worker = |number| {
                let worker = Worker {
                    shared: &shared,
                    number,
                    totals: Totals::default(),
                    buffer: vec![0; 64 << 10],
                };
                let named = thread::Builder::new().name(format!("index-{number}"));
                named.spawn_scoped(scope, move || worker.run())
            };
            // If a thread cannot be made, the others do its work.
            let mut workers: Vec<_> = (1..self.workers)
                .filter_map(|n| start_worker(n).ok())
                .collect();
            let mut totals = Worker {
                shared: &shared,
                number: 0,
                totals: Totals::default(),
                buffer: vec![0; 64 << 10],
            }
            .run();
            for worker in workers.drain(..) {
                totals += worker.join().unwrap_or_default();
            }
            totals
        });
        JobDone {
            totals,
            passes: queue.passes(),
            took: start.elapsed(),
        }
    }
}

/// State that the workers share.
struct Shared<'a> {
    job: &'a Job,
    queue: &'a Queue,
    /// Events emitted, by worker.
    events: Vec<AtomicU64>,
    end: Option<Instant>,
    /// The file system of the root.
    device: Option<u64>,
    cut: AtomicBool,
}

impl Shared<'_> {
    fn is_late(&self) -> bool {
        let late = self.end.is_some_and(|end| Instant::now() >= end);
        if late && !self.cut.swap(true, Relaxed) {
            self.queue.cut();
        }
        late
    }

    fn wants_more(&self) -> bool {
        let emitted: u64 = self.events.iter().map(|n| n.load(Relaxed)).sum();
        emitted < self.job.events_min && !self.cut.load(Relaxed)
    }
}

struct Worker<'a> {
    shared: &'a Shared<'a>,
    number: usize,
    totals: Totals,
    buffer: Vec<u8>,
}

impl Worker<'_> {
    fn run(mut self) -> Totals {
        while let Some(TakenTask { task, waiting }) = self.shared.queue.take() {
            counter!("index.queue", waiting);
            self.emitted();
            match task {
                Task::Directory(path) => self.directory(&path),
                Task::File(path) => self.file(&path),
            }
            let shared = self.shared;
            shared.queue.done(|| shared.wants_more());
        }
        self.totals
    }

    /// Counts an event that a macro has just committed (or counted as lost).
    fn emitted(&mut self) {
        self.totals.events += 1;
        self.shared.events[self.number].store(self.totals.events, Relaxed);
        if let Some(tally) = &self.shared.job.tally {
            let place = 8 * self.number as u64;
            // A count that cannot be written shows as a wrong sum.
            let _ = tally.write_all_at(&self.totals.events.to_le_bytes(), place);
        }
    }

    fn directory(&mut self, path: &Path) {
        let mut span = span!(
            "index.directory",
            path = PathText::new(path),
            entries = 0_u64
        );
        self.totals.directories += 1;
        let mut tasks = Vec::new();
        let read = self.read_directory(path, &mut tasks);
        span.set((PathText::new(path), tasks.len() as u64));
        if !self.shared.is_late() {
            self.shared.queue.add(tasks);
        }
        if let Err(error) = read {
            self.unreadable(path, &error);
        }
        drop(span);
        self.emitted();
    }

    /// Files and directories in a directory, sorted by name so that every run has the same order.
    fn read_directory(&self, path: &Path, tasks: &mut Vec<Task>) -> io::Result<()> {
        let directory = self.shared.job.root.join(path);
        let skipped = self.skipped_in(&directory);
        let mut entries = fs::read_dir(&directory)?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            if SKIPPED.contains(&name.as_bytes()) {
                continue;
            }
            let kind = entry.file_type()?;
            let is_skipped = skipped == Some(name.as_os_str());
            let path = path.join(name);
            if kind.is_dir() && self.is_in_file_system(&entry) {
                tasks.push(Task::Directory(path));
            } else if kind.is_file() && !is_skipped {
                tasks.push(Task::File(path));
            }
        }
        Ok(())
    }

    /// Whether a directory is in the file system of the root. Below `/` others have files without an
    /// end, as `/proc` has. One that says nothing is tried, and then counts as unreadable.
    fn is_in_file_system(&self, entry: &fs::DirEntry) -> bool {
        let device = entry.metadata().ok().map(|about| about.dev());
        device.is_none() || device == self.shared.device
    }

    /// The name to skip in this directory, if it is that of the file to skip.
    fn skipped_in(&self, directory: &Path) -> Option<&OsStr> {
        let skip = self.shared.job.skip.as_deref()?;
        let is_there =
            fs::canonicalize(directory).is_ok_and(|d| Some(d.as_path()) == skip.parent());
        is_there.then(|| skip.file_name()).flatten()
    }

    fn file(&mut self, path: &Path) {
        let mut span = span!(
            "index.file",
            path = PathText::new(path),
            bytes = 0_u64,
            lines = 0_u64
        );
        let before = self.totals;
        self.totals.files += 1;
        if let Err(error) = self.count(path) {
            self.unreadable(path, &error);
        }
        let (bytes, lines) = (
            self.totals.bytes - before.bytes,
            self.totals.lines - before.lines,
        );
        span.set((PathText::new(path), bytes, lines));
        drop(span);
        self.emitted();
    }

    fn count(&mut self, path: &Path) -> io::Result<()> {
        // A path that is no regular file any more is neither followed nor waited for.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(flags.bits() as i32);
        let mut file = options.open(self.shared.job.root.join(path))?;
        while !self.shared.is_late() {
            match file.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(n) => {
                    self.totals.bytes += n as u64;
                    self.totals.lines += count_lines(&self.buffer[..n]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn unreadable(&mut self, path: &Path, error: &io::Error) {
        self.totals.unreadable += 1;
        event!(level: Warn, "index.unreadable", path = PathText::new(path), error = %error);
        self.emitted();
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    // Sums of at most 255 fit a byte: this way the compiler counts many bytes at once.
    let chunk_lines =
        |chunk: &[u8]| u64::from(chunk.iter().map(|b| u8::from(*b == b'\n')).sum::<u8>());
    bytes.chunks(255).map(chunk_lines).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_line_feeds() {
        assert_eq!(count_lines(b""), 0);
        assert_eq!(count_lines(b"no end"), 0);
        assert_eq!(count_lines(&[b'\n'; 1000]), 1000);
    }
}
