//! A streamer's side of TLS over a socket that does not block.
//!
//! TLS has buffers of its own: bytes may be taken here and wait for the system, which
//! [`Bytes::holds_back`] tells the wire.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Error};

use super::credentials::Credentials;
use super::expiry::Expiry;
use super::socket::{Bytes, poll_for};
use super::tls_errors::explain;

/// A connection whose handshake is over.
pub(super) struct TlsSocket {
    tls: ClientConnection,
    tcp: TcpStream,
}

impl TlsSocket {
    /// Shakes hands over `tcp` with the collector at `place`, `HOST:PORT`: its certificate must be
    /// for that host.
    ///
    /// # Errors
    /// One side does not accept the other, or the handshake takes too long.
    pub(super) fn over(
        tcp: TcpStream,
        place: &str,
        credentials: &Credentials,
        within: Duration,
    ) -> io::Result<Self> {
        let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            io::Error::new(ErrorKind::InvalidInput, format!("{host}: no host name"))
        })?;
        let tls = ClientConnection::new(credentials.as_streamer(), name).map_err(failed)?;
        let mut socket = Self { tls, tcp };
        let deadline = Instant::now() + within;
        while socket.tls.is_handshaking() {
            if let Err(error) = socket.advance()
                && error.kind() != ErrorKind::WouldBlock
            {
                return Err(error);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let text = format!("no TLS handshake within {} s", within.as_secs());
                return Err(io::Error::new(ErrorKind::TimedOut, text));
            }
            if socket.tls.is_handshaking() {
                let mut events = PollFlags::IN;
                events.set(PollFlags::OUT, socket.tls.wants_write());
                let _ = poll_for(socket.fd(), events, left)?;
            }
        }
        Ok(socket)
    }

    /// Takes a step of the handshake.
    fn advance(&mut self) -> io::Result<()> {
        self.push_out()?;
        match self.pull_in()? {
            0 => Err(ended()),
            _ => Ok(()),
        }
    }

    /// Sends what is encrypted and waits for the system.
    fn push_out(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            if self.tls.write_tls(&mut self.tcp)? == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    /// Takes in what came and returns its bytes; 0: the other side has closed.
    fn pull_in(&mut self) -> io::Result<usize> {
        let read = self.tls.read_tls(&mut self.tcp)?;
        if let Err(error) = self.tls.process_new_packets() {
            // The alert that tells the other side why.
            let _ = self.push_out();
            return Err(failed(error));
        }
        Ok(read)
    }
}

impl Read for TlsSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.tls.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The other side closed without an end of TLS: the stream's protocol has its own.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            let _ = self.pull_in()?;
        }
    }
}

impl Write for TlsSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push_out()?;
        let taken = self.tls.writer().write(bytes)?;
        match self.push_out() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.push_out()
    }
}

impl Bytes for TlsSocket {
    fn fd(&self) -> BorrowedFd<'_> {
        self.tcp.as_fd()
    }

    fn holds_back(&self) -> bool {
        self.tls.wants_write()
    }

    fn peer_expiry(&self) -> Option<Expiry> {
        Expiry::of(self.tls.peer_certificates()?)
    }
}

fn failed(error: Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, explain(&error, "collector"))
}

fn ended() -> io::Error {
    let text = "the collector ended the connection during the handshake";
    io::Error::new(ErrorKind::UnexpectedEof, text)
}
