//! What a browser is told.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

use super::request::{Refused, Served};

/// Bytes of the file that are sent at once.
const CHUNK: usize = 64 << 10;

/// The head of an answer with this status.
fn head(status: &str, more: &[&str]) -> String {
    let mut text = format!("HTTP/1.1 {status}\r\nConnection: close\r\nCache-Control: no-store\r\n");
    for line in more {
        text += line;
        text += "\r\n";
    }
    text + "\r\n"
}

/// The header that lets the page read the answer.
fn allowed(served: &Served) -> String {
    format!("Access-Control-Allow-Origin: {}", served.origin)
}

/// The answer to a request that is refused: no page may read it.
pub(super) fn refusal(why: Refused) -> String {
    let status = match why {
        Refused::Malformed => "400 Bad Request",
        Refused::Forbidden => "403 Forbidden",
        Refused::NotFound => "404 Not Found",
        Refused::Method => "405 Method Not Allowed",
        Refused::TooLong => "431 Request Header Fields Too Large",
    };
    head(status, &["Content-Length: 0"])
}

/// The answer to a browser that asks before it fetches.
pub(super) fn preflight(served: &Served, private_network: bool) -> String {
    let allowed = allowed(served);
    let mut lines = vec![
        &allowed[..],
        "Access-Control-Allow-Methods: GET",
        "Vary: Origin",
    ];
    if private_network {
        lines.push("Access-Control-Allow-Private-Network: true");
    }
    head("204 No Content", &lines)
}

/// The body of an answer whose length is not known before: pieces with their lengths. A body that
/// ends too early is an error for the browser.
pub(crate) struct Body<'s> {
    to: &'s TcpStream,
    piece: Vec<u8>,
    stop: &'s AtomicBool,
}

impl<'s> Body<'s> {
    /// Sends the head of the answer. `stop`: the file is no longer served.
    ///
    /// # Errors
    /// The browser went away.
    pub(super) fn begin(
        mut to: &'s TcpStream,
        served: &Served,
        stop: &'s AtomicBool,
    ) -> io::Result<Self> {
        let lines = [
            &allowed(served)[..],
            "Vary: Origin",
            "Content-Type: application/octet-stream",
            "X-Content-Type-Options: nosniff",
            "Transfer-Encoding: chunked",
        ];
        to.write_all(head("200 OK", &lines).as_bytes())?;
        let piece = Vec::with_capacity(CHUNK);
        Ok(Self { to, piece, stop })
    }

    /// Sends the end.
    ///
    /// # Errors
    /// The browser went away.
    pub(super) fn end(mut self) -> io::Result<()> {
        self.flush()?;
        self.to.write_all(b"0\r\n\r\n")
    }
}

impl Write for Body<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(CHUNK - self.piece.len());
        self.piece.extend_from_slice(&bytes[..fits]);
        if self.piece.len() == CHUNK {
            self.flush()?;
        }
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("stopped"));
        }
        if self.piece.is_empty() {
            return Ok(());
        }
        write!(self.to, "{:x}\r\n", self.piece.len())?;
        self.piece.extend_from_slice(b"\r\n");
        self.to.write_all(&self.piece)?;
        self.piece.clear();
        Ok(())
    }
}
