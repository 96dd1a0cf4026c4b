//! The collector, its store, and the control group that bounds its memory.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringmark_tests::ca::Ca;
use ringmark_tests::collecting::{served_figure, served_number};
use ringmark_tests::fixture::Fixture;
use ringmark_tests::{ReservedPlace, Running, binary, preload_shim, wait_until};

use super::{GROUP_MAX, LONG};

/// The name of the store begins so.
const STORE: &str = "fleet-memory-objects";

/// Bounds the memory of a process, and measures it; `None`: this machine does not let a test do that.
pub(super) struct MemoryGroup(PathBuf);

impl MemoryGroup {
    fn of(pid: u32) -> Option<Self> {
        let name = format!("ringmark-test-{}", std::process::id());
        let (old, new) = (
            Path::new("/sys/fs/cgroup/memory"),
            Path::new("/sys/fs/cgroup"),
        );
        let is_old = old.is_dir();
        let group = if is_old { old } else { new }.join(name);
        fs::create_dir(&group).ok()?;
        let made = Self(group);
        let limit = if is_old {
            "memory.limit_in_bytes"
        } else {
            "memory.max"
        };
        fs::write(made.0.join(limit), GROUP_MAX.to_string()).ok()?;
        // Sockets are counted from here on, if they are counted apart.
        let sockets = made.0.join("memory.kmem.tcp.limit_in_bytes");
        let _ = fs::write(sockets, "1T");
        fs::write(made.0.join("cgroup.procs"), pid.to_string()).ok()?;
        Some(made)
    }

    /// The most that it took so far, in bytes.
    pub(super) fn peak(&self) -> Option<u64> {
        ["memory.max_usage_in_bytes", "memory.peak"]
            .into_iter()
            .find_map(|name| self.number(name))
    }

    /// The most that its sockets took, in bytes, where they are counted apart: version 2 counts them in the group.
    pub(super) fn sockets(&self) -> Option<u64> {
        self.number("memory.kmem.tcp.max_usage_in_bytes")
    }

    fn number(&self, name: &str) -> Option<u64> {
        let text = fs::read_to_string(self.0.join(name)).ok()?;
        text.trim().parse().ok()
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// A store on a disk: what is in memory like the other files of tests cannot leave it.
struct Store(PathBuf);

impl Store {
    fn new() -> Self {
        let name = format!("{STORE}-{}", std::process::id());
        Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(super) struct Collector {
    // Ends before its group does.
    running: Option<Running>,
    pub(super) group: Option<MemoryGroup>,
    place: ReservedPlace,
    metrics: ReservedPlace,
    /// Puts hang while this file is there.
    pub(super) flag: PathBuf,
    _fixture: Fixture,
    _store: Store,
}

impl Collector {
    pub(super) fn start(fixture: Fixture, ca: &Ca, flush: Duration) -> Self {
        let (place, metrics) = (ReservedPlace::new(), ReservedPlace::new());
        let flag = fixture.path("flag");
        let store = Store::new();
        let shim = preload_shim::build(&fixture, "hanging_shim");
        let mut command = fixture.command(binary::path());
        let own = ca.dir.join("collector");
        command.args(["collect", "--metrics", &metrics.to_string(), "--listen"]);
        command.arg(format!("tls://{place}"));
        command.arg("--objects");
        command.arg(format!("file://{}", store.0.display()));
        command.arg(format!("--flush={}ms", flush.as_millis()));
        command.arg("--cert").arg(own.join("cert.pem"));
        command.arg("--key").arg(own.join("key.pem"));
        command.arg("--ca").arg(ca.dir.join("ca.pem"));
        command.env("LD_PRELOAD", shim).env("SHIM_PATH", STORE);
        command.env("SHIM_WHILE", &flag);
        let running = Running::start(&mut command).expect("ringmark");
        let group = MemoryGroup::of(running.id());
        wait_until(LONG, "a listener", || {
            std::net::TcpStream::connect(metrics.address())
                .ok()
                .map(drop)
        });
        Self {
            running: Some(running),
            group,
            place,
            metrics,
            flag,
            _fixture: fixture,
            _store: store,
        }
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.place.address()
    }

    pub(super) fn figure(&self, name: &str) -> u64 {
        served_figure(self.metrics.address(), name)
    }

    pub(super) fn number(&self, name: &str) -> f64 {
        served_number(self.metrics.address(), name)
    }

    pub(super) fn id(&self) -> u32 {
        self.running.as_ref().expect("it runs").id()
    }

    /// A number of its status.
    pub(super) fn status(&self, name: &str) -> u64 {
        let id = self.id();
        let status = fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
        let line = status.lines().find(|line| line.starts_with(name));
        let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        number.expect("a number")
    }

    /// The most memory of its own that it took so far.
    pub(super) fn peak(&self) -> u64 {
        self.status("VmHWM:") * 1024
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.flag);
        drop(self.running.take());
    }
}
