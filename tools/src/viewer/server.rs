//! Waits for the browser, and gives it the file once.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::answer::{self, Body};
use super::request::{self, HEAD_MAX, Request, Served};

/// Connections that may be open without a whole request; the oldest gives way. Browsers open some
/// that they never use.
const PENDING_MAX: usize = 16;
/// How long a connection may take for its request.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// How long a browser may take nothing of what it is sent.
const WRITE_MAX: Duration = Duration::from_secs(30);
/// How often a signal that came a moment too early is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Why nothing is served any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The page has the whole file.
    Fetched,
    /// It did not come in time.
    TimedOut,
    /// A signal came.
    Stopped,
}

/// A listener on loopback.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
    pub(crate) served: Served,
}

/// A connection without a whole request.
struct Pending {
    stream: TcpStream,
    head: Vec<u8>,
    until: Instant,
}

impl Server {
    /// Listens on this port of 127.0.0.1; 0: on one that is free.
    ///
    /// # Errors
    /// The port is in use, or there is no loopback.
    pub(crate) fn listen(port: u16, origin: &'static str, path: String) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let served = Served { path, origin, port };
        Ok(Self { listener, served })
    }

    /// Answers until the file was fetched whole. `write` makes the file; it is asked again if a
    /// browser went away before the end.
    ///
    /// # Errors
    /// Those of waiting.
    pub(crate) fn serve(
        &self,
        limit: Duration,
        stop: &AtomicBool,
        mut write: impl FnMut(&mut Body<'_>) -> io::Result<()>,
    ) -> io::Result<Ended> {
        let until = Instant::now() + limit;
        let mut pending: Vec<Pending> = Vec::new();
        loop {
            let now = Instant::now();
            if stop.load(Ordering::Relaxed) {
                return Ok(Ended::Stopped);
            }
            if now >= until {
                return Ok(Ended::TimedOut);
            }
            pending.retain(|one| now < one.until);
            wait(&self.listener, &pending, until - now)?;
            self.accept(&mut pending);
            let ready = take_ready(&mut pending);
            for (stream, head) in ready {
                if self.answer(&stream, head, stop, &mut write) {
                    return Ok(Ended::Fetched);
                }
            }
        }
    }

    fn accept(&self, pending: &mut Vec<Pending>) {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if pending.len() == PENDING_MAX {
                pending.remove(0);
            }
            pending.push(Pending {
                stream,
                head: Vec::new(),
                until: Instant::now() + REQUEST_MAX,
            });
        }
    }

    /// Answers a request; says whether the file was fetched whole.
    fn answer(
        &self,
        mut stream: &TcpStream,
        head: Result<Vec<u8>, request::Refused>,
        stop: &AtomicBool,
        write: &mut impl FnMut(&mut Body<'_>) -> io::Result<()>,
    ) -> bool {
        let ready = stream.set_nonblocking(false);
        if ready
            .and_then(|()| stream.set_write_timeout(Some(WRITE_MAX)))
            .is_err()
        {
            return false;
        }
        let text = match head.and_then(|head| request::parse(&head, &self.served)) {
            Ok(Request::Fetch) => return self.send(stream, stop, write),
            Ok(Request::Preflight { private_network }) => {
                answer::preflight(&self.served, private_network)
            }
            Err(why) => answer::refusal(why),
        };
        // A browser that went away needs no answer.
        let _ = stream.write_all(text.as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
        false
    }

    fn send(
        &self,
        stream: &TcpStream,
        stop: &AtomicBool,
        write: &mut impl FnMut(&mut Body<'_>) -> io::Result<()>,
    ) -> bool {
        let sent = Body::begin(stream, &self.served, stop).and_then(|mut body| {
            write(&mut body)?;
            body.end()
        });
        sent.is_ok() && was_taken(stream)
    }
}

/// Whether the browser took all that it was sent: it closes the connection, and does not reset it.
fn was_taken(mut stream: &TcpStream) -> bool {
    let ended = stream.shutdown(Shutdown::Write);
    if ended
        .and_then(|()| stream.set_read_timeout(Some(WRITE_MAX)))
        .is_err()
    {
        return false;
    }
    let read = stream.read(&mut [0; 64]);
    // One that stays open has what was sent.
    read.map_or_else(|error| error.kind() == ErrorKind::WouldBlock, |_| true)
}

/// Waits until something comes, for at most a moment.
fn wait(listener: &TcpListener, pending: &[Pending], left: Duration) -> io::Result<()> {
    let mut sources = vec![PollFd::new(listener, PollFlags::IN)];
    let streams = pending
        .iter()
        .map(|one| PollFd::new(&one.stream, PollFlags::IN));
    sources.extend(streams);
    let timeout = Timespec::try_from(left.min(LOOK_EVERY)).ok();
    match poll(&mut sources, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Takes the connections whose request is here, or too long; those that were closed are dropped.
fn take_ready(pending: &mut Vec<Pending>) -> Vec<(TcpStream, Result<Vec<u8>, request::Refused>)> {
    let mut ready = Vec::new();
    for mut one in std::mem::take(pending) {
        let mut bytes = [0; 4096];
        let is_open = loop {
            match one.stream.read(&mut bytes) {
                Ok(0) => break false,
                Ok(count) => one.head.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break error.kind() == ErrorKind::WouldBlock,
            }
            if one.head.len() > HEAD_MAX {
                break true;
            }
        };
        match request::head_length(&one.head) {
            Ok(Some(length)) => {
                one.head.truncate(length);
                ready.push((one.stream, Ok(one.head)));
            }
            Ok(None) if is_open => pending.push(one),
            Ok(None) => {}
            Err(why) => ready.push((one.stream, Err(why))),
        }
    }
    ready
}
