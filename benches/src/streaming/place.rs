//! What is sent: a ring file in memory, and the dump of it; and where it is stored.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::thread;

use ringmark::event;
use ringmark_collector::certs::{self, Validity};
use ringmark_collector::store::SyncMode;
use ringmark_reader::stream::Credentials;
use ringmark_reader::{Destination, Dump, Durability, RecordOptions, Recorder, Selection};

use super::collecting::{Collecting, Reached};
use super::sent::{Begun, Sent};

/// Who streams, as its certificate says.
pub(super) const HOST: &str = "bench";
/// Rings of threads, filled to the brim.
const RINGMARK: &str = "mode=discard,ring=32M,page=64K,session=1100M,keep=always";
const THREADS: usize = 16;
const MEMORY: &str = "/dev/shm";
/// `TMPFS_MAGIC` of `linux/magic.h`.
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Directories in memory and on a disk.
#[derive(Debug)]
pub struct Place {
    memory: PathBuf,
    disk: PathBuf,
    original: PathBuf,
    dump: PathBuf,
    host: Credentials,
    collector: Credentials,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.memory);
        let _ = fs::remove_dir_all(&self.disk);
    }
}

/// A process that fills its rings, and leaves them.
pub fn fill() {
    ringmark::start_from_env();
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for i in 0..1_200_000_u64 {
                    event!("streaming.work", i = i, j = i, k = i);
                }
                // A ring is not to be used again.
                barrier.wait();
            });
        }
    });
}

impl Place {
    /// Has this program fill rings, in a process of its own, and records them.
    ///
    /// # Panics
    /// When it cannot.
    #[must_use]
    pub fn filled() -> Self {
        let name = format!("ringmark-streaming-{}", std::process::id());
        let (memory, disk) = (Path::new(MEMORY).join(&name), a_disk().join(&name));
        let sessions = memory.join("sessions");
        for directory in [&memory, &disk] {
            fs::create_dir_all(directory).expect("a directory");
        }
        let program = std::env::current_exe().expect("the path of this program");
        let mut child = Command::new(program);
        child.arg("fill").env("RINGMARK", RINGMARK);
        let filled = child.env("RINGMARK_DIR", &sessions).status();
        assert!(filled.is_ok_and(|status| status.success()), "a filled ring");
        let mut files = fs::read_dir(&sessions).expect("sessions").flatten();
        let is_large = |path: &PathBuf| bytes_of(path) > 1 << 20;
        let original = files.find_map(|entry| Some(entry.path()).filter(is_large));
        let (host, collector) = certificates(&memory.join("ca"));
        let place = Self {
            original: original.expect("a ring file"),
            dump: memory.join("dump"),
            memory,
            disk,
            host,
            collector,
        };
        place.record();
        place
    }

    fn record(&self) {
        let dump = Dump::create(&Destination::File(self.dump.clone()), Durability::System)
            .expect("a dump");
        let selection = Selection::Path(self.ring_file());
        let options = RecordOptions::default();
        let mut recorder = Recorder::new(selection, dump, options).expect("a session");
        recorder.finish().expect("a recording");
        assert!(self.bytes() > 500_000_000, "full rings: {}", self.bytes());
    }

    /// Bytes of the dump, which every sender sends.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        bytes_of(&self.dump)
    }

    pub(super) fn dump(&self) -> &Path {
        &self.dump
    }

    pub(super) fn credentials(&self) -> &Credentials {
        &self.host
    }

    /// A ring file that no reader has read.
    pub(super) fn ring_file(&self) -> PathBuf {
        let copy = self.memory.join("copy.ring");
        let _ = fs::copy(&self.original, &copy).expect("a copy");
        copy
    }

    /// Has the blocks sent to a new collector, which stores in memory or on a synced disk.
    pub(super) fn collect(&self, sync: SyncMode, send: impl FnOnce(&Reached) -> Sent) -> Sent {
        let root = match sync {
            SyncMode::Cache => self.memory.join("store"),
            SyncMode::Disk => self.disk.join("store"),
        };
        let collecting = Collecting::start(&root, sync, self.collector.clone());
        let sent = send(&collecting.at);
        drop(collecting);
        let _ = fs::remove_dir_all(root);
        sent
    }

    /// Has `dd` copy the dump to the disk.
    ///
    /// # Panics
    /// When it does not.
    #[must_use]
    pub fn dd(&self) -> Sent {
        let to = self.disk.join("dd");
        let begun = Begun::now();
        let mut dd = Command::new("dd");
        dd.arg(format!("if={}", self.dump.display()));
        dd.arg(format!("of={}", to.display()));
        let done = dd.args(["bs=1M", "conv=fdatasync", "status=none"]).status();
        assert!(done.is_ok_and(|status| status.success()), "dd");
        let sent = begun.ended();
        let _ = fs::remove_file(to);
        Sent {
            cpu_seconds: None,
            ..sent
        }
    }
}

/// A directory that is not in memory.
fn a_disk() -> PathBuf {
    let directory = std::env::temp_dir();
    let about = rustix::fs::statfs(&directory).expect("a file system");
    if about.f_type != TMPFS_MAGIC {
        return directory;
    }
    let program = std::env::current_exe().expect("the path of this program");
    program.parent().map(Path::to_owned).expect("a directory")
}

/// Certificates of the host that streams, and of the collector.
fn certificates(dir: &Path) -> (Credentials, Credentials) {
    let day = Validity::days(1);
    certs::ca(dir, day).expect("a certificate");
    let host = certs::host(dir, HOST, day).expect("a certificate");
    let names = ["127.0.0.1".to_owned()];
    let collector = certs::collector(dir, &names, day).expect("a certificate");
    let load = |at: PathBuf| {
        let (ca, cert, key) = (at.join("ca.pem"), at.join("cert.pem"), at.join("key.pem"));
        Credentials::load(&ca, &cert, &key).expect("a certificate")
    };
    (load(host), load(collector))
}

/// Bytes of a file.
fn bytes_of(file: &Path) -> u64 {
    std::fs::metadata(file).expect("a file").len()
}
