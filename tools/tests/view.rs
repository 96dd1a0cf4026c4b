//! `view` and what a browser does with it: the page gets the trace once, no other page gets anything.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use common::{LIMIT, Stage, expect};

/// A `ringmark view` that serves.
struct View {
    child: Child,
    port: u16,
    path: String,
}

impl View {
    fn start(stage: &Stage) -> Self {
        let mut command = stage.ringmark(&["view", "a.rmk", "--port", "0", "--wait", "100s"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut address = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut address).unwrap();
        let start = "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001";
        let path = address.trim().strip_prefix(start).unwrap().to_owned();
        let told = BufReader::new(child.stderr.as_mut().unwrap()).lines();
        let mut told = told.map(Result::unwrap);
        let ssh = told
            .find(|line| line.contains("ssh -L 9001:127.0.0.1:"))
            .unwrap();
        let (_, port) = ssh.split_once("9001:127.0.0.1:").unwrap();
        let port = port.split(' ').next().unwrap().parse().unwrap();
        Self { child, port, path }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// The head and the body of the answer to these bytes.
    fn ask(&self, bytes: &[u8]) -> (String, Vec<u8>) {
        let mut stream = self.connect();
        // A request that is refused early is not read to its end.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.map_or(answer.len(), |end| end + 4);
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        (head, answer[end..].to_vec())
    }

    fn request(&self, method: &str, path: &str, origin: &str, more: &str) -> Vec<u8> {
        let host = format!("Host: 127.0.0.1:{}", self.port);
        format!("{method} {path} HTTP/1.1\r\n{host}\r\nOrigin: {origin}\r\n{more}\r\n").into_bytes()
    }

    /// Its exit status.
    fn end(&mut self) -> Option<i32> {
        let ended = ringmark_tests::wait_until(LIMIT, "its end", || self.child.try_wait().unwrap());
        ended.code()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const PERFETTO: &str = "https://ui.perfetto.dev";

/// The body of an answer that came in pieces.
fn whole(mut pieces: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = pieces.windows(2).position(|two| two == b"\r\n").unwrap();
        let length = std::str::from_utf8(&pieces[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        pieces = &pieces[end + 2..];
        if length == 0 {
            assert_eq!(pieces, b"\r\n");
            return body;
        }
        body.extend_from_slice(&pieces[..length]);
        assert_eq!(&pieces[length..length + 2], b"\r\n");
        pieces = &pieces[length + 2..];
    }
}

#[test]
fn the_page_gets_the_trace_once() {
    let stage = Stage::new("view");
    stage.record("a.rmk", &["2", "6000", "0", "mix"]);
    let exported = stage.run(&["export", "a.rmk", "-o", "out.pftrace"]);
    let _ = exported.expect_code(0);
    let exported = std::fs::read(stage.path("out.pftrace")).unwrap();
    let mut view = View::start(&stage);
    // Browsers open connections that they may use later.
    let _idle: Vec<_> = (0..40).map(|_| view.connect()).collect();
    let asks =
        "Access-Control-Request-Method: GET\r\nAccess-Control-Request-Private-Network: true\r\n";
    let (head, body) = view.ask(&view.request("OPTIONS", &view.path, PERFETTO, asks));
    assert!(
        head.starts_with("HTTP/1.1 204 ") && body.is_empty(),
        "{head}"
    );
    assert!(
        head.contains("Access-Control-Allow-Private-Network: true\r\n"),
        "{head}"
    );
    assert!(
        head.contains("Access-Control-Allow-Origin: https://ui.perfetto.dev\r\n"),
        "{head}"
    );
    // One that goes away before the end has not fetched it.
    let mut gone = view.connect();
    gone.write_all(&view.request("GET", &view.path, PERFETTO, ""))
        .unwrap();
    let mut first = [0; 16];
    gone.read_exact(&mut first).unwrap();
    drop(gone);
    let (head, body) = view.ask(&view.request("GET", &view.path, PERFETTO, ""));
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains("Access-Control-Allow-Origin: https://ui.perfetto.dev\r\n"),
        "{head}"
    );
    assert!(
        whole(&body) == exported,
        "the page has what 'export' writes"
    );
    assert_eq!(view.end(), Some(0));
    assert!(TcpStream::connect(("127.0.0.1", view.port)).is_err());
}

#[test]
fn no_other_page_gets_anything() {
    let stage = Stage::new("view-others");
    stage.record("a.rmk", &["1", "60", "0", "mix"]);
    let view = View::start(&stage);
    let long = vec![b'a'; 1 << 20];
    let of = |method, path, origin, more| view.request(method, path, origin, more);
    let post = "Content-Length: 4\r\n";
    for (bytes, status) in [
        (of("GET", &view.path, "https://evil.net", ""), "403"),
        (of("GET", &view.path, "null", ""), "403"),
        (
            of(
                "OPTIONS",
                &view.path,
                "https://evil.net",
                "Access-Control-Request-Method: GET\r\n",
            ),
            "403",
        ),
        (of("GET", "/", PERFETTO, ""), "404"),
        (of("GET", "/../../etc/passwd", PERFETTO, ""), "404"),
        (of("POST", &view.path, PERFETTO, ""), "405"),
        (of("POST", &view.path, PERFETTO, post), "400"),
        (b"\x16\x03\x01\x02\x00\r\n\r\n".to_vec(), "400"),
        (b"\r\n\r\n".to_vec(), "400"),
        (long, "431"),
    ] {
        let (head, body) = view.ask(&bytes);
        // What was not read resets the connection, which may take the answer with it.
        let is_reset = head.is_empty() && status == "431";
        assert!(
            is_reset || head.starts_with(&format!("HTTP/1.1 {status} ")),
            "{status}: {head}"
        );
        assert!(
            body.is_empty() && !head.contains("Access-Control"),
            "{head}"
        );
    }
}

#[test]
fn it_ends_by_itself_and_on_a_signal() {
    let stage = Stage::new("view-ends");
    stage.record("a.rmk", &["1", "60", "0", "mix"]);
    let late = stage.run(&["view", "a.rmk", "--port", "0", "--wait", "50ms"]);
    let late = expect(late, 4, "did not fetch the trace in 50.0 ms");
    let told = late.stderr_text();
    for part in [
        "allow it",
        "ssh -L 9001:127.0.0.1:",
        "ringmark report --html",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let mut view = View::start(&stage);
    let port = view.port.to_string();
    let second = stage.run(&["view", "a.rmk", "--port", &port]);
    let _ = expect(second, 4, "another 'ringmark view' may run");
    let pid = view.child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(view.end(), Some(0));
}
