//! The messages of the protocol: those of a streamer are read here, those of the collector made.

use ringmark_format::Uuid;
use ringmark_format::attribute::{Attributes, tag};
use ringmark_format::codec::write;
use ringmark_format::stream::{
    AGAIN, Ack, Hello, Ping, Pong, Refused, Resume, ResumeSlot, SCHEMA_ACKED, STREAM_MAJOR,
    STREAM_MINOR, UNKNOWN, Welcome, kind,
};
use zerocopy::{FromBytes, IntoBytes};

use crate::store::KnownSession;

/// What a streamer says about itself in HELLO.
#[derive(Debug, Clone)]
pub(crate) struct Introduction {
    pub(crate) version_major: u16,
    /// Name of the host. It is not proved, and may hold any characters.
    pub(crate) host: String,
    /// Empty: none was sent.
    pub(crate) token: Vec<u8>,
}

/// Reads the content of HELLO; `None`: it is too short.
pub(crate) fn introduction(content: &[u8]) -> Option<Introduction> {
    let (hello, rest) = Hello::read_from_prefix(content).ok()?;
    let attributes = rest.get(..hello.attributes_bytes as usize)?;
    let find = |tag| Attributes::new(attributes).find(tag).unwrap_or_default();
    Some(Introduction {
        version_major: hello.version_major,
        host: String::from_utf8_lossy(find(tag::HOST)).into_owned(),
        token: find(tag::TOKEN).to_vec(),
    })
}

/// Reads the content of PONG; `None`: it is too short.
pub(crate) fn pong(content: &[u8]) -> Option<Pong> {
    Pong::read_from_prefix(content).ok().map(|(pong, _)| pong)
}

/// WELCOME: greets a streamer and gives its first credit, a position in bytes. `attributes` say more.
pub(crate) fn welcome(store: [u8; 16], real_ns: u64, credit: u64, attributes: &[u8]) -> Vec<u8> {
    let welcome = Welcome {
        version_major: STREAM_MAJOR,
        version_minor: STREAM_MINOR,
        attributes_bytes: attributes.len() as u32,
        collector: store,
        real_ns,
        credit,
    };
    let content = [welcome.as_bytes(), attributes].concat();
    message(kind::WELCOME, Uuid([0; 16]), &content)
}

/// REFUSED, of the whole connection.
pub(crate) fn refused(code: u32, why: &str) -> Vec<u8> {
    refused_session(Uuid([0; 16]), code, why)
}

/// REFUSED, of one session.
pub(crate) fn refused_session(session: Uuid, code: u32, why: &str) -> Vec<u8> {
    let refused = Refused { code, reserved: 0 };
    let content = [refused.as_bytes(), why.as_bytes()].concat();
    message(kind::REFUSED, session, &content)
}

/// RESUME: says what is known of a session.
pub(crate) fn resume(session: Uuid, known: &KnownSession) -> Vec<u8> {
    let resume = Resume {
        schema_bytes: known.schema_bytes,
        slots: known.slots.len() as u32,
        flags: [
            (UNKNOWN, known.is_unknown()),
            (SCHEMA_ACKED, known.has_acked_schema),
        ]
        .map(|(flag, is_set)| if is_set { flag } else { 0 })
        .into_iter()
        .sum(),
    };
    let mut content = resume.as_bytes().to_vec();
    for position in &known.slots {
        let slot = ResumeSlot {
            slot: position.slot,
            flags: match known.again.contains(&position.slot) {
                true => AGAIN,
                false => 0,
            },
            next_page: position.next_page,
        };
        content.extend_from_slice(slot.as_bytes());
    }
    message(kind::RESUME, session, &content)
}

/// ACK: the first `durable` bytes are durable, and up to `credit` may be sent.
pub(crate) fn ack(durable: u64, credit: u64) -> Vec<u8> {
    let ack = Ack { durable, credit };
    message(kind::ACK, Uuid([0; 16]), ack.as_bytes())
}

/// PING.
pub(crate) fn ping(ping: &Ping) -> Vec<u8> {
    message(kind::PING, Uuid([0; 16]), ping.as_bytes())
}

/// DRAIN: asks the streamer to go.
pub(crate) fn drain() -> Vec<u8> {
    message(kind::DRAIN, Uuid([0; 16]), &[])
}

/// A message: a block of this kind.
fn message(kind: u16, session: Uuid, content: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    let written = write::block(&mut block, write::header(kind, session), content);
    debug_assert!(written.is_ok());
    block
}
