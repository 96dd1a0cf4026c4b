//! A place to listen at that no other process is given while a test has it.

use std::fmt::{self, Display};
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// A port of this host that is taken and does not listen: the kernel gives it to no other process, and a program of the
/// test may listen there, again and again. A port that was free a moment ago may be another one's now.
#[derive(Debug)]
pub struct ReservedPlace {
    address: SocketAddr,
    _held: TcpSocket,
}

impl ReservedPlace {
    /// Takes a free port of 127.0.0.1.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn new() -> Self {
        let held = TcpSocket::new_v4().expect("a socket");
        // Who listens sets it, too: then both may have the port.
        held.set_reuseaddr(true).expect("an option");
        held.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
        let address = held.local_addr().expect("an address");
        Self {
            address,
            _held: held,
        }
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Default for ReservedPlace {
    fn default() -> Self {
        Self::new()
    }
}

/// `HOST:PORT`.
impl Display for ReservedPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn one_may_listen_there_again_and_again_and_no_other_gets_it() {
        let place = ReservedPlace::new();
        assert!(TcpStream::connect(place.address()).is_err(), "it is closed");
        for _ in 0..2 {
            let listener = TcpListener::bind(place.address()).unwrap();
            assert!(TcpListener::bind(place.address()).is_err(), "it is taken");
            let _ = TcpStream::connect(place.address()).unwrap();
            drop(listener);
        }
        let others: Vec<_> = (0..200).map(|_| ReservedPlace::new()).collect();
        assert!(others.iter().all(|other| other.address != place.address));
    }
}
