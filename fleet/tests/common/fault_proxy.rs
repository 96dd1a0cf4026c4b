//! A bad way to an S3 server: which request to put an object meets which fault is a function of a seed and of
//! how many there were.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, sleep};
use std::time::Duration;

use super::random::Random;

/// How long a stalled request waits: longer than the client does.
const STALL: Duration = Duration::from_millis(1500);
/// How long a request is held, so that its sender can be killed.
const HOLD: Duration = Duration::from_millis(150);

/// What becomes of a request.
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
    /// Nothing happens for longer than the client waits; then the object is put all the same.
    Stall,
    /// It waits a moment. If the client is gone then, the server hears nothing of it.
    HeldBefore,
    /// The object is there, and the answer waits a moment.
    HeldAfter,
}

impl Fault {
    /// Those of a client that lives.
    pub(crate) const ALL: [Self; 5] = [
        Self::Busy,
        Self::FailedAfter,
        Self::CutBody,
        Self::CutAnswer,
        Self::Stall,
    ];
}

/// What happened so far, and what is to happen.
#[derive(Default)]
struct Plan {
    next: VecDeque<Option<Fault>>,
    /// Whether requests to create what is not there meet faults: no others do, then.
    is_of_creates: bool,
    /// Two that happen in turn when there is nothing next, or none.
    then: Vec<Fault>,
    /// What is held now.
    held: Option<Fault>,
    done: BTreeMap<Fault, usize>,
    /// Requests by method, and bytes of their answers.
    asked: BTreeMap<String, (u64, u64)>,
}

/// The proxy. It serves until the process ends.
pub(crate) struct FaultProxy {
    address: String,
    plan: Arc<Mutex<Plan>>,
}

impl FaultProxy {
    /// Passes on to `to`. Each fault happens `each` times: half of them in a row, so that the client gives up,
    /// the others anywhere among as many requests that pass.
    pub(crate) fn start(to: &str, each: usize, random: &mut Random) -> Self {
        let single = |fault| vec![Some(fault); each - each / 2];
        let mut next: Vec<_> = Fault::ALL.into_iter().flat_map(single).collect();
        next.extend(vec![None; next.len()]);
        shuffle(&mut next, random);
        let mut rows = Fault::ALL;
        shuffle(&mut rows, random);
        next.extend(
            rows.into_iter()
                .flat_map(|fault| vec![Some(fault); each / 2]),
        );
        let next = next.into();
        Self::of(
            to,
            Plan {
                next,
                ..Plan::default()
            },
        )
    }

    /// Passes on to `to`, and holds each request to put an object for a moment, before or after the server has it.
    pub(crate) fn holding(to: &str) -> Self {
        let then = vec![Fault::HeldBefore, Fault::HeldAfter];
        Self::of(
            to,
            Plan {
                then,
                ..Plan::default()
            },
        )
    }

    /// From now on only requests to create what is not there meet faults.
    #[allow(dead_code, reason = "collectors create one object alone")]
    pub(crate) fn of_creates(self) -> Self {
        lock(&self.plan).is_of_creates = true;
        self
    }

    fn of(to: &str, plan: Plan) -> Self {
        let plan = Arc::new(Mutex::new(plan));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (to, shared) = (to.to_owned(), plan.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (to, plan) = (to.clone(), shared.clone());
                thread::spawn(move || pass(&client, &to, &plan));
            }
        });
        Self { address, plan }
    }

    /// Its `HOST:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Whether all faults have happened.
    pub(crate) fn is_done(&self) -> bool {
        lock(&self.plan).next.is_empty()
    }

    /// Whether a request is held in this way now.
    pub(crate) fn holds(&self, fault: Fault) -> bool {
        lock(&self.plan).held == Some(fault)
    }

    /// How often each fault happened.
    pub(crate) fn faults(&self) -> BTreeMap<Fault, usize> {
        lock(&self.plan).done.clone()
    }

    /// Requests of a method so far, and bytes of the answers.
    pub(crate) fn asked(&self, method: &str) -> (u64, u64) {
        let plan = lock(&self.plan);
        plan.asked.get(method).copied().unwrap_or_default()
    }
}

fn shuffle<T>(all: &mut [T], random: &mut Random) {
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at as u64 + 1) as usize);
    }
}

fn lock(plan: &Mutex<Plan>) -> MutexGuard<'_, Plan> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes one request on, and its answer back.
fn pass(mut client: &TcpStream, to: &str, plan: &Mutex<Plan>) {
    let Ok((head, body)) = request(client) else {
        return;
    };
    let method = head.split(' ').next().unwrap_or_default().to_owned();
    let is_create = head.to_lowercase().contains("if-none-match");
    let mut shared = lock(plan);
    let is_met = method == "PUT" && is_create == shared.is_of_creates;
    let fault = is_met.then(|| shared.take()).flatten();
    drop(shared);
    let status =
        |text| format!("HTTP/1.1 {text}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let answer = match fault {
        Some(Fault::Busy) => status("503 Slow Down").into_bytes(),
        Some(Fault::CutBody) => {
            let _ = cut(&head, &body, to);
            Vec::new()
        }
        Some(Fault::FailedAfter) => {
            let _ = asked(&head, &body, to);
            status("500 Internal Server Error").into_bytes()
        }
        Some(Fault::CutAnswer) => {
            let _ = asked(&head, &body, to);
            Vec::new()
        }
        Some(Fault::Stall) => {
            sleep(STALL);
            asked(&head, &body, to).unwrap_or_default()
        }
        Some(Fault::HeldBefore) => {
            hold(Fault::HeldBefore, plan);
            match is_gone(client) {
                true => Vec::new(),
                false => asked(&head, &body, to).unwrap_or_default(),
            }
        }
        Some(Fault::HeldAfter) => {
            let answer = asked(&head, &body, to).unwrap_or_default();
            hold(Fault::HeldAfter, plan);
            answer
        }
        None => asked(&head, &body, to).unwrap_or_default(),
    };
    let mut plan = lock(plan);
    let (requests, bytes) = plan.asked.entry(method).or_default();
    *requests += 1;
    *bytes += answer.len() as u64;
    drop(plan);
    let _ = client.write_all(&answer);
    let _ = client.shutdown(Shutdown::Both);
}

impl Plan {
    /// What becomes of the next request.
    fn take(&mut self) -> Option<Fault> {
        let next = self.next.pop_front().flatten();
        let fault = next.or_else(|| {
            self.then.reverse();
            self.then.first().copied()
        });
        if let Some(fault) = fault {
            *self.done.entry(fault).or_default() += 1;
        }
        fault
    }
}

fn hold(fault: Fault, plan: &Mutex<Plan>) {
    lock(plan).held = Some(fault);
    sleep(HOLD);
    lock(plan).held = None;
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

/// Sends half of a request.
fn cut(head: &str, body: &[u8], to: &str) -> io::Result<()> {
    let mut server = TcpStream::connect(to)?;
    server.write_all(head.as_bytes())?;
    server.write_all(&body[..body.len() / 2])?;
    server.shutdown(Shutdown::Both)
}
