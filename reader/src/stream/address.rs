//! Addresses of collectors: `tls://`, `tcp://` or `unix://`.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// Where a collector listens, and how it is spoken to there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `tls://HOST:PORT`: encrypted, and both sides prove who they are.
    Tls(String),
    /// `tcp://HOST:PORT`: neither encrypted nor proved.
    Tcp(String),
    /// `unix://PATH`, with an absolute path.
    Unix(PathBuf),
}

/// Why a text is not the address of a collector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}: {what}, expected tls://HOST:PORT, tcp://HOST:PORT or unix:///PATH")]
pub struct AddressError {
    text: String,
    what: &'static str,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = |what| AddressError {
            text: text.to_owned(),
            what,
        };
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("no scheme"))?;
        match scheme {
            "unix" if rest.starts_with('/') => Ok(Self::Unix(rest.into())),
            "unix" => Err(wrong("the path is not absolute")),
            "tls" | "tcp" => {
                let (host, port) = rest.rsplit_once(':').ok_or_else(|| wrong("no port"))?;
                if host.is_empty() || port.parse::<u16>().is_err() {
                    return Err(wrong("no host or no port number"));
                }
                let place = rest.to_owned();
                Ok(match scheme {
                    "tls" => Self::Tls(place),
                    _ => Self::Tcp(place),
                })
            }
            _ => Err(wrong("unknown scheme")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tls(place) => write!(f, "tls://{place}"),
            Self::Tcp(place) => write!(f, "tcp://{place}"),
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

impl Address {
    /// Whether other hosts could read or forge what is sent: plain TCP beyond this host. The name
    /// is looked up; one that cannot be counts as exposed.
    #[must_use]
    pub fn is_exposed(&self) -> bool {
        let Self::Tcp(place) = self else { return false };
        !place.to_socket_addrs().is_ok_and(|found| {
            let found: Vec<SocketAddr> = found.collect();
            !found.is_empty() && found.iter().all(|at| at.ip().is_loopback())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in [
            "tcp://127.0.0.1:7",
            "tls://a.example:443",
            "tcp://a.example:443",
            "unix:///a b",
            "tcp://[::1]:7",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "127.0.0.1:7",
            "http://a:7",
            "tls://a",
            "tcp://a",
            "tcp://:7",
            "tcp://a:",
            "tcp://a:70000",
            "unix://a",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn plain_tcp_beyond_loopback_is_exposed() {
        let is_exposed = |text: &str| text.parse::<Address>().unwrap().is_exposed();
        for text in [
            "tcp://127.0.0.1:7",
            "tcp://[::1]:7",
            "unix:///a",
            "tls://192.0.2.1:7",
        ] {
            assert!(!is_exposed(text), "{text}");
        }
        assert!(is_exposed("tcp://192.0.2.1:7") && is_exposed("tcp://0.0.0.0:7"));
    }
}
