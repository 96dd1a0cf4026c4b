//! A collector: its state machines, its processor, and the put that is under way.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use ringmark_collector::machines::{
    CountedSession, Place, SetClock, SteppedConnection, SteppedObjects, Unproved,
};
use ringmark_collector::store::object_sessions::ObjectOptions;
use ringmark_format::Uuid;

use super::Fleet;

/// A part of this many connections may be there without proof, as in the collector.
const UNPROVED_PART: usize = 4;
const UNPROVED_MIN: usize = 64;
/// Size of a segment, as in `ringmark collect`: an eighth of the memory is less.
const SEGMENT: u64 = 256 << 20;

/// What its processor does.
pub(super) enum Work {
    /// Shakes hands with a host, in this attempt of it, which came then.
    Shake {
        host: u32,
        attempt: u64,
        place: Place,
    },
    /// Takes in a batch of a host.
    Take {
        host: u32,
        attempt: u64,
        batch: Arrived,
    },
}

/// A batch that came.
#[derive(Debug, Clone)]
pub(super) struct Arrived {
    pub(super) end: u64,
    pub(super) bytes: u64,
    pub(super) pages: Range<u64>,
}

/// A connection as the collector sees it.
pub(super) struct Peer {
    pub(super) attempt: u64,
    pub(super) stepped: SteppedConnection,
    pub(super) session: CountedSession,
    /// What was taken in and is not durable.
    pub(super) taken: VecDeque<Arrived>,
    /// What came and finds no memory.
    pub(super) stuck: VecDeque<Arrived>,
    /// It is among those that wait for credit.
    pub(super) is_short: bool,
    /// It is looked at when it may have become quiet.
    pub(super) is_watched: bool,
    /// The last segment that it was noted for.
    pub(super) noted: Option<u64>,
}

pub(super) struct Collector {
    pub(super) objects: SteppedObjects,
    /// The how manieth process it is.
    pub(super) life: u64,
    pub(super) pool: Arc<Unproved>,
    pub(super) peers: BTreeMap<u32, Peer>,
    pub(super) work: VecDeque<Work>,
    pub(super) is_working: bool,
    /// Hosts whose block waits for memory, in the order of asking.
    pub(super) turn: VecDeque<u32>,
    /// Hosts that wait for credit.
    pub(super) short: Vec<u32>,
    /// Hosts that have blocks in segments which are not durable.
    pub(super) in_segments: VecDeque<(u64, Vec<u32>)>,
    pub(super) is_putting: bool,
    /// When it looks next whether a segment is to be put.
    pub(super) flush_at: Option<u64>,
}

impl Collector {
    pub(super) fn new(life: u64, of: &Fleet, clock: &SetClock) -> Self {
        let options = ObjectOptions {
            flush: of.flush,
            memory_bytes: of.memory,
        };
        let uuid = Uuid((u128::from(life) << 8 | 3).to_be_bytes());
        let unproved = (of.connections / UNPROVED_PART).max(UNPROVED_MIN);
        Self {
            objects: SteppedObjects::new(uuid, SEGMENT, &options, clock),
            life,
            pool: Unproved::new(unproved, Arc::default()),
            peers: BTreeMap::new(),
            work: VecDeque::new(),
            is_working: false,
            turn: VecDeque::new(),
            short: Vec::new(),
            in_segments: VecDeque::new(),
            is_putting: false,
            flush_at: None,
        }
    }

    /// A host was let in; returns its first credit.
    pub(super) fn welcome(&mut self, host: u32, attempt: u64, page: u64) -> u64 {
        let (mut stepped, credit) = SteppedConnection::new(&self.objects);
        stepped.expect_pages(page);
        let uuid = Uuid((u128::from(host) << 32 | u128::from(attempt)).to_be_bytes());
        let name = format!("host-{host}");
        let session = self.objects.counted_session(uuid, &name, &[0; 320]);
        let peer = Peer {
            attempt,
            stepped,
            session,
            taken: VecDeque::new(),
            stuck: VecDeque::new(),
            is_short: false,
            is_watched: false,
            noted: None,
        };
        self.peers.insert(host, peer);
        credit
    }

    /// Notes that a host has blocks in this segment.
    pub(super) fn note_segment(&mut self, host: u32, segment: u64) {
        match self
            .in_segments
            .iter_mut()
            .rev()
            .find(|(of, _)| *of == segment)
        {
            Some((_, hosts)) => hosts.push(host),
            None => self.in_segments.push_back((segment, vec![host])),
        }
    }

    /// The hosts that have blocks in segments before this one.
    pub(super) fn take_before(&mut self, segment: u64) -> Vec<u32> {
        let mut all = Vec::new();
        while self
            .in_segments
            .front()
            .is_some_and(|(of, _)| *of < segment)
        {
            all.extend(self.in_segments.pop_front().expect("it is there").1);
        }
        all
    }
}

/// The address of a host.
pub(super) fn address(host: u32, of: &Fleet) -> IpAddr {
    let last = if of.is_proxied { 0 } else { host };
    IpAddr::from((0x0a00_0000 + last).to_be_bytes())
}
