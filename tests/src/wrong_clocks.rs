//! A host whose clocks are wrong, as its collector sees it: a relay between the two that changes
//! every clock reading of the streamer.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use ringmark_format::align8;
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::codec::write::seal_header;
use ringmark_format::counters::CountersHeader;
use ringmark_format::page::PageHeader;
use ringmark_format::session::SessionHeader;
use ringmark_format::stream::{self, Hello, Pong};
use ringmark_ring::clock;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What is wrong with a host's clocks.
#[derive(Debug, Clone, Copy)]
pub struct WrongClocks {
    /// Its realtime clock is ahead by this much.
    pub offset_ns: i64,
    /// Millionths by which both its clocks are fast, from the way's start on.
    pub drift_ppm: i64,
    /// Whether its counters carry clock samples: its streamer has the clocks of its programs.
    pub samples: bool,
    /// What the collector says takes that much longer than what the streamer says.
    pub delay_back: Duration,
}

#[derive(Clone, Copy)]
struct Wrong {
    skew: WrongClocks,
    real_zero: u64,
    mono_zero: u64,
}

impl WrongClocks {
    /// Listens at `path` and passes on to `to`, until the process ends.
    ///
    /// # Panics
    /// When it cannot listen.
    pub fn start(self, path: &Path, to: &Path) {
        let listener = UnixListener::bind(path).expect("a socket");
        let to = to.to_owned();
        let wrong = Wrong {
            skew: self,
            real_zero: clock::realtime_ns(),
            mono_zero: clock::monotonic_ns(),
        };
        thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                let Ok(far) = UnixStream::connect(&to) else {
                    continue;
                };
                let (from, into) = (near.try_clone(), far.try_clone());
                let (Ok(from), Ok(into)) = (from, into) else {
                    continue;
                };
                thread::spawn(move || wrong.there(from, into));
                thread::spawn(move || back(far, near, self.delay_back));
            }
        });
    }
}

fn back(mut from: UnixStream, mut to: UnixStream, delay: Duration) {
    let mut buffer = [0; 8192];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        thread::sleep(delay);
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

impl Wrong {
    fn drift(&self, since: i64) -> i64 {
        (i128::from(since) * i128::from(self.skew.drift_ppm) / 1_000_000) as i64
    }

    fn real(&self, ns: u64) -> u64 {
        let since = ns.wrapping_sub(self.real_zero) as i64;
        ns.wrapping_add_signed(self.skew.offset_ns + self.drift(since))
    }

    fn mono(&self, ns: u64) -> u64 {
        let since = ns.wrapping_sub(self.mono_zero) as i64;
        ns.wrapping_add_signed(self.drift(since))
    }

    fn there(self, mut from: UnixStream, mut to: UnixStream) {
        let mut header = [0; BlockHeader::BYTES];
        while from.read_exact(&mut header).is_ok() {
            let (mut header, _) = BlockHeader::read_from_prefix(&header).expect("64 bytes");
            let mut content = vec![0; align8(header.stored_bytes as usize)];
            if from.read_exact(&mut content).is_err() {
                break;
            }
            self.change(header.kind, &mut content);
            let stored = header.stored_bytes as usize;
            seal_header(&mut header, &content[..stored]).expect("a block");
            let block = [header.as_bytes(), &content].concat();
            if to.write_all(&block).is_err() {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }

    fn change(&self, kind: u16, content: &mut [u8]) {
        match kind {
            kind::SESSION => with(content, |session: &mut SessionHeader| {
                session.real_zero_ns = self.real(session.real_zero_ns);
                session.mono_zero_ns = self.mono(session.mono_zero_ns);
            }),
            kind::PAGE => with(content, |page: &mut PageHeader| {
                if page.mono_base_ns != 0 {
                    page.mono_base_ns = self.mono(page.mono_base_ns);
                }
            }),
            kind::COUNTERS => with(content, |counters: &mut CountersHeader| {
                counters.sample_real_ns = self.real(counters.sample_real_ns);
                if self.skew.samples {
                    counters.sample_mono_ns = self.mono(counters.sample_mono_ns);
                } else {
                    (counters.sample_tick, counters.sample_mono_ns) = (0, 0);
                }
            }),
            stream::kind::HELLO => with(content, |hello: &mut Hello| {
                hello.real_ns = self.real(hello.real_ns);
            }),
            stream::kind::PONG => with(content, |pong: &mut Pong| {
                pong.real_ns = self.real(pong.real_ns);
                pong.mono_ns = self.mono(pong.mono_ns);
            }),
            _ => {}
        }
    }
}

/// Changes the struct at the front.
fn with<T: FromBytes + IntoBytes + KnownLayout + Immutable>(
    content: &mut [u8],
    change: impl FnOnce(&mut T),
) {
    let (mut value, _) = T::read_from_prefix(content).expect("a whole struct");
    change(&mut value);
    content[..size_of::<T>()].copy_from_slice(value.as_bytes());
}
