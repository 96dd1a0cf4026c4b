//! A second server that speaks S3, for tests: the crate `s3s-fs`, which has a bucket in a directory. `./test
//! fleet` installs it.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::moto::{HeldPort, left_out};

/// How long the server may take to start.
const WITHIN: Duration = Duration::from_secs(60);

/// The server, with a bucket named `bucket`. Its directory is removed at the end.
pub(crate) struct S3s {
    server: Child,
    port: HeldPort,
    root: PathBuf,
}

impl S3s {
    /// Starts it. `None`: it is not installed, and this test is named among those that were left out.
    ///
    /// # Panics
    /// When it does not start.
    pub(crate) fn start() -> Option<Self> {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let there = Command::new("s3s-fs").arg("--version").output();
        if !there.is_ok_and(|done| done.status.success()) {
            left_out("the program s3s-fs");
            return None;
        }
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("ringmark-s3s-{number}-{}", std::process::id());
        let (root, port) = (std::env::temp_dir().join(name), HeldPort::new());
        fs::create_dir_all(root.join("bucket")).expect("a directory");
        let mut server = Command::new("s3s-fs");
        server.args(["--host", "127.0.0.1", "--port", &port.number().to_string()]);
        server.args(["--access-key", "test", "--secret-key", "test"]);
        let server = server.arg(&root).env("RUST_LOG", "off");
        let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let server = Self {
            server: server.expect("s3s-fs"),
            port,
            root,
        };
        let begun = Instant::now();
        while TcpStream::connect(server.address()).is_err() {
            assert!(begun.elapsed() < WITHIN, "s3s-fs does not listen");
            sleep(Duration::from_millis(50));
        }
        Some(server)
    }

    /// Its `HOST:PORT`.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port.number())
    }

    /// Names and bytes of the objects of a store below a prefix.
    ///
    /// # Panics
    /// When they cannot be read.
    pub(crate) fn objects(&self, store: &str, prefix: &str) -> Vec<(String, Vec<u8>)> {
        let mut objects = Vec::new();
        add(&self.root.join("bucket").join(store), prefix, &mut objects);
        objects
    }
}

/// Adds the file `name` below a directory, or all files below that name.
fn add(root: &Path, name: &str, objects: &mut Vec<(String, Vec<u8>)>) {
    let path = root.join(name);
    let Ok(entries) = fs::read_dir(&path) else {
        objects.push((name.to_owned(), fs::read(path).expect("an object")));
        return;
    };
    for entry in entries {
        let entry = entry.expect("an entry").file_name();
        add(root, &format!("{name}/{}", entry.display()), objects);
    }
}

impl Drop for S3s {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = fs::remove_dir_all(&self.root);
    }
}
