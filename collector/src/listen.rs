//! Where connections come from, and how they prove which host they are of.
//!
//! A certificate proves the host. A plain connection proves nothing here; the greeting may ask it
//! for a token.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ringmark_reader::stream::{Address, PeerCertificate, explain};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;

use crate::connection_end::{ConnectionEnd, Departure};
use crate::messages;
use crate::notice::{Doing, Origin};
use crate::reason::Reason;
use crate::settings::SharedCredentials;
use crate::unix_socket::NamedSocket;

/// How long the collector reads what a refused peer still sends. Closing at once would reset the
/// connection, and the peer would lose the refusal.
const LINGER: Duration = Duration::from_secs(1);
/// The first byte of a streamer that does not speak TLS: the magic of a block.
const PLAIN: u8 = ringmark_format::block::BLOCK_MAGIC[0];

/// A connection as a stream of bytes in both directions.
pub(crate) trait Bytes: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Bytes for T {}

/// A listening socket.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Tls(TcpListener, SharedCredentials),
    Unix(NamedSocket),
}

impl Listener {
    /// Listens at an address.
    ///
    /// # Errors
    /// The system refuses it, or it needs a certificate and there is none.
    pub(crate) async fn bind(
        address: &Address,
        credentials: &SharedCredentials,
    ) -> io::Result<Self> {
        match address {
            Address::Tcp(place) => Ok(Self::Tcp(TcpListener::bind(place).await?)),
            Address::Tls(place) => {
                let _ = acceptor(credentials)?;
                let listener = TcpListener::bind(place).await?;
                Ok(Self::Tls(listener, credentials.clone()))
            }
            Address::Unix(path) => Ok(Self::Unix(NamedSocket::bind(path).await?)),
        }
    }

    /// The address at which it listens, with the port that the system chose.
    pub(crate) fn address(&self) -> io::Result<Address> {
        Ok(match self {
            Self::Tcp(listener) => Address::Tcp(listener.local_addr()?.to_string()),
            Self::Tls(listener, _) => Address::Tls(listener.local_addr()?.to_string()),
            Self::Unix(socket) => Address::Unix(socket.path().to_owned()),
        })
    }

    /// Waits for the next connection.
    pub(crate) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Accepted::over_ip(Incoming::Tcp(stream), from))
            }
            Self::Tls(listener, credentials) => {
                let (stream, from) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let incoming = Incoming::Tls(stream, acceptor(credentials)?);
                Ok(Accepted::over_ip(incoming, from))
            }
            Self::Unix(socket) => Ok(Accepted {
                incoming: Incoming::Unix(socket.accept().await?),
                address: None,
                from: socket.path().display().to_string(),
            }),
        }
    }
}

/// What does a handshake that begins now.
fn acceptor(credentials: &SharedCredentials) -> io::Result<TlsAcceptor> {
    let text = "tls:// needs a CA, a certificate and its key";
    let missing = || io::Error::new(io::ErrorKind::InvalidInput, text);
    credentials.acceptor().ok_or_else(missing)
}

/// A connection that was accepted.
pub(crate) struct Accepted {
    pub(crate) incoming: Incoming,
    /// Where it comes from; `None`: a unix socket.
    pub(crate) address: Option<IpAddr>,
    /// Where it comes from, for messages.
    pub(crate) from: String,
}

impl Accepted {
    /// The peer, for a notice about what it did before it was welcomed.
    pub(crate) fn origin(&self, doing: Doing) -> Origin {
        Origin {
            address: self.address,
            shown: self.from.clone(),
            doing,
            host: None,
            session: None,
            sessions: 0,
            bytes: 0,
        }
    }

    fn over_ip(incoming: Incoming, from: SocketAddr) -> Self {
        Self {
            incoming,
            address: Some(from.ip()),
            from: from.to_string(),
        }
    }
}

/// A connection over which nothing was said yet.
pub(crate) enum Incoming {
    Tcp(TcpStream),
    Tls(TcpStream, TlsAcceptor),
    Unix(UnixStream),
}

/// A connection that is ready for the greeting.
pub(crate) struct AcceptedStream {
    pub(crate) bytes: Box<dyn Bytes>,
    pub(crate) peer: PeerProof,
}

/// What a connection proves before the greeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PeerProof {
    /// A certificate of the CA.
    Certificate(PeerCertificate),
    /// The peer is a process of this machine that may open the socket.
    Local,
    /// Nothing: anyone may have made it.
    Nothing,
}

/// The peer's TLS failed.
#[derive(Debug, thiserror::Error)]
#[error("{}", explain(source, "streamer"))]
struct HandshakeError {
    source: rustls::Error,
}

impl Incoming {
    /// Shakes hands if TLS is spoken here, within this time.
    ///
    /// # Errors
    /// The peer is refused, or gone.
    pub(crate) async fn secure(self, within: Duration) -> Result<AcceptedStream, ConnectionEnd> {
        match self {
            Self::Tcp(stream) => Ok(AcceptedStream {
                bytes: Box::new(stream),
                peer: PeerProof::Nothing,
            }),
            Self::Unix(stream) => Ok(AcceptedStream {
                bytes: Box::new(stream),
                peer: PeerProof::Local,
            }),
            Self::Tls(tcp, acceptor) => match timeout(within, shake(tcp, acceptor)).await {
                Ok(shaken) => shaken,
                Err(_) => {
                    let text = format!("no TLS handshake within {} s", within.as_secs_f32());
                    Err(ConnectionEnd::refused(Reason::Handshake, text))
                }
            },
        }
    }
}

/// The TLS handshake. A streamer that does not speak TLS is told so in its own protocol.
async fn shake(tcp: TcpStream, acceptor: TlsAcceptor) -> Result<AcceptedStream, ConnectionEnd> {
    let mut first = [0];
    if tcp.peek(&mut first).await? == 0 {
        return Err(ConnectionEnd::Gone(Departure::Closed));
    }
    if first[0] == PLAIN {
        let text = "this port wants TLS, expected tls:// and not tcp://";
        let refused = messages::refused(Reason::NotTls.code(), text);
        say_and_close(Box::new(tcp), &refused).await;
        return Err(ConnectionEnd::refused(Reason::NotTls, "not TLS"));
    }
    match acceptor.accept(tcp).into_fallible().await {
        Ok(tls) => {
            let chain = tls.get_ref().1.peer_certificates().unwrap_or_default();
            let certificate = PeerCertificate::of(chain);
            let bytes = Box::new(tls);
            Ok(AcceptedStream {
                bytes,
                peer: PeerProof::Certificate(certificate),
            })
        }
        Err((error, tcp)) => {
            // The TLS library has sent its alert already.
            say_and_close(Box::new(tcp), &[]).await;
            let tls = error.get_ref().and_then(|e| e.downcast_ref());
            Err(match tls.cloned() {
                Some(source) => {
                    ConnectionEnd::refused(Reason::Handshake, HandshakeError { source })
                }
                None => ConnectionEnd::Gone(Departure::Closed),
            })
        }
    }
}

/// Sends a last message and closes once the peer has closed its direction, or after [`LINGER`].
pub(crate) async fn say_and_close(mut bytes: Box<dyn Bytes>, last: &[u8]) {
    let close = async {
        bytes.write_all(last).await?;
        bytes.shutdown().await?;
        // Not within the future: each connection would have room for it.
        let mut rest = vec![0; 4096];
        while bytes.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = timeout(LINGER, close).await;
}
