//! A server that speaks S3, for tests: the Python package `moto`. `./test fleet` installs it.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use tokio::net::TcpSocket;

/// How long the server may take to start.
const WITHIN: Duration = Duration::from_secs(60);
/// Serves until its standard input ends, so that it does not outlive a test that is killed.
const SERVE: &str = "\
import os, sys, threading
def end():
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=end, daemon=True).start()
from moto.server import main
main(['-H', '127.0.0.1', '-p', sys.argv[1]])
";

/// The server asks who reads, and not whether it is true.
const SIGNED: &str = "Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
    SignedHeaders=host, Signature=0";

/// The server, with a bucket named `bucket`.
pub(crate) struct Moto {
    server: Child,
    port: HeldPort,
}

impl Moto {
    /// Starts it. `None`: it is not installed, and this test is named among those that were left out.
    ///
    /// # Panics
    /// When it does not start.
    pub(crate) fn start() -> Option<Self> {
        let mut probe = Command::new("python3");
        let probe = probe.args(["-c", "import moto.server"]);
        let probe = probe.stderr(Stdio::null()).status();
        if !probe.is_ok_and(|status| status.success()) {
            left_out("the Python package moto[server]");
            return None;
        }
        let port = HeldPort::new();
        let server = Command::new("python3")
            .args(["-c", SERVE, &port.number().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("python3");
        let moto = Self { server, port };
        let begun = Instant::now();
        while TcpStream::connect(moto.address()).is_err() {
            assert!(begun.elapsed() < WITHIN, "moto does not listen");
            sleep(Duration::from_millis(50));
        }
        let made = moto.ask("PUT", "/bucket");
        assert!(made.starts_with("HTTP/1.1 200"), "{made}");
        Some(moto)
    }

    /// Its `HOST:PORT`.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port.number())
    }

    /// What it answers to a request without a body.
    ///
    /// # Panics
    /// When it does not answer.
    pub(crate) fn ask(&self, method: &str, path: &str) -> String {
        let (head, body) = self.ask_with(method, path, b"");
        head + &String::from_utf8_lossy(&body)
    }

    /// The head and the body of what it answers to a request.
    ///
    /// # Panics
    /// When it does not answer.
    pub(crate) fn ask_with(&self, method: &str, path: &str, body: &[u8]) -> (String, Vec<u8>) {
        let address = self.address();
        let mut asking = TcpStream::connect(&address).expect("a connection");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n{SIGNED}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let request = [head.as_bytes(), body].concat();
        asking.write_all(&request).expect("a request");
        let mut answer = Vec::new();
        let _ = asking.read_to_end(&mut answer).expect("an answer");
        let mut fours = answer.windows(4);
        let end = fours.position(|four| four == b"\r\n\r\n").expect("a head") + 4;
        let body = answer.split_off(end);
        (String::from_utf8_lossy(&answer).into_owned(), body)
    }

    /// Puts the file `name` below `root`, or all files below that directory, as objects of a store.
    ///
    /// # Panics
    /// When it cannot be read, or the server refuses it.
    pub(crate) fn upload(&self, store: &str, root: &Path, name: &str) {
        let path = root.join(name);
        if let Ok(entries) = fs::read_dir(&path) {
            for entry in entries {
                let entry = entry.expect("an entry").file_name();
                self.upload(store, root, &format!("{name}/{}", entry.display()));
            }
            return;
        }
        let bytes = fs::read(path).expect("an object");
        let (head, _) = self.ask_with("PUT", &format!("/bucket/{store}/{name}"), &bytes);
        assert!(head.starts_with("HTTP/1.1 200"), "{name}: {head}");
    }

    /// Names and bytes of the objects of a store below a prefix.
    ///
    /// # Panics
    /// When it does not answer.
    pub(crate) fn objects(&self, store: &str, prefix: &str) -> Vec<(String, Vec<u8>)> {
        let mut objects: Vec<(String, Vec<u8>)> = Vec::new();
        loop {
            let last = objects.last();
            let last = last.map_or(String::new(), |(name, _)| {
                format!("&start-after={store}/{name}")
            });
            let path = format!("/bucket?list-type=2&prefix={store}/{prefix}{last}");
            let listed = self.ask("GET", &path);
            for key in listed.split("<Key>").skip(1) {
                let key = key.split("</Key>").next().expect("a key");
                let (head, bytes) = self.ask_with("GET", &format!("/bucket/{key}"), b"");
                assert!(head.starts_with("HTTP/1.1 200"), "{key}: {head}");
                let name = key[store.len()..].trim_start_matches('/');
                objects.push((name.to_owned(), bytes));
            }
            if !listed.contains("<IsTruncated>true") {
                return objects;
            }
        }
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The settings of a client of a server at `HOST:PORT`.
pub(crate) fn settings(address: &str) -> Vec<(&'static str, String)> {
    vec![
        ("AWS_ACCESS_KEY_ID", "test".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ENDPOINT_URL", format!("http://{address}")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_TIMEOUT", "1s".to_owned()),
    ]
}

/// A port of this host that is taken and does not listen: the kernel gives it to no other process, and a server of the
/// test may listen there.
pub(crate) struct HeldPort(TcpSocket);

impl HeldPort {
    pub(crate) fn new() -> Self {
        let held = TcpSocket::new_v4().expect("a socket");
        // Servers set it, too: then both may have the port.
        held.set_reuseaddr(true).expect("an option");
        held.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
        Self(held)
    }

    pub(crate) fn number(&self) -> u16 {
        self.0.local_addr().expect("an address").port()
    }
}

/// Says that this test is left out, and what it needs.
pub(crate) fn left_out(needs: &str) {
    let thread = thread::current();
    let line = format!("{}: needs {needs}", thread.name().unwrap_or("a test"));
    eprintln!("skipped: {line}");
    let Some(path) = std::env::var_os("RINGMARK_SKIP_LOG") else {
        return;
    };
    let file = OpenOptions::new().create(true).append(true).open(path);
    if let Ok(mut file) = file {
        let _ = writeln!(file, "{line}");
    }
}
