//! Where connections come from, and how they prove whose they are.

use std::io;
use std::time::Duration;

use ringmark_format::stream::refusal;
use ringmark_reader::stream::{Address, Credentials, explain, hosts_of};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;

use crate::connection_end::End;
use crate::messages;
use crate::unix_socket::Socket;

/// How long what a refused peer still sends is read: closing at once would lose what was said.
const LINGER: Duration = Duration::from_secs(1);
/// How a plain streamer begins: with the magic of a block.
const PLAIN: u8 = ringmark_format::block::BLOCK_MAGIC[0];

/// Bytes that go both ways.
pub(crate) trait Bytes: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Bytes for T {}

/// A listening socket.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Tls(TcpListener, TlsAcceptor),
    Unix(Socket),
}

impl Listener {
    /// Listens at an address.
    pub(crate) async fn bind(
        address: &Address,
        credentials: Option<&Credentials>,
    ) -> io::Result<Self> {
        match address {
            Address::Tcp(place) => Ok(Self::Tcp(TcpListener::bind(place).await?)),
            Address::Tls(place) => {
                let text = "tls:// needs a CA, a certificate and its key";
                let missing = || io::Error::new(io::ErrorKind::InvalidInput, text);
                let acceptor = credentials.ok_or_else(missing)?.as_collector().into();
                Ok(Self::Tls(TcpListener::bind(place).await?, acceptor))
            }
            Address::Unix(path) => Ok(Self::Unix(Socket::bind(path).await?)),
        }
    }

    /// Where it listens, with the port that the system chose.
    pub(crate) fn address(&self) -> io::Result<Address> {
        Ok(match self {
            Self::Tcp(listener) => Address::Tcp(listener.local_addr()?.to_string()),
            Self::Tls(listener, _) => Address::Tls(listener.local_addr()?.to_string()),
            Self::Unix(socket) => Address::Unix(socket.path().to_owned()),
        })
    }

    /// The next connection, and who it is for messages.
    pub(crate) async fn accept(&self) -> io::Result<(Incoming, String)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Incoming::Plain(Box::new(stream)), from.to_string()))
            }
            Self::Tls(listener, acceptor) => {
                let (stream, from) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Incoming::Tls(stream, acceptor.clone()), from.to_string()))
            }
            Self::Unix(socket) => {
                let plain = Incoming::Plain(Box::new(socket.accept().await?));
                Ok((plain, socket.path().display().to_string()))
            }
        }
    }
}

/// A connection that was accepted and has said nothing.
pub(crate) enum Incoming {
    Plain(Box<dyn Bytes>),
    Tls(TcpStream, TlsAcceptor),
}

/// A connection that can be spoken over.
pub(crate) struct Line {
    pub(crate) bytes: Box<dyn Bytes>,
    /// The hosts that it has proved to be one of; without TLS there is no proof.
    pub(crate) hosts: Option<Vec<String>>,
}

impl Incoming {
    /// Shakes hands, within this time.
    pub(crate) async fn secure(self, within: Duration) -> Result<Line, End> {
        match self {
            Self::Plain(bytes) => Ok(Line { bytes, hosts: None }),
            Self::Tls(tcp, acceptor) => match timeout(within, shake(tcp, acceptor)).await {
                Ok(shaken) => shaken,
                Err(_) => {
                    let text = format!("no TLS handshake within {} s", within.as_secs_f32());
                    Err(End::Refused(refusal::DENIED, text))
                }
            },
        }
    }
}

async fn shake(tcp: TcpStream, acceptor: TlsAcceptor) -> Result<Line, End> {
    let mut first = [0];
    if tcp.peek(&mut first).await? == 0 {
        return Err(End::Gone);
    }
    if first[0] == PLAIN {
        let text = "this port wants TLS, expected tls:// and not tcp://";
        say_and_close(Box::new(tcp), &messages::refused(refusal::DENIED, text)).await;
        return Err(End::Refused(refusal::DENIED, "not TLS".to_owned()));
    }
    match acceptor.accept(tcp).into_fallible().await {
        Ok(tls) => {
            let chain = tls.get_ref().1.peer_certificates().unwrap_or_default();
            let hosts = hosts_of(chain);
            let bytes = Box::new(tls);
            Ok(Line {
                bytes,
                hosts: Some(hosts),
            })
        }
        Err((error, tcp)) => {
            // Its alert has been sent.
            say_and_close(Box::new(tcp), &[]).await;
            match error.get_ref().and_then(|e| e.downcast_ref()) {
                Some(tls) => Err(End::Refused(refusal::DENIED, why(tls))),
                None => Err(End::Gone),
            }
        }
    }
}

fn why(error: &rustls::Error) -> String {
    explain(error, "streamer")
}

/// Says a last thing and closes, when the other side has heard it.
pub(crate) async fn say_and_close(mut bytes: Box<dyn Bytes>, last: &[u8]) {
    let close = async {
        bytes.write_all(last).await?;
        bytes.shutdown().await?;
        let mut rest = [0; 4096];
        while bytes.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    let _ = timeout(LINGER, close).await;
}
