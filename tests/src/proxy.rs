//! A bad network between two unix sockets: connections that are cut, slow or silent, as a plan says.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What becomes of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// It is cut when so many bytes went there.
    pub cut_there: u64,
    /// It is cut when so many bytes came back.
    pub cut_back: u64,
    /// Each piece waits that long.
    pub delay: Duration,
    /// Instead of being cut it falls silent: both sides stay open, nothing passes.
    pub silent: bool,
}

impl Fault {
    /// A connection that works.
    pub const NONE: Self = Self {
        cut_there: u64::MAX,
        cut_back: u64::MAX,
        delay: Duration::ZERO,
        silent: false,
    };
}

/// A proxy that runs until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    connections: Arc<AtomicU64>,
    accepting: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Listens at `path` and passes on to `to`; `plan` says what becomes of connection 0, 1, ….
    ///
    /// # Panics
    /// When it cannot listen.
    pub fn start(
        path: &Path,
        to: &Path,
        mut plan: impl FnMut(u64) -> Fault + Send + 'static,
    ) -> Self {
        let listener = UnixListener::bind(path).expect("a socket");
        let (stop, connections) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (stopped, counted, to) = (stop.clone(), connections.clone(), to.to_owned());
        let accepting = thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                if stopped.load(Relaxed) {
                    break;
                }
                let fault = plan(counted.fetch_add(1, Relaxed));
                if let Ok(far) = UnixStream::connect(&to) {
                    pass(&near, &far, fault, &stopped);
                }
            }
        });
        Self {
            path: path.to_owned(),
            stop,
            connections,
            accepting: Some(accepting),
        }
    }

    /// Connections so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections.load(Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        // Wakes the one who accepts.
        drop(UnixStream::connect(&self.path));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// Starts both directions of a connection.
fn pass(near: &UnixStream, far: &UnixStream, fault: Fault, stop: &Arc<AtomicBool>) {
    let pair =
        |from: &UnixStream, to: &UnixStream| Some((from.try_clone().ok()?, to.try_clone().ok()?));
    for (ends, cut) in [
        (pair(near, far), fault.cut_there),
        (pair(far, near), fault.cut_back),
    ] {
        let stop = stop.clone();
        if let Some((from, to)) = ends {
            thread::spawn(move || copy(&from, &to, (cut, fault), &stop));
        }
    }
}

fn copy(mut from: &UnixStream, mut to: &UnixStream, (cut, fault): (u64, Fault), stop: &AtomicBool) {
    let _ = from.set_read_timeout(Some(Duration::from_millis(100)));
    let (mut passed, mut buffer) = (0, [0; 8192]);
    while !stop.load(Relaxed) {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(_) => break,
        };
        thread::sleep(fault.delay);
        let piece = read.min(usize::try_from(cut - passed).unwrap_or(usize::MAX));
        if to.write_all(&buffer[..piece]).is_err() {
            break;
        }
        passed += piece as u64;
        if passed == cut {
            while fault.silent && !stop.load(Relaxed) {
                thread::sleep(Duration::from_millis(50));
            }
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
