//! Load on `attach_workers.c`: connections that ask, check each answer, and remember when they asked
//! for what.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ringmark_tests::wait_until;

/// A request takes at most so long, on whatever machine.
const HANGS: Duration = Duration::from_secs(30);
/// Requests after which a connection ends and a new one comes.
const REQUESTS: u32 = 200;

/// A request that was answered rightly.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answered {
    pub(crate) number: u32,
    pub(crate) asked: Instant,
    pub(crate) answered: Instant,
}

/// Clients that run until they are stopped.
#[derive(Debug)]
pub(crate) struct Load {
    is_over: Arc<AtomicBool>,
    next: Arc<AtomicU32>,
    clients: Vec<JoinHandle<io::Result<Vec<Answered>>>>,
}

impl Load {
    /// `pause` lies between the requests of each client.
    pub(crate) fn start(socket: &Path, clients: usize, pause: Duration) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let next = Arc::new(AtomicU32::new(1));
        let client = |_| {
            let (is_over, next) = (Arc::clone(&is_over), Arc::clone(&next));
            let socket = socket.to_owned();
            thread::spawn(move || ask_until(&socket, &is_over, &next, pause))
        };
        Self {
            clients: (0..clients).map(client).collect(),
            is_over,
            next,
        }
    }

    /// Waits until this number of further requests was begun.
    pub(crate) fn goes_on(&self, requests: u32) {
        let end = self.next.load(Ordering::Relaxed) + requests;
        wait_until(HANGS, "requests", || {
            (self.next.load(Ordering::Relaxed) >= end).then_some(())
        });
    }

    /// All requests.
    ///
    /// # Panics
    /// When one failed, or was answered wrongly.
    pub(crate) fn finish(self) -> Vec<Answered> {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.clients.into_iter().map(|client| client.join());
        let answered = ended.map(|result| {
            result
                .expect("a client")
                .expect("no request fails or is answered wrongly")
        });
        answered.flatten().collect()
    }
}

/// The longest request of those asked between two moments.
pub(crate) fn longest(all: &[Answered], from: Instant, to: Instant) -> Duration {
    let within = all
        .iter()
        .filter(|one| one.asked >= from && one.asked <= to);
    within
        .map(|one| one.answered - one.asked)
        .max()
        .unwrap_or_default()
}

/// This number of requests, one after the other.
pub(crate) fn ask_some(socket: &Path, count: u32) -> io::Result<()> {
    let mut stream = connect(socket)?;
    (1..=count).try_for_each(|number| ask(&mut stream, number))
}

fn ask_until(
    socket: &Path,
    is_over: &AtomicBool,
    next: &AtomicU32,
    pause: Duration,
) -> io::Result<Vec<Answered>> {
    let mut all = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let mut stream = connect(socket)?;
        for _ in 0..REQUESTS {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            let number = next.fetch_add(1, Ordering::Relaxed);
            let asked = Instant::now();
            ask(&mut stream, number)?;
            all.push(Answered {
                number,
                asked,
                answered: Instant::now(),
            });
            thread::sleep(pause);
        }
    }
    Ok(all)
}

fn connect(socket: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(HANGS))?;
    Ok(stream)
}

fn ask(stream: &mut UnixStream, number: u32) -> io::Result<()> {
    let bytes: Vec<u8> = (0..20 + number % 200)
        .map(|i| (i * 7 + number) as u8)
        .collect();
    let mut request = number.to_ne_bytes().to_vec();
    request.extend((bytes.len() as u32).to_ne_bytes());
    request.extend(&bytes);
    stream.write_all(&request)?;
    let mut answer = [0; 8];
    stream.read_exact(&mut answer)?;
    let expected = [number.to_ne_bytes(), checksum(number, &bytes).to_ne_bytes()].concat();
    if answer[..] != expected[..] {
        let text = format!("request {number}: found {answer:?}, expected {expected:?}");
        return Err(io::Error::other(text));
    }
    Ok(())
}

/// What `serve_request` computes.
fn checksum(number: u32, bytes: &[u8]) -> u32 {
    let round = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(16_777_619);
    let rounds = (0..number % 3).map(|i| bytes.iter().fold(number + i, round));
    rounds.fold(1, u32::wrapping_add) ^ number
}
