//! A collector in a few lines, that sends to a streamer what a test wants.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use ringmark_format::block::{BlockHeader, SEALED, kind};
use ringmark_format::page::PageHeader;
use ringmark_format::stream::{
    self, Ack, Ping, Pong, Refused, Resume, ResumeSlot, STREAM_MAJOR, STREAM_MINOR, Welcome,
};
use ringmark_format::{Uuid, align8};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use crate::fixture::SOON;
use crate::scripted_streamer::block;

/// PINGs in a row that a streamer answers and says nothing else when it has nothing to send for now. It hears us at the
/// begin of a round and after its session's turn: between three answers there was a turn.
const QUIET: u64 = 3;
/// How often a streamer hears of us.
const PING_EVERY: Duration = Duration::from_millis(500);

/// A socket that streamers come to.
#[derive(Debug)]
pub struct ScriptedCollector(UnixListener);

/// A connection of a streamer.
#[derive(Debug)]
pub struct ScriptedConnection {
    stream: UnixStream,
    /// Bytes of blocks received.
    pub received: u64,
    credit: u64,
    welcomed: bool,
    pings: u64,
    pinged_at: Instant,
}

/// A block that came over a connection.
enum Next {
    Said(Received),
    /// The PING of this number.
    Answered(u64),
    Nothing,
    Closed,
}

/// What a streamer said.
#[derive(Debug, Clone)]
pub struct Received {
    /// Its header.
    pub header: BlockHeader,
    /// Its content.
    pub content: Vec<u8>,
    /// Bytes of blocks up to its end.
    pub end: u64,
}

impl Received {
    /// Slot and number of the sealed page that it is, if it is one.
    #[must_use]
    pub fn page(&self) -> Option<(u32, u64)> {
        let is_sealed = self.header.kind == kind::PAGE && self.header.flags & SEALED != 0;
        let (page, _) = PageHeader::read_from_prefix(&self.content).ok()?;
        is_sealed.then_some((page.slot, self.header.page_number))
    }
}

impl ScriptedCollector {
    /// Listens.
    ///
    /// # Panics
    /// When it cannot.
    #[must_use]
    pub fn at(socket: &Path) -> Self {
        Self(UnixListener::bind(socket).expect("a socket"))
    }

    /// The next connection, whose HELLO was heard.
    ///
    /// # Panics
    /// When it says something else.
    #[must_use]
    pub fn accept(&self) -> ScriptedConnection {
        let (stream, _) = self.0.accept().expect("a connection");
        let mut taking = ScriptedConnection {
            stream,
            received: 0,
            credit: 0,
            welcomed: false,
            pings: 0,
            pinged_at: Instant::now(),
        };
        let hello = taking.hear(SOON).expect("HELLO");
        assert_eq!(hello.header.kind, stream::kind::HELLO);
        taking
    }

    /// The same, welcomed with so much credit.
    ///
    /// # Panics
    /// As [`ScriptedCollector::accept`].
    #[must_use]
    pub fn welcome(&self, credit: u64) -> ScriptedConnection {
        self.welcome_to(0, credit, &[])
    }

    /// The same, by a collector with this store and these attributes.
    ///
    /// # Panics
    /// As [`ScriptedCollector::accept`].
    #[must_use]
    pub fn welcome_to(&self, store: u8, credit: u64, attributes: &[u8]) -> ScriptedConnection {
        let mut taking = self.accept();
        (taking.credit, taking.welcomed) = (credit, true);
        let welcome = Welcome {
            version_major: STREAM_MAJOR,
            version_minor: STREAM_MINOR,
            attributes_bytes: attributes.len() as u32,
            collector: [store; 16],
            credit,
            ..Welcome::new_zeroed()
        };
        let content = [welcome.as_bytes(), attributes].concat();
        taking.say(stream::kind::WELCOME, Uuid([0; 16]), &content);
        taking
    }
}

impl ScriptedConnection {
    /// Says a message.
    ///
    /// # Panics
    /// When the streamer no longer listens.
    pub fn say(&mut self, kind: u16, session: Uuid, content: &[u8]) {
        let block = block(kind, session, content);
        self.stream.write_all(&block).expect("a streamer");
    }

    /// Hears SESSION and says what is durable of it.
    ///
    /// # Panics
    /// When something else is said.
    pub fn resume(&mut self, schema_bytes: u64, slots: &[(u32, u64)]) {
        self.resume_as(0, schema_bytes, slots);
    }

    /// Hears SESSION and says that nothing is known of it.
    ///
    /// # Panics
    /// As [`ScriptedConnection::resume`].
    pub fn resume_unknown(&mut self) {
        self.resume_as(stream::UNKNOWN, 0, &[]);
    }

    /// Hears SESSION and says that damage may have cost pages from these on.
    ///
    /// # Panics
    /// As [`ScriptedConnection::resume`].
    pub fn resume_again(&mut self, schema_bytes: u64, slots: &[(u32, u64)]) {
        self.answer_session((0, stream::AGAIN), schema_bytes, slots);
    }

    /// Hears SESSION and answers with these flags.
    ///
    /// # Panics
    /// As [`ScriptedConnection::resume`].
    pub fn resume_as(&mut self, flags: u32, schema_bytes: u64, slots: &[(u32, u64)]) {
        self.answer_session((flags, 0), schema_bytes, slots);
    }

    /// Answers SESSION, with flags of all and of each slot.
    fn answer_session(
        &mut self,
        (flags, of_slots): (u32, u32),
        schema_bytes: u64,
        slots: &[(u32, u64)],
    ) {
        let session = self.hear(SOON).expect("SESSION");
        assert_eq!(session.header.kind, kind::SESSION);
        let resume = Resume {
            schema_bytes,
            slots: slots.len() as u32,
            flags,
        };
        let mut content = resume.as_bytes().to_vec();
        for &(slot, next_page) in slots {
            let slot = ResumeSlot {
                slot,
                flags: of_slots,
                next_page,
            };
            content.extend_from_slice(slot.as_bytes());
        }
        let session = Uuid(session.header.session);
        self.say(stream::kind::RESUME, session, &content);
    }

    /// So much is durable, so much may be sent.
    ///
    /// # Panics
    /// As [`ScriptedConnection::say`].
    pub fn ack(&mut self, durable: u64, credit: u64) {
        self.credit = credit;
        let ack = Ack { durable, credit };
        self.say(stream::kind::ACK, Uuid([0; 16]), ack.as_bytes());
    }

    /// Refuses the connection.
    ///
    /// # Panics
    /// As [`ScriptedConnection::say`].
    pub fn refuse(mut self, why: &str) {
        let refused = Refused {
            code: stream::refusal::BUSY,
            reserved: 0,
        };
        let content = [refused.as_bytes(), why.as_bytes()].concat();
        self.say(stream::kind::REFUSED, Uuid([0; 16]), &content);
    }

    /// The next thing that is said within this time, if anything is; what answers our PINGs is not.
    ///
    /// # Panics
    /// When more is sent than there is credit for, or the connection ends within a block.
    pub fn hear(&mut self, within: Duration) -> Option<Received> {
        let end = Instant::now() + within;
        loop {
            match self.listen(end.saturating_duration_since(Instant::now())) {
                Next::Said(heard) => return Some(heard),
                Next::Answered(_) => {}
                Next::Nothing | Next::Closed => return None,
            }
        }
    }

    /// All that is said until the streamer has nothing to send for now, or says BYE.
    ///
    /// # Panics
    /// As [`ScriptedConnection::hear`], or when no answer comes.
    pub fn hear_all(&mut self) -> Vec<Received> {
        let (mut heard, mut answers) = (Vec::new(), 0);
        self.ping();
        while answers < QUIET {
            match self.listen(SOON) {
                Next::Said(said) => {
                    let is_bye = said.header.kind == stream::kind::BYE;
                    heard.push(said);
                    if is_bye {
                        break;
                    }
                    answers = 0;
                }
                Next::Answered(number) if number == self.pings => {
                    answers += 1;
                    self.ping();
                }
                Next::Answered(_) => {}
                Next::Nothing => panic!("no answer to a PING"),
                Next::Closed => break,
            }
        }
        heard
    }

    /// Waits until the streamer has heard us once more; what it says until then is passed over.
    ///
    /// # Panics
    /// When it does not answer, or closes.
    pub fn let_it_hear(&mut self) {
        self.ping();
        loop {
            match self.listen(SOON) {
                Next::Said(_) => {}
                Next::Answered(number) if number < self.pings => {}
                Next::Answered(_) => break,
                Next::Nothing | Next::Closed => panic!("no answer to a PING"),
            }
        }
    }

    /// Waits until the streamer closes; whatever it says until then is passed over.
    ///
    /// # Panics
    /// When it does not close.
    pub fn expect_closed(&mut self) {
        loop {
            match self.listen(SOON) {
                Next::Said(_) | Next::Answered(_) => {}
                Next::Nothing => panic!("the connection stays open"),
                Next::Closed => break,
            }
        }
    }

    fn listen(&mut self, within: Duration) -> Next {
        let end = Instant::now() + within;
        loop {
            self.ping_if_due();
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Next::Nothing;
            }
            let mut first = [0];
            let wait = left.min(PING_EVERY);
            self.stream.set_read_timeout(Some(wait)).expect("a time");
            match self.stream.read(&mut first) {
                Ok(1) => {
                    let heard = self.rest_of_block(first[0]);
                    if heard.header.kind != stream::kind::PONG {
                        return Next::Said(heard);
                    }
                    let (pong, _) = Pong::read_from_prefix(&heard.content).expect("PONG");
                    return Next::Answered(pong.number);
                }
                Ok(_) => return Next::Closed,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Next::Closed,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn rest_of_block(&mut self, first: u8) -> Received {
        self.stream.set_read_timeout(Some(SOON)).expect("a time");
        let mut header = [0; BlockHeader::BYTES];
        header[0] = first;
        let mut rest = self.stream.read_exact(&mut header[1..]);
        let (header, _) = BlockHeader::read_from_prefix(&header).expect("64 bytes");
        let mut content = vec![0; align8(header.stored_bytes as usize)];
        rest = rest.and_then(|()| self.stream.read_exact(&mut content));
        rest.expect("a whole block");
        if header.kind < stream::kind::HELLO {
            self.received += (BlockHeader::BYTES + content.len()) as u64;
        }
        let (received, credit) = (self.received, self.credit);
        assert!(received <= credit, "{received} bytes of {credit} were sent");
        content.truncate(header.stored_bytes as usize);
        Received {
            header,
            content,
            end: self.received,
        }
    }

    /// A streamer that hears nothing for long takes us for gone.
    fn ping_if_due(&mut self) {
        if self.welcomed && self.pinged_at.elapsed() >= PING_EVERY {
            self.ping();
        }
    }

    fn ping(&mut self) {
        self.pinged_at = Instant::now();
        self.pings += 1;
        let ping = Ping {
            number: self.pings,
            real_ns: 0,
        };
        let ping = block(stream::kind::PING, Uuid([0; 16]), ping.as_bytes());
        // If it has closed, that is seen by reading.
        let _ = self.stream.write_all(&ping);
    }
}
