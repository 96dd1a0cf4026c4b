//! A collector: its state machines, the connections to it, and the put that is under way.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::Duration;

use ringmark_collector::machines::{SetClock, SteppedConnection, SteppedObjects, Taken, Then};
use ringmark_collector::store::SharedSession;
use ringmark_collector::store::object_sessions::ObjectOptions;
use ringmark_format::Uuid;
use ringmark_format::block::kind;
use ringmark_format::block_at::Blocks;

/// What a collector says to a streamer.
pub(crate) enum Said {
    Resume,
    Ack { durable: u64, credit: u64 },
}

/// A connection as the collector sees it.
struct Peer {
    host: usize,
    host_name: String,
    stepped: SteppedConnection,
    session: Option<SharedSession>,
    /// Blocks that came and are not taken in.
    inbox: VecDeque<Vec<u8>>,
}

pub(crate) struct Collector {
    pub(crate) objects: SteppedObjects,
    /// The how manieth process it is.
    pub(crate) life: u64,
    peers: BTreeMap<u64, Peer>,
    /// A put is under way, or waits for its next try.
    pub(crate) is_putting: bool,
}

impl Collector {
    /// One that begins now. `life`: which none before had.
    pub(crate) fn new(life: u64, of: &ObjectOptions, segment_bytes: u64, clock: &SetClock) -> Self {
        let uuid = Uuid((u128::from(life) << 8 | 3).to_be_bytes());
        Self {
            objects: SteppedObjects::new(uuid, segment_bytes, of, clock),
            life,
            peers: BTreeMap::new(),
            is_putting: false,
        }
    }

    /// A streamer connects; returns its first credit.
    pub(crate) fn connect(&mut self, number: u64, host: usize, host_name: String) -> u64 {
        let (stepped, credit) = SteppedConnection::new(&self.objects);
        let peer = Peer {
            host,
            host_name,
            stepped,
            session: None,
            inbox: VecDeque::new(),
        };
        self.peers.insert(number, peer);
        credit
    }

    /// A connection is gone.
    pub(crate) fn hang_up(&mut self, number: u64) {
        self.peers.remove(&number);
    }

    /// A block came.
    pub(crate) fn receive(&mut self, number: u64, block: Vec<u8>) {
        if let Some(peer) = self.peers.get_mut(&number) {
            peer.inbox.push_back(block);
        }
    }

    /// Takes in what came, and says what there is to say: connection, host, words.
    pub(crate) fn settle(&mut self) -> Vec<(u64, usize, Said)> {
        let mut said = Vec::new();
        for (number, peer) in &mut self.peers {
            while let Some(block) = peer.inbox.front() {
                if peer.session.is_none() {
                    let found = Blocks::new(block).next().expect("a block");
                    assert_eq!(found.header.kind, kind::SESSION);
                    let (uuid, content) =
                        (Uuid(found.header.session), found.content().expect("whole"));
                    let session = self.objects.session(uuid, &peer.host_name, content);
                    peer.session = Some(session.expect("a session"));
                    peer.stepped.expect_pages(4096);
                    said.push((*number, peer.host, Said::Resume));
                }
                let session = peer.session.as_ref().expect("announced");
                match peer.stepped.take(&self.objects, session, block) {
                    Ok(Taken::Yes) => drop(peer.inbox.pop_front()),
                    Ok(Taken::Waits) => break,
                    other => panic!("{other:?}"),
                }
            }
            if let Some((durable, credit)) = peer.stepped.settle(&self.objects) {
                said.push((*number, peer.host, Said::Ack { durable, credit }));
            }
        }
        said
    }

    /// A planted fault: what came is acknowledged.
    pub(crate) fn received(&self) -> Vec<(u64, usize, Said)> {
        let said = |(number, peer): (&u64, &Peer)| {
            let (durable, credit) = (peer.stepped.received(), 0);
            (*number, peer.host, Said::Ack { durable, credit })
        };
        self.peers.iter().map(said).collect()
    }

    /// The object that is put now, if none is.
    pub(crate) fn put(&mut self) -> Option<(String, Vec<u8>)> {
        let put = self.objects.put()?;
        let put = (put.name.to_owned(), put.bytes.to_vec());
        self.is_putting = true;
        Some(put)
    }

    /// The answer to a put came. Returns when the next try is; `None`: the next object is put now.
    pub(crate) fn answered(&mut self, answer: &io::Result<()>) -> Option<Duration> {
        self.is_putting = false;
        match self.objects.answer(answer) {
            Some(Then::Again(after)) => {
                self.is_putting = true;
                Some(after)
            }
            _ => None,
        }
    }

    /// Bytes that came and are not durable.
    pub(crate) fn under_way(&self) -> u64 {
        self.peers
            .values()
            .map(|peer| peer.stepped.under_way())
            .sum()
    }
}
