//! What a browser asks: the head of one HTTP request, checked against what is served.

/// Most bytes of a request's head.
pub(super) const HEAD_MAX: usize = 16 << 10;

/// What is served, and to which page.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    /// The path; no other page guesses it.
    pub(crate) path: String,
    /// The origin of the page that may read it.
    pub(crate) origin: &'static str,
    /// The port that is listened on. A browser that comes through `ssh -L` names another one.
    pub(crate) port: u16,
}

/// A request that is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// The file is wanted.
    Fetch,
    /// The browser asks whether the page may fetch it. `private_network`: and whether a page of the
    /// internet may reach this machine.
    Preflight { private_network: bool },
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is no HTTP request, or one with a body.
    Malformed,
    /// Another page asks, no page does, or one that was sent here under another name.
    Forbidden,
    /// Another path.
    NotFound,
    /// Neither GET nor OPTIONS.
    Method,
    /// Its head is longer than [`HEAD_MAX`].
    TooLong,
}

/// The length of the head in these bytes with the empty line at its end; `None`: it goes on.
///
/// # Errors
/// It is too long.
pub(super) fn head_length(bytes: &[u8]) -> Result<Option<usize>, Refused> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    match end.map(|end| end + 4) {
        Some(length) if length <= HEAD_MAX => Ok(Some(length)),
        None if bytes.len() < HEAD_MAX => Ok(None),
        _ => Err(Refused::TooLong),
    }
}

/// Reads the head of a request. Only the page that is meant gets an answer other than a refusal.
///
/// # Errors
/// It is refused.
pub(super) fn parse(head: &[u8], served: &Served) -> Result<Request, Refused> {
    let text = std::str::from_utf8(head).map_err(|_| Refused::Malformed)?;
    let text = text.strip_suffix("\r\n\r\n").ok_or(Refused::Malformed)?;
    if text.bytes().any(|b| b == 0 || b == 0x7f) || text.replace("\r\n", "").contains(['\r', '\n'])
    {
        return Err(Refused::Malformed);
    }
    let mut lines = text.split("\r\n");
    let words: Vec<_> = lines.next().unwrap_or_default().split(' ').collect();
    let &[method, target, "HTTP/1.1"] = words.as_slice() else {
        return Err(Refused::Malformed);
    };
    let headers = lines.map(header).collect::<Option<Vec<_>>>();
    let headers = Headers(headers.ok_or(Refused::Malformed)?);
    if headers.has("content-length") || headers.has("transfer-encoding") {
        return Err(Refused::Malformed);
    }
    let host = headers.only("host").ok_or(Refused::Malformed)?;
    if !is_loopback(host) || headers.only("origin") != Some(served.origin) {
        return Err(Refused::Forbidden);
    }
    if target != served.path {
        return Err(Refused::NotFound);
    }
    match method {
        "GET" => Ok(Request::Fetch),
        "OPTIONS" if headers.only("access-control-request-method") == Some("GET") => {
            let asked = headers.only("access-control-request-private-network");
            let private_network = asked == Some("true");
            Ok(Request::Preflight { private_network })
        }
        _ => Err(Refused::Method),
    }
}

/// The name and value of a header's line.
fn header(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let is_sound = !name.is_empty() && name.bytes().all(is_name);
    is_sound.then(|| (name, value.trim_matches([' ', '\t'])))
}

struct Headers<'h>(Vec<(&'h str, &'h str)>);

impl<'h> Headers<'h> {
    fn all(&self, name: &str) -> impl Iterator<Item = &'h str> {
        let found = self
            .0
            .iter()
            .filter(move |(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| *value)
    }

    fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// The value of a header that is there once.
    fn only(&self, name: &str) -> Option<&'h str> {
        let mut found = self.all(name);
        found.next().filter(|_| found.next().is_none())
    }
}

/// Whether a request was sent to this machine by its number, not by a name that another one gave it.
fn is_loopback(host: &str) -> bool {
    let Some((name, port)) = host.rsplit_once(':') else {
        return false;
    };
    matches!(name, "127.0.0.1" | "localhost") && port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERFETTO: &str = "https://ui.perfetto.dev";

    fn served() -> Served {
        Served {
            path: "/secret/trace.pftrace".to_owned(),
            origin: PERFETTO,
            port: 9001,
        }
    }

    fn asked(text: &str) -> Result<Request, Refused> {
        parse(text.replace('\n', "\r\n").as_bytes(), &served())
    }

    #[test]
    fn the_page_gets_the_file() {
        let get = "GET /secret/trace.pftrace HTTP/1.1\nHost: 127.0.0.1:9001\nOrigin: https://ui.perfetto.dev\nAccept: */*\n\n";
        assert_eq!(asked(get), Ok(Request::Fetch));
        let preflight = get
            .replace("GET", "OPTIONS")
            .replace("Accept: */*", "access-control-request-method: GET");
        let plain = Request::Preflight {
            private_network: false,
        };
        assert_eq!(asked(&preflight), Ok(plain));
        let preflight =
            preflight.replace("\n\n", "\nAccess-Control-Request-Private-Network: true\n\n");
        let private = Request::Preflight {
            private_network: true,
        };
        assert_eq!(asked(&preflight), Ok(private));
    }

    #[test]
    fn all_others_are_refused() {
        let get = "GET /secret/trace.pftrace HTTP/1.1\nHost: 127.0.0.1:9001\nOrigin: https://ui.perfetto.dev\n\n";
        let with = |from: &str, to: &str| asked(&get.replace(from, to));
        for (from, to, why) in [
            ("Origin: https://ui.perfetto.dev\n", "", Refused::Forbidden),
            (
                "ui.perfetto.dev",
                "ui.perfetto.dev.evil.net",
                Refused::Forbidden,
            ),
            ("https:", "http:", Refused::Forbidden),
            (
                "ui.perfetto.dev\n",
                "ui.perfetto.dev\nOrigin: null\n",
                Refused::Forbidden,
            ),
            (
                "127.0.0.1:9001",
                "rebound.evil.net:9001",
                Refused::Forbidden,
            ),
            ("127.0.0.1:9001", "127.0.0.1", Refused::Forbidden),
            ("Host", "X-Host", Refused::Malformed),
            ("/secret/trace.pftrace", "/", Refused::NotFound),
            (
                "/secret/trace.pftrace",
                "/secret/trace.pftrace/../x",
                Refused::NotFound,
            ),
            ("GET", "POST", Refused::Method),
            ("GET", "OPTIONS", Refused::Method),
            ("GET ", "GET  ", Refused::Malformed),
            ("HTTP/1.1", "HTTP/1.0", Refused::Malformed),
            ("Host", "Content-Length: 5\nHost", Refused::Malformed),
            (
                "Host",
                "Transfer-Encoding: chunked\nHost",
                Refused::Malformed,
            ),
            ("Host", "no header\nHost", Refused::Malformed),
            ("Host", "a b: c\nHost", Refused::Malformed),
            ("Host", "a: \0\nHost", Refused::Malformed),
        ] {
            assert_eq!(with(from, to), Err(why), "{from:?} -> {to:?}");
        }
        assert_eq!(
            parse(b"\xff\xfe\r\n\r\n", &served()),
            Err(Refused::Malformed)
        );
        let smuggled = get.replace('\n', "\r\n").replace("\r\nOrigin", "\nOrigin");
        assert_eq!(
            parse(smuggled.as_bytes(), &served()),
            Err(Refused::Malformed)
        );
    }

    #[test]
    fn heads_are_bounded() {
        assert_eq!(head_length(b"GET / HTTP/1.1\r\n"), Ok(None));
        assert_eq!(head_length(b"ab\r\n\r\nmore"), Ok(Some(6)));
        assert_eq!(head_length(&[b'a'; HEAD_MAX]), Err(Refused::TooLong));
    }
}
