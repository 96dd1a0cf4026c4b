//! A bad way to an S3 server: which request to put an object meets which fault is a function of a seed and of
//! how many there were.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, sleep};
use std::time::Duration;

use ringmark_format::block::kind;
use ringmark_format::block_at::Blocks;

use super::random::Random;

/// How long a request that stalls or lands late waits: longer than the client does.
fn stall() -> Duration {
    match std::env::var_os("RINGMARK_LONG") {
        Some(_) => Duration::from_secs(30),
        None => Duration::from_millis(1500),
    }
}

/// What becomes of a request to put an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// 503, and the server hears nothing of it.
    Busy,
    /// 500, although the object is there.
    FailedAfter,
    /// The connection ends in the middle of the body.
    CutBody,
    /// The object is there, and the connection ends without an answer.
    CutAnswer,
    /// 412, although the object is there, and the client's own.
    Refused,
    /// 409, and nothing is there.
    Conflict,
    /// Nothing happens for longer than the client waits, and the server hears nothing of it.
    Stall,
    /// The server says that nothing is there. The object is put after the client has given up.
    Late,
    /// The client is killed, and the server hears nothing of it.
    KilledBefore,
    /// The client is killed in the middle of the body.
    KilledIn,
    /// The object is there, and the client is killed before the answer.
    KilledAfter,
    /// The client is told to end, and the object is put.
    Ended,
    /// 200, although nothing is there, until [`FaultProxy::land`]. No way to a server does that.
    Promised,
}

impl Fault {
    /// Those of a client that lives.
    pub(crate) const ALL: [Self; 8] = [
        Self::Busy,
        Self::FailedAfter,
        Self::CutBody,
        Self::CutAnswer,
        Self::Refused,
        Self::Conflict,
        Self::Stall,
        Self::Late,
    ];
    /// Those that kill the client.
    pub(crate) const KILLS: [Self; 3] = [Self::KilledBefore, Self::KilledIn, Self::KilledAfter];
}

/// Ends the client of the address of this number: it is killed, or told to end.
type End = dyn Fn(usize, Fault) + Send + Sync;

/// What happened so far, and what is to happen.
#[derive(Default)]
struct State {
    next: VecDeque<Option<Fault>>,
    /// Whether requests to create what is not there meet faults: no others do, then.
    is_of_creates: bool,
    done: BTreeMap<Fault, usize>,
    /// Kills while pages were put that were not acknowledged.
    with_pages: usize,
    /// Objects that have not landed yet.
    late: usize,
    promised: Vec<(String, Vec<u8>)>,
    /// Requests by method, and bytes of their answers.
    asked: BTreeMap<String, (u64, u64)>,
}

/// What the threads of a proxy share.
struct Way {
    to: String,
    state: Mutex<State>,
    end: Box<End>,
}

/// The proxy. It serves until the process ends.
pub(crate) struct FaultProxy {
    addresses: Vec<String>,
    way: Arc<Way>,
}

/// Faults in random order: half of each kind in a row, so that the client gives up, the others anywhere among as many
/// requests that pass.
pub(crate) fn plan(kinds: &[(Fault, usize)], random: &mut Random) -> Vec<Option<Fault>> {
    let single = |(fault, each): &(Fault, usize)| vec![Some(*fault); each - each / 2];
    let mut plan: Vec<_> = kinds.iter().flat_map(single).collect();
    plan.extend(vec![None; plan.len()]);
    shuffle(&mut plan, random);
    let mut rows = kinds.to_vec();
    shuffle(&mut rows, random);
    let row = |(fault, each)| vec![Some(fault); each / 2];
    plan.extend(rows.into_iter().flat_map(row));
    plan
}

impl FaultProxy {
    /// Passes on to `to`. The requests meet what `plan` says, in their order.
    pub(crate) fn start(to: &str, plan: Vec<Option<Fault>>) -> Self {
        Self::of_clients(to, 1, plan, |_, _| ())
    }

    /// The same with an address for each of some clients, that `end` ends.
    pub(crate) fn of_clients(
        to: &str,
        clients: usize,
        plan: Vec<Option<Fault>>,
        end: impl Fn(usize, Fault) + Send + Sync + 'static,
    ) -> Self {
        let state = State {
            next: plan.into(),
            ..State::default()
        };
        let way = Arc::new(Way {
            to: to.to_owned(),
            state: Mutex::new(state),
            end: Box::new(end),
        });
        let addresses = (0..clients).map(|client| listen(client, &way)).collect();
        Self { addresses, way }
    }

    /// From now on only requests to create what is not there meet faults.
    #[allow(dead_code, reason = "collectors create one object alone")]
    pub(crate) fn of_creates(self) -> Self {
        self.state().is_of_creates = true;
        self
    }

    /// Its `HOST:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.addresses[0]
    }

    /// The same for each client.
    pub(crate) fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// The next request meets this.
    pub(crate) fn next(&self, fault: Fault) {
        self.state().next.push_back(Some(fault));
    }

    /// Puts what was promised.
    pub(crate) fn land(&self) {
        let promised = std::mem::take(&mut self.state().promised);
        assert!(!promised.is_empty(), "nothing was promised");
        for (head, body) in promised {
            let answer = asked(&head, &body, &self.way.to).expect("an answer");
            assert!(answer.starts_with(b"HTTP/1.1 200"));
        }
    }

    /// Whether all faults have happened, and all objects have landed.
    pub(crate) fn is_done(&self) -> bool {
        let state = self.state();
        state.next.is_empty() && state.late == 0
    }

    /// How often each fault happened.
    pub(crate) fn faults(&self) -> BTreeMap<Fault, usize> {
        self.state().done.clone()
    }

    /// How often a client was killed, and how often while pages were put.
    pub(crate) fn kills(&self) -> (usize, usize) {
        let state = self.state();
        let of = |fault| state.done.get(fault).copied().unwrap_or_default();
        (Fault::KILLS.iter().map(of).sum(), state.with_pages)
    }

    /// Requests of a method so far, and bytes of the answers.
    pub(crate) fn asked(&self, method: &str) -> (u64, u64) {
        let state = self.state();
        state.asked.get(method).copied().unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.way.state()
    }
}

fn listen(client: usize, way: &Arc<Way>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let way = way.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let way = way.clone();
            thread::spawn(move || way.pass(&stream, client));
        }
    });
    address
}

fn shuffle<T>(all: &mut [T], random: &mut Random) {
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at as u64 + 1) as usize);
    }
}

impl Way {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes one request on, and its answer back.
    fn pass(&self, mut stream: &TcpStream, client: usize) {
        let Ok((head, body)) = request(stream) else {
            return;
        };
        let method = head.split(' ').next().unwrap_or_default().to_owned();
        let is_create = head.to_lowercase().contains("if-none-match");
        let is_met = |state: &State| method == "PUT" && is_create == state.is_of_creates;
        // A client that was killed gets no further fault.
        let fault = match is_gone(stream) {
            true => None,
            false => self.state().take(is_met, has_pages(&body)),
        };
        let answer = self.answer(fault, (&head, &body), client);
        let answer = answer.unwrap_or_default();
        let mut state = self.state();
        let (requests, bytes) = state.asked.entry(method).or_default();
        *requests += 1;
        *bytes += answer.len() as u64;
        drop(state);
        let _ = stream.write_all(&answer);
        let _ = stream.shutdown(Shutdown::Both);
    }

    fn answer(
        &self,
        fault: Option<Fault>,
        (head, body): (&str, &[u8]),
        client: usize,
    ) -> io::Result<Vec<u8>> {
        let put = || asked(head, body, &self.to);
        match fault {
            None => put(),
            Some(Fault::Busy) => status("503 Slow Down"),
            Some(Fault::Conflict) => status("409 Conflict"),
            Some(Fault::FailedAfter) => put().and_then(|_| status("500 Internal Server Error")),
            Some(Fault::Refused) => put().and_then(|_| status("412 Precondition Failed")),
            Some(Fault::CutBody) => cut(head, body, &self.to),
            Some(Fault::CutAnswer) => put().map(|_| Vec::new()),
            Some(Fault::Stall) => {
                sleep(stall());
                Ok(Vec::new())
            }
            Some(Fault::Late) => self.land_late(head, body),
            Some(Fault::Promised) => {
                let mut state = self.state();
                state.promised.push((head.to_owned(), body.to_vec()));
                // Clients fail without an ETag.
                status("200 OK\r\nETag: \"1\"")
            }
            Some(Fault::Ended) => {
                (self.end)(client, Fault::Ended);
                put()
            }
            Some(kill) => {
                let sent = match kill {
                    Fault::KilledBefore => Ok(Vec::new()),
                    Fault::KilledIn => cut(head, body, &self.to),
                    _ => put(),
                };
                self.state().with_pages += usize::from(has_pages(body));
                (self.end)(client, kill);
                sent.map(|_| Vec::new())
            }
        }
    }

    /// Puts an object that is not there when the client has given up.
    fn land_late(&self, head: &str, body: &[u8]) -> io::Result<Vec<u8>> {
        let is_there = asked(&about(head), &[], &self.to)?.starts_with(b"HTTP/1.1 200");
        if is_there {
            // That is of another try: the next request lands late.
            let mut state = self.state();
            *state.done.entry(Fault::Late).or_default() -= 1;
            state.next.push_front(Some(Fault::Late));
        } else {
            self.state().late += 1;
            sleep(stall());
        }
        let put = asked(head, body, &self.to);
        self.state().late -= usize::from(!is_there);
        put
    }
}

impl State {
    /// What becomes of the next request. Collectors are killed when they put pages.
    fn take(&mut self, is_met: impl Fn(&Self) -> bool, has_pages: bool) -> Option<Fault> {
        let may_kill = has_pages || self.is_of_creates;
        let needs_pages = |fault: Fault| fault == Fault::Promised || Fault::KILLS.contains(&fault);
        let mut next = self.next.iter();
        let at = next.position(|fault| may_kill || !fault.is_some_and(needs_pages));
        let at = at.filter(|_| is_met(self))?;
        let fault = self.next.remove(at)?;
        if let Some(fault) = fault {
            *self.done.entry(fault).or_default() += 1;
        }
        fault
    }
}

/// Whether a segment has pages.
fn has_pages(body: &[u8]) -> bool {
    Blocks::new(body).any(|block| block.header.kind == kind::PAGE)
}

fn status(text: &str) -> io::Result<Vec<u8>> {
    let head = format!("HTTP/1.1 {text}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    Ok(head.into_bytes())
}

/// The request that asks whether the object is there.
fn about(head: &str) -> String {
    let is_kept = |line: &&str| {
        let is_of_body = line.to_lowercase().starts_with("content-length:");
        !is_of_body && !line.is_empty()
    };
    let kept: Vec<_> = head.lines().filter(is_kept).collect();
    kept.join("\r\n").replacen("PUT", "HEAD", 1) + "\r\n\r\n"
}

/// Whether the other end of a connection is closed.
fn is_gone(client: &TcpStream) -> bool {
    let _ = client.set_nonblocking(true);
    let gone =
        !matches!(client.peek(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
    let _ = client.set_nonblocking(false);
    gone
}

/// The head of a request, which asks that the connection be closed, and its body.
fn request(mut from: &TcpStream) -> io::Result<(String, Vec<u8>)> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 16 << 10]);
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        match from.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => bytes.extend_from_slice(&piece[..read]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut body = bytes.split_off(end + 4);
    let length = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.trim().parse::<usize>().ok())?
    };
    let length = head.lines().find_map(length).unwrap_or(0);
    while body.len() < length {
        match from.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => body.extend_from_slice(&piece[..read]),
        }
    }
    let kept = head
        .lines()
        .filter(|line| !line.to_lowercase().starts_with("connection:"));
    let head = kept.collect::<Vec<_>>().join("\r\n");
    Ok((format!("{head}\r\nConnection: close\r\n\r\n"), body))
}

/// The answer of the server.
fn asked(head: &str, body: &[u8], to: &str) -> io::Result<Vec<u8>> {
    let mut server = TcpStream::connect(to)?;
    server.write_all(head.as_bytes())?;
    server.write_all(body)?;
    let mut answer = Vec::new();
    let _ = server.read_to_end(&mut answer)?;
    Ok(answer)
}

/// Sends half of a request; there is no answer.
fn cut(head: &str, body: &[u8], to: &str) -> io::Result<Vec<u8>> {
    let mut server = TcpStream::connect(to)?;
    server.write_all(head.as_bytes())?;
    server.write_all(&body[..body.len() / 2])?;
    server.shutdown(Shutdown::Both)?;
    Ok(Vec::new())
}
