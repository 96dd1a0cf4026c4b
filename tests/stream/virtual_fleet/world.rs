//! Hosts, collectors and a store in virtual time: what happens when is a function of the seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use ringmark_collector::machines::SetClock;
use ringmark_collector::store::object_sessions::ObjectOptions;
use ringmark_format::stream::{SCHEMA_ACKED, UNKNOWN};
use ringmark_reader::stream::machines::Resumed;
use ringmark_tests::random::Random;

use super::Planted;
use super::collector::{Collector, Said};
use super::host::{Host, is_final};
use super::program::Program;
use super::tables::{Batch, Objects, Tables};
use super::troubles::Troubles;

pub(crate) const SECOND: u64 = 1_000_000;
/// Virtual time after which nothing goes wrong any more, and that in which all must then come to an end.
const END: u64 = 60 * SECOND;
const LONG_END: u64 = 5 * 3600 * SECOND;

/// Something that happens.
pub(crate) enum Event {
    Write(usize),
    Step(usize),
    Connect(usize),
    ToCollector {
        at: usize,
        life: u64,
        connection: u64,
        block: Vec<u8>,
    },
    ToHost {
        host: usize,
        connection: u64,
        said: Said,
    },
    Settle(usize),
    Put {
        at: usize,
        life: u64,
    },
    Again {
        at: usize,
        life: u64,
    },
    Land(String, Vec<u8>),
    Answer {
        at: usize,
        life: u64,
        is_ok: bool,
    },
    Trouble,
    Begin(usize),
    StreamerBegins(usize),
    Compact,
    Commit(Box<Batch>),
}

pub(crate) struct World {
    pub(crate) random: Random,
    pub(crate) planted: Planted,
    pub(crate) clock: SetClock,
    pub(crate) now: u64,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    happens: BTreeMap<u64, Event>,
    next_event: u64,
    pub(crate) hosts: Vec<Host>,
    /// `None`: it was killed, and does not run yet.
    pub(crate) collectors: Vec<Option<Collector>>,
    lives: u64,
    connections: u64,
    /// When the last message of a connection arrives, each way.
    arrivals: BTreeMap<(u64, bool), u64>,
    options: ObjectOptions,
    pub(crate) objects: Objects,
    pub(crate) tables: Tables,
    pub(crate) away_until: u64,
    pub(crate) troubles: Troubles,
}

impl World {
    pub(crate) fn new(seed: u64, planted: Planted) -> Self {
        let mut random = Random::from_seed((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let options = ObjectOptions {
            flush: Duration::from_millis(200 + 300 * random.below(12)),
            memory_bytes: 0,
        };
        let mut hosts = Vec::new();
        for number in 0..1 + random.below(3) as u8 {
            let overwrites = random.below(3) == 0;
            let program = Program::new(number + 1, overwrites, &mut random);
            let spill = [0, 4, 100_000, 100_000][random.below(4) as usize];
            hosts.push(Host::new(program, spill));
        }
        let mut made = Self {
            random,
            planted,
            clock: SetClock::new(),
            now: 0,
            events: BinaryHeap::new(),
            happens: BTreeMap::new(),
            next_event: 0,
            hosts,
            collectors: Vec::new(),
            lives: 0,
            connections: 0,
            arrivals: BTreeMap::new(),
            options,
            objects: Objects::new(),
            tables: Tables::default(),
            away_until: 0,
            troubles: Troubles::default(),
        };
        for at in 0..1 + made.random.below(3) as usize {
            made.collectors.push(None);
            made.begin(at);
            made.after(SECOND, Event::Settle(at));
        }
        for host in 0..made.hosts.len() {
            made.after(0, Event::Write(host));
            made.after(0, Event::Step(host));
            made.after(0, Event::Connect(host));
        }
        made.after(SECOND, Event::Trouble);
        made.after(SECOND, Event::Compact);
        made
    }

    pub(crate) fn after(&mut self, time: u64, event: Event) {
        self.events
            .push(Reverse((self.now + time, self.next_event)));
        self.happens.insert(self.next_event, event);
        self.next_event += 1;
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    /// A time between these, in microseconds.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.random.below(most - least)
    }

    pub(crate) fn is_troubled(&self) -> bool {
        self.now < END
    }

    /// Runs to the end: everything is acknowledged, and in tables.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        while let Some(Reverse((at, number))) = self.events.pop() {
            self.now = at;
            self.clock.set(Duration::from_micros(at));
            let event = self.happens.remove(&number).expect("it is there");
            self.happen(event);
            if self.now > LONG_END {
                return Err("it does not come to an end".to_owned());
            }
            if !self.is_troubled() && self.hosts.iter().all(Host::is_done) {
                self.settle_tables();
                return Ok(());
            }
        }
        Err("nothing happens any more".to_owned())
    }

    /// Makes tables of all that there is.
    fn settle_tables(&mut self) {
        while let Some(Reverse((_, number))) = self.events.pop() {
            if let Some(Event::Land(name, bytes)) = self.happens.remove(&number) {
                self.objects.insert(name, bytes);
            }
        }
        for _ in 0..30 {
            if let Some(batch) = self
                .tables
                .batch(&self.objects, &mut self.random, self.planted)
            {
                self.tables.commit(batch);
            }
        }
        self.troubles.spilled = self.hosts.iter().map(|host| host.spilled).sum();
        self.troubles.in_vain = self.tables.in_vain;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Write(host) => self.write(host),
            Event::Step(host) => self.step(host),
            Event::Connect(host) => self.connect(host),
            Event::ToCollector {
                at,
                life,
                connection,
                block,
            } => {
                self.collector_hears((at, life), connection, block);
            }
            Event::ToHost {
                host,
                connection,
                said,
            } => self.host_hears(host, connection, said),
            Event::Settle(at) => {
                self.settle(at);
                let slow = if self.is_troubled() { 1 } else { 10 };
                self.after(slow * SECOND, Event::Settle(at));
            }
            Event::Put { at, life } => self.put(at, life),
            Event::Again { at, life } => {
                let collector = self.collectors[at].as_mut().filter(|c| c.life == life);
                collector
                    .into_iter()
                    .for_each(|collector| collector.is_putting = false);
                self.put(at, life);
            }
            Event::Land(name, bytes) => drop(self.objects.insert(name, bytes)),
            Event::Answer { at, life, is_ok } => self.answer(at, life, is_ok),
            Event::Trouble => self.trouble(),
            Event::Begin(at) => self.begin(at),
            Event::StreamerBegins(host) => {
                self.hosts[host].restart();
                self.after(0, Event::Step(host));
                self.after(0, Event::Connect(host));
            }
            Event::Compact => self.compact(),
            Event::Commit(batch) => self.tables.commit(*batch),
        }
    }

    fn write(&mut self, host: usize) {
        let next = self.between(5_000, 400_000);
        let program = &mut self.hosts[host].program;
        program.write(&mut self.random);
        if self.now + next < END - SECOND {
            self.after(next, Event::Write(host));
        } else {
            program.end();
        }
    }

    fn step(&mut self, host: usize) {
        let is_over = !self.is_troubled() && self.hosts[host].is_done();
        if self.hosts[host].is_down || is_over {
            return;
        }
        let blocks = self.hosts[host].step(self.now * 1000, &mut self.random);
        self.send(host, blocks);
        let keeps = self.below(8) == 0;
        if keeps {
            self.hosts[host].keep();
        }
        let next = self.between(20_000, 120_000);
        // One that waits for the end has less to do.
        let slow = if self.is_troubled() { 1 } else { 4 };
        self.after(next * slow, Event::Step(host));
    }

    /// Sends blocks over the connection of a host, in order.
    fn send(&mut self, host: usize, blocks: Vec<Vec<u8>>) {
        let Some(connection) = &self.hosts[host].connection else {
            return;
        };
        let (at, connection) = (connection.collector, connection.number);
        let Some(life) = self.collectors[at].as_ref().map(|collector| collector.life) else {
            return;
        };
        for block in blocks {
            let time = self.arrival(connection, true);
            self.after(
                time,
                Event::ToCollector {
                    at,
                    life,
                    connection,
                    block,
                },
            );
        }
    }

    /// In how long the next message of a connection arrives.
    fn arrival(&mut self, connection: u64, to_collector: bool) -> u64 {
        let takes = self.between(200, 30_000);
        let last = self.arrivals.entry((connection, to_collector)).or_default();
        *last = (*last).max(self.now + takes);
        *last - self.now
    }

    fn connect(&mut self, host: usize) {
        if self.hosts[host].is_down || self.hosts[host].connection.is_some() {
            return;
        }
        let at = self.below(self.collectors.len() as u64) as usize;
        let (number, name) = (self.connections, self.hosts[host].name());
        let Some(collector) = &mut self.collectors[at] else {
            let again = self.between(100_000, 3 * SECOND);
            return self.after(again, Event::Connect(host));
        };
        self.connections += 1;
        let credit = collector.connect(number, host, name);
        let store = collector.objects.id();
        self.hosts[host].connected(number, at, store, credit);
    }

    fn collector_hears(&mut self, (at, life): (usize, u64), connection: u64, block: Vec<u8>) {
        let Some(collector) = self.collectors[at].as_mut().filter(|c| c.life == life) else {
            return;
        };
        let ends = is_final(&block);
        if ends && self.planted == Planted::FinalEarly {
            let (name, bytes) = super::early::object(&block, life, connection);
            self.objects.insert(name, bytes);
        }
        collector.receive(connection, block);
        if ends {
            // The streamer says BYE then.
            collector.objects.hurry();
        }
        self.settle(at);
    }

    /// A collector takes in what came, says what there is to say, and puts what is due.
    pub(crate) fn settle(&mut self, at: usize) {
        let Some(collector) = &mut self.collectors[at] else {
            return;
        };
        let mut said = collector.settle();
        if self.planted == Planted::AckBeforePut {
            said.extend(collector.received());
        }
        let (life, is_putting) = (collector.life, collector.is_putting);
        let due = collector.objects.due();
        for (connection, host, said) in said {
            let time = self.arrival(connection, false);
            self.after(
                time,
                Event::ToHost {
                    host,
                    connection,
                    said,
                },
            );
        }
        if let Some(due) = due.filter(|_| !is_putting) {
            let due = self.clock.shown_at(due).as_micros() as u64;
            self.after(due.saturating_sub(self.now), Event::Put { at, life });
        }
    }

    fn host_hears(&mut self, host: usize, connection: u64, said: Said) {
        let of = self.hosts[host].connection.as_ref();
        if of.is_none_or(|of| of.number != connection) {
            return;
        }
        let blocks = match said {
            Said::Resume => {
                self.hosts[host].resume(&Resumed {
                    flags: UNKNOWN | SCHEMA_ACKED,
                    schema_bytes: 0,
                    slots: Vec::new(),
                });
                Vec::new()
            }
            Said::Ack { durable, credit } => self.hosts[host].acknowledged(durable, credit),
        };
        self.send(host, blocks);
    }

    /// A collector begins, in place of one that was killed.
    fn begin(&mut self, at: usize) {
        self.lives += 1;
        let segment_bytes = [20_000, 200_000][(self.lives % 2) as usize];
        let collector = Collector::new(self.lives, &self.options, segment_bytes, &self.clock);
        self.collectors[at] = Some(collector);
    }

    /// Tables are made of new segments. Their commit comes later, or never.
    fn compact(&mut self) {
        if let Some(batch) = self
            .tables
            .batch(&self.objects, &mut self.random, self.planted)
        {
            let later = self.between(1, 8 * SECOND);
            match self.below(5) {
                0 => self.tables.in_vain += 1,
                _ => self.after(later, Event::Commit(Box::new(batch))),
            }
        }
        let next = self.between(SECOND, 10 * SECOND);
        let slow = if self.is_troubled() { 1 } else { 60 };
        self.after(next * slow, Event::Compact);
    }
}
