//! Bare loops: a connection that is greeted, the bytes of a dump, and the wait until all is durable.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::time::Duration;

use ringmark_collector::store::SyncMode;
use ringmark_format::Uuid;
use ringmark_format::attribute::{self, tag};
use ringmark_format::block::BlockHeader;
use ringmark_format::codec::write;
use ringmark_format::stream::{Ack, Hello, STREAM_MAJOR, STREAM_MINOR, kind};
use ringmark_reader::stream::Address;
use rustls::{ClientConnection, StreamOwned};
use zerocopy::{FromBytes, IntoBytes};

use super::place::{HOST, Place};
use super::sent::{Begun, Sent};

/// Bytes that are handed to the system at once, where nothing else is said.
const PIECE: usize = 1 << 20;
/// Others that a loop may be faster with: the bytes of a page, of a streamer's batch, and between.
const PIECES: [usize; 4] = [64 << 10, 256 << 10, PIECE, 4 << 20];
/// Rounds in which the fastest of them is looked for.
const LOOKS: usize = 3;
/// Enough of a dump for its first block.
const HEAD: u64 = 64 << 10;

/// A bare connection.
struct Bare<S> {
    socket: S,
    begun: Begun,
}

impl<S: Read + Write> Bare<S> {
    /// Says HELLO and SESSION, the block at the front of `dump`; returns its size, too.
    fn greet(mut socket: S, begun: Begun, dump: &[u8]) -> (Self, usize) {
        let mut attributes = Vec::new();
        attribute::push(&mut attributes, tag::HOST, HOST.as_bytes());
        let hello = Hello {
            version_major: STREAM_MAJOR,
            version_minor: STREAM_MINOR,
            attributes_bytes: attributes.len() as u32,
            host: [0; 16],
            boot_id: [0; 16],
            real_ns: 0,
        };
        let content = [hello.as_bytes(), &attributes].concat();
        let (mut block, none) = (Vec::new(), Uuid([0; 16]));
        let written = write::block(&mut block, write::header(kind::HELLO, none), &content);
        written.expect("HELLO");
        let (header, _) = BlockHeader::read_from_prefix(dump).expect("a block");
        let session = BlockHeader::BYTES + (header.stored_bytes as usize).next_multiple_of(8);
        block.extend_from_slice(&dump[..session]);
        socket.write_all(&block).expect("sent");
        let mut bare = Self { socket, begun };
        while bare.message().0 != kind::RESUME {}
        (bare, session)
    }

    fn send(&mut self, bytes: &[u8], piece: usize) {
        for piece in bytes.chunks(piece) {
            self.socket.write_all(piece).expect("sent");
        }
    }

    /// Returns when all of it is durable.
    fn end(mut self, bytes: u64) -> Sent {
        self.socket.flush().expect("sent");
        loop {
            let (of, content) = self.message();
            if of == kind::ACK
                && let Ok((ack, _)) = Ack::read_from_prefix(&content)
                && ack.durable >= bytes
            {
                return self.begun.ended();
            }
        }
    }

    /// Kind and content of the next message.
    fn message(&mut self) -> (u16, Vec<u8>) {
        let mut header = [0; BlockHeader::BYTES];
        self.socket.read_exact(&mut header).expect("a message");
        let (header, _) = BlockHeader::read_from_prefix(&header).expect("a header");
        let mut content = vec![0; (header.stored_bytes as usize).next_multiple_of(8)];
        self.socket.read_exact(&mut content).expect("a message");
        (header.kind, content)
    }
}

fn connect(to: &Address) -> TcpStream {
    let (Address::Tcp(place) | Address::Tls(place)) = to else {
        panic!("{to}: not over TCP");
    };
    let socket = TcpStream::connect(place).expect("a connection");
    socket.set_nodelay(true).expect("an option");
    socket
}

/// The size of writes with which a bare loop is fastest here. A loop that is slower than what it is to
/// bound bounds nothing.
///
/// # Panics
/// When it is not taken.
#[must_use]
pub fn fastest_piece(place: &Place) -> usize {
    let mut best = (Duration::MAX, PIECE);
    for _ in 0..LOOKS {
        for piece in PIECES {
            let sent = place.collect(SyncMode::Cache, |at| send_loop(&at.plain, place, piece));
            best = best.min((sent.time, piece));
        }
    }
    best.1
}

/// The dump from memory, in writes of that many bytes.
///
/// # Panics
/// When it is not taken.
#[must_use]
pub fn send_loop(to: &Address, place: &Place, piece: usize) -> Sent {
    let dump = fs::read(place.dump()).expect("a dump");
    let (mut bare, session) = Bare::greet(connect(to), Begun::now(), &dump);
    bare.send(&dump[session..], piece);
    bare.end(dump.len() as u64)
}

/// The same over TLS.
///
/// # Panics
/// When it is not taken.
#[must_use]
pub fn tls_loop(to: &Address, place: &Place) -> Sent {
    let dump = fs::read(place.dump()).expect("a dump");
    let name = IpAddr::from(Ipv4Addr::LOCALHOST).into();
    let tls = ClientConnection::new(place.credentials().as_streamer(), name);
    let mut socket = StreamOwned::new(tls.expect("a configuration"), connect(to));
    socket
        .conn
        .complete_io(&mut socket.sock)
        .expect("a handshake");
    let (mut bare, session) = Bare::greet(socket, Begun::now(), &dump);
    bare.send(&dump[session..], PIECE);
    bare.end(dump.len() as u64)
}

/// The dump by `sendfile`.
///
/// # Panics
/// When it is not taken.
#[must_use]
pub fn sendfile_loop(to: &Address, place: &Place) -> Sent {
    let file = File::open(place.dump()).expect("a dump");
    let mut head = Vec::new();
    let _ = (&file).take(HEAD).read_to_end(&mut head).expect("a dump");
    let (bare, session) = Bare::greet(connect(to), Begun::now(), &head);
    let (bytes, mut at) = (place.bytes(), session as u64);
    while at < bytes {
        let sent = rustix::fs::sendfile(&bare.socket, &file, Some(&mut at), PIECE);
        assert!(sent.expect("sent") > 0, "the dump's end");
    }
    bare.end(bytes)
}
