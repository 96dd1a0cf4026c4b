//! Connections that have not proved which host they are of, in a small pool of their own: they take
//! nothing from the hosts that have.
//!
//! The pool bounds all of them, and those of one address. When it is full the oldest goes, of the
//! address that has most; but each gets a moment to prove itself, and while all have that, the
//! newcomer goes instead.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::figures::Figures;
use crate::mutex::lock;

/// How long a connection may take before it makes way for others.
const MOMENT: Duration = Duration::from_secs(1);

/// The bits of an IPv6 address that name a network: its first 64.
const V6_NETWORK: u128 = u128::MAX << 64;

/// The pool.
#[derive(Debug)]
pub struct Unproved {
    /// Most connections.
    most: usize,
    /// Most connections of one address.
    most_of_one: usize,
    waiting: Mutex<Waiting>,
    figures: Arc<Figures>,
}

/// The connections in the pool, the oldest first.
#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    connections: BTreeMap<u64, Connection>,
}

/// A connection in the pool.
#[derive(Debug)]
struct Connection {
    /// `None`: a unix socket, which only this machine's users reach.
    address: Option<IpAddr>,
    since: Instant,
    /// Dropped when the connection must make way.
    _stays: oneshot::Sender<()>,
}

/// A place in the pool; given back when dropped.
#[derive(Debug)]
pub struct Place {
    pool: Arc<Unproved>,
    number: u64,
    stays: oneshot::Receiver<()>,
}

impl Unproved {
    /// A pool of this number of connections, a quarter of them of one address.
    #[must_use]
    pub fn new(most: usize, figures: Arc<Figures>) -> Arc<Self> {
        Arc::new(Self {
            most,
            most_of_one: most.div_ceil(4),
            waiting: Mutex::default(),
            figures,
        })
    }

    /// Takes a new connection in. `None`: it must make way itself.
    pub(crate) fn enter(self: &Arc<Self>, address: Option<IpAddr>) -> Option<Place> {
        self.enter_at(address.map(network), Instant::now())
    }

    /// The same at this moment, from the network of this address.
    #[must_use]
    pub fn enter_at(self: &Arc<Self>, address: Option<IpAddr>, now: Instant) -> Option<Place> {
        let mut waiting = lock(&self.waiting);
        if !self.has_room(&mut waiting, address, now) {
            Figures::add(&self.figures.evicted_total, 1);
            return None;
        }
        let (stay, stays) = oneshot::channel();
        let number = waiting.next;
        waiting.next += 1;
        let connection = Connection {
            address,
            since: now,
            _stays: stay,
        };
        let _ = waiting.connections.insert(number, connection);
        self.figures
            .unproved
            .store(waiting.connections.len() as u64, Relaxed);
        Some(Place {
            pool: self.clone(),
            number,
            stays,
        })
    }

    /// Makes room for a connection of this address, if that is possible.
    fn has_room(&self, waiting: &mut Waiting, address: Option<IpAddr>, now: Instant) -> bool {
        let crowded = match address {
            Some(_) if waiting.of(address) >= self.most_of_one => address,
            _ if waiting.connections.len() >= self.most => waiting.most_frequent(),
            _ => return true,
        };
        let is_gone = waiting.evict_oldest(crowded, now);
        Figures::add(&self.figures.evicted_total, u64::from(is_gone));
        is_gone
    }
}

impl Waiting {
    /// Connections of this address.
    fn of(&self, address: Option<IpAddr>) -> usize {
        let its = |connection: &&Connection| connection.address == address;
        self.connections.values().filter(its).count()
    }

    /// The address with most connections.
    fn most_frequent(&self) -> Option<IpAddr> {
        let mut counts: BTreeMap<Option<IpAddr>, usize> = BTreeMap::new();
        for connection in self.connections.values() {
            *counts.entry(connection.address).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.and_then(|(address, _)| address)
    }

    /// Ends the oldest connection of this address, if it had its moment; returns whether it did.
    fn evict_oldest(&mut self, address: Option<IpAddr>, now: Instant) -> bool {
        let mut all = self.connections.iter();
        let oldest = all.find(|(_, connection)| connection.address == address);
        let had_its_moment = |at: Instant| now.saturating_duration_since(at) >= MOMENT;
        let number = oldest.filter(|(_, c)| had_its_moment(c.since));
        let number = number.map(|(number, _)| *number);
        number.is_some_and(|number| self.connections.remove(&number).is_some())
    }
}

impl Place {
    #[cfg(feature = "models")]
    /// Whether the connection must make way.
    pub fn is_to_go(&mut self) -> bool {
        self.stays.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    /// Waits until the connection must make way.
    pub(crate) async fn must_go(&mut self) {
        let _ = (&mut self.stays).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = lock(&self.pool.waiting);
        let _ = waiting.connections.remove(&self.number);
        let left = waiting.connections.len() as u64;
        self.pool.figures.unproved.store(left, Relaxed);
    }
}

/// The part of an address that one machine or network has to itself.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & V6_NETWORK)),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn the_oldest_of_the_crowded_address_makes_way() {
        let pool = Unproved::new(8, Arc::default());
        let (begun, later) = (Instant::now(), Instant::now() + MOMENT);
        let enter = |last, at| pool.enter_at(address(last), at);
        let mut honest = enter(1, begun).unwrap();
        let mut first = enter(2, begun).unwrap();
        let mut second = enter(2, begun).unwrap();
        assert!(enter(2, begun).is_none(), "no more than two of one address");
        assert!(!first.is_to_go(), "it has its moment");
        let _third = enter(2, later).unwrap();
        assert!(first.is_to_go() && !second.is_to_go());
        let others: Vec<_> = (3..8).map(|last| enter(last, begun).unwrap()).collect();
        let _more = enter(9, later).unwrap();
        assert!(second.is_to_go(), "the address with most");
        assert!(!honest.is_to_go());
        drop(others);
        assert_eq!(pool.figures.unproved.load(Relaxed), 3);
    }

    #[test]
    fn users_of_this_machine_are_not_one_address() {
        let pool = Unproved::new(8, Arc::default());
        let places: Vec<_> = (0..8).map(|_| pool.enter(None)).collect();
        assert!(places.iter().all(Option::is_some));
        assert!(pool.enter(None).is_none());
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }
}
