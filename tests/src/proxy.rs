//! A bad network between two sockets: connections that are cut, slow or silent, as a plan says.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What becomes of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Bytes to there after which it is cut.
    pub cut_there: u64,
    /// Bytes back after which it is cut.
    pub cut_back: u64,
    /// Each piece waits that long.
    pub delay: Duration,
    /// Instead of being cut it falls silent: both sides stay open, nothing passes.
    pub silent: bool,
    /// Most bytes that pass in one piece.
    pub at_a_time: usize,
    /// What becomes of bytes on their way there.
    pub damage: Option<Damage>,
}

/// Bytes of a stream that do not arrive as they were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Which byte it begins with.
    pub at: u64,
    /// How many bytes are concerned, made odd: no whole block has an odd size.
    pub bytes: usize,
    /// What is done to them.
    pub how: How,
}

/// What can be done to bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// One bit of the first is turned.
    Flip,
    /// They come twice.
    Repeat,
    /// They come after this many that follow.
    Swap,
    /// They do not come.
    Lose,
}

impl Damage {
    /// Does it to a piece of which the first byte has this number.
    fn apply(&self, piece: &mut Vec<u8>, first: u64) {
        let Some(from) = self.at.checked_sub(first).map(|at| at as usize) else {
            return;
        };
        // In the piece that its first byte is in.
        let there = piece.len().saturating_sub(from);
        let wanted = if self.how == How::Swap {
            there / 2
        } else {
            there
        };
        let bytes = self.bytes.min(wanted);
        if bytes == 0 {
            return;
        }
        let bytes = (bytes - 1) | 1;
        let bytes = if bytes > wanted { bytes - 2 } else { bytes };
        match self.how {
            How::Flip => piece[from] ^= 0x10,
            How::Repeat => {
                let again = piece[from..from + bytes].to_vec();
                piece.splice(from..from, again);
            }
            How::Swap => piece[from..from + 2 * bytes].rotate_left(bytes),
            How::Lose => drop(piece.drain(from..from + bytes)),
        }
    }
}

impl Fault {
    /// A connection that works.
    pub const NONE: Self = Self {
        cut_there: u64::MAX,
        cut_back: u64::MAX,
        delay: Duration::ZERO,
        silent: false,
        at_a_time: 8192,
        damage: None,
    };
}

/// A socket of either kind.
trait Socket: Send + Sized + 'static {
    fn again(&self) -> io::Result<Self>;
    fn wait_at_most(&self, time: Duration) -> io::Result<()>;
    fn close(&self, side: Shutdown);
    fn read_some(&self, buffer: &mut [u8]) -> io::Result<usize>;
    fn write_whole(&self, bytes: &[u8]) -> io::Result<()>;
}

macro_rules! socket {
    ($stream:ty) => {
        impl Socket for $stream {
            fn again(&self) -> io::Result<Self> {
                self.try_clone()
            }
            fn wait_at_most(&self, time: Duration) -> io::Result<()> {
                self.set_read_timeout(Some(time))
            }
            fn close(&self, side: Shutdown) {
                let _ = self.shutdown(side);
            }
            fn read_some(&self, buffer: &mut [u8]) -> io::Result<usize> {
                Read::read(&mut &*self, buffer)
            }
            fn write_whole(&self, bytes: &[u8]) -> io::Result<()> {
                Write::write_all(&mut &*self, bytes)
            }
        }
    };
}
socket!(TcpStream);
socket!(UnixStream);

/// How the thread that accepts is woken.
type Wake = Box<dyn Fn() + Send>;

/// A proxy that runs until it is dropped.
pub struct Proxy {
    wake: Wake,
    port: u16,
    stop: Arc<AtomicBool>,
    connections: Arc<AtomicU64>,
    accepting: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Listens at `path` and passes on to `to`; `plan` says what becomes of connection 0, 1, ….
    ///
    /// # Panics
    /// When it cannot listen.
    pub fn start(path: &Path, to: &Path, plan: impl FnMut(u64) -> Fault + Send + 'static) -> Self {
        let listener = UnixListener::bind(path).expect("a socket");
        let (path, to) = (path.to_owned(), to.to_owned());
        let wake = Box::new(move || drop(UnixStream::connect(&path)));
        let accept = move || Ok((listener.accept()?.0, UnixStream::connect(&to)));
        Self::run(0, wake, accept, plan)
    }

    /// Listens at `path` and passes one connection after the other on to the next of `to`.
    ///
    /// # Panics
    /// When it cannot listen.
    #[must_use]
    pub fn in_turn(path: &Path, to: &[PathBuf]) -> Self {
        let listener = UnixListener::bind(path).expect("a socket");
        let (path, to) = (path.to_owned(), to.to_vec());
        let wake = Box::new(move || drop(UnixStream::connect(&path)));
        let turn = AtomicU64::new(0);
        let accept = move || {
            let (near, _) = listener.accept()?;
            let turn = turn.fetch_add(1, Relaxed) as usize;
            Ok((near, UnixStream::connect(&to[turn % to.len()])))
        };
        Self::run(0, wake, accept, |_| Fault::NONE)
    }

    /// Listens at a port of its own and passes on to `to`, `HOST:PORT`.
    ///
    /// # Panics
    /// When it cannot listen.
    pub fn start_tcp(to: &str, plan: impl FnMut(u64) -> Fault + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let at = listener.local_addr().expect("an address");
        let to = to.to_owned();
        let wake = Box::new(move || drop(TcpStream::connect(at)));
        let accept = move || Ok((listener.accept()?.0, TcpStream::connect(&to)));
        Self::run(at.port(), wake, accept, plan)
    }

    fn run<S: Socket>(
        port: u16,
        wake: Wake,
        accept: impl Fn() -> io::Result<(S, io::Result<S>)> + Send + 'static,
        mut plan: impl FnMut(u64) -> Fault + Send + 'static,
    ) -> Self {
        let (stop, connections) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (stopped, counted) = (stop.clone(), connections.clone());
        let accepting = thread::spawn(move || {
            while let Ok((near, far)) = accept() {
                if stopped.load(Relaxed) {
                    break;
                }
                let fault = plan(counted.fetch_add(1, Relaxed));
                if let Ok(far) = far {
                    pass(&near, &far, fault, &stopped);
                }
            }
        });
        Self {
            wake,
            port,
            stop,
            connections,
            accepting: Some(accepting),
        }
    }

    /// Its port, if it has one.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
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
        (self.wake)();
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// Starts both directions of a connection.
fn pass<S: Socket>(near: &S, far: &S, fault: Fault, stop: &Arc<AtomicBool>) {
    let pair = |from: &S, to: &S| Some((from.again().ok()?, to.again().ok()?));
    let back = Fault {
        damage: None,
        ..fault
    };
    for (ends, cut, fault) in [
        (pair(near, far), fault.cut_there, fault),
        (pair(far, near), fault.cut_back, back),
    ] {
        let stop = stop.clone();
        if let Some((from, to)) = ends {
            thread::spawn(move || copy(&from, &to, (cut, fault), &stop));
        }
    }
}

/// Passes on one direction. Where one side closes, the other direction goes on to its own end.
fn copy<S: Socket>(from: &S, to: &S, (cut, fault): (u64, Fault), stop: &AtomicBool) {
    let _ = from.wait_at_most(Duration::from_millis(100));
    let (mut passed, mut buffer) = (0, vec![0; fault.at_a_time]);
    while !stop.load(Relaxed) {
        let read = match from.read_some(&mut buffer) {
            Ok(0) => return to.close(Shutdown::Write),
            Ok(read) => read,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(_) => return to.close(Shutdown::Write),
        };
        thread::sleep(fault.delay);
        let piece = read.min(usize::try_from(cut - passed).unwrap_or(usize::MAX));
        let mut bytes = buffer[..piece].to_vec();
        if let Some(damage) = fault.damage {
            damage.apply(&mut bytes, passed);
        }
        if to.write_whole(&bytes).is_err() {
            return from.close(Shutdown::Read);
        }
        passed += piece as u64;
        if passed == cut {
            while fault.silent && !stop.load(Relaxed) {
                thread::sleep(Duration::from_millis(50));
            }
            break;
        }
    }
    from.close(Shutdown::Both);
    to.close(Shutdown::Both);
}
