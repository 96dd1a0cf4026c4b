//! Host and collectors in virtual time: thousands of schedules, each a function of its seed.
//!
//! Connections are cut, acknowledgements get lost, collectors change and lose their power, objects land
//! although no answer came, streamers are killed. The state machines are those of the streamer ([`Ledger`], in-flight batches, progress
//! of slots) and of the reader ([`HostProgress`]); a store is a model. At the end all
//! stores are read together: each page is there once, or its host has said that it is gone.
//!
//! [`Ledger`]: ringmark_reader::stream::machines::Ledger
//! [`HostProgress`]: ringmark_decoder::HostProgress

#[path = "several_stores/host.rs"]
mod host;
#[path = "several_stores/random.rs"]
mod random;
#[path = "several_stores/shelf.rs"]
mod shelf;

use std::collections::BTreeSet;

use ringmark_decoder::{HostProgress, Why};

use host::{EVENTS, Host};
use random::Random;
use shelf::Shelf;

/// A bug that is planted, to see that the schedules find it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Planted {
    Nothing,
    /// A collector acknowledges what is not durable.
    AckBeforeSync,
    /// A streamer forgets what another collector acknowledged.
    ForgetAtReconnect,
    /// Pages that are gone are not told.
    SayNothing,
}

/// What a schedule came to.
#[derive(Default)]
struct Outcome {
    pages: u64,
    /// Pages that were overwritten before they could be sent.
    gone: u64,
    /// Pages that are in more than one store, or in one more than once.
    twice: u64,
    cuts: u64,
}

struct World {
    random: Random,
    host: Host,
    shelves: Vec<Shelf>,
    /// The collector of the present connection.
    at: Option<usize>,
    /// Acknowledgements under way.
    acks: Vec<u64>,
    /// Messages of the present connection of which the host heard that they are durable.
    heard: u64,
    /// Pages that came and of which the host did not hear it, of all connections that ended.
    may_come_twice: u64,
    planted: Planted,
    outcome: Outcome,
}

impl World {
    fn new(seed: u64, planted: Planted) -> Self {
        let mut random = Random::new(seed);
        let overwrites = random.below(2) == 0;
        let (slots, pages) = (1 + random.below(3) as u32, 2 + random.below(12));
        let mut shelf = |number: u64| Shelf::new(number as u8, random.below(2) == 0);
        let shelves = (0..1 + seed % 4).map(&mut shelf).collect();
        Self {
            host: Host::new(slots, pages, overwrites),
            shelves,
            at: None,
            acks: Vec::new(),
            heard: 0,
            may_come_twice: 0,
            planted,
            outcome: Outcome::default(),
            random,
        }
    }

    fn connect(&mut self) {
        let at = self.random.below(self.shelves.len() as u64) as usize;
        let said = self.shelves[at].greet();
        if self.planted == Planted::ForgetAtReconnect {
            self.host.forget();
        }
        self.host.resume(self.shelves[at].id, &said);
        self.at = Some(at);
    }

    /// The connection ends.
    fn part(&mut self) {
        if let Some(at) = self.at.take() {
            self.may_come_twice += self.shelves[at].unheard(self.heard);
        }
        (self.heard, self.acks) = (0, Vec::new());
    }

    fn cut(&mut self) {
        self.part();
        self.host.hang_up();
        self.outcome.cuts += 1;
    }

    /// One thing happens.
    fn step(&mut self) {
        let Some(at) = self.at else {
            match self.random.below(3) {
                0 => self.connect(),
                _ => self.host.write(&mut self.random),
            }
            return;
        };
        match self.random.below(24) {
            0..=8 => self.host.write(&mut self.random),
            9..=12 => self.send(at),
            13..=16 => self.shelves[at].take(),
            17..=18 => self.sync(at),
            19..=20 => self.hear(at),
            21 => self.host.keep(),
            22 => match self.random.below(6) {
                0 => self.restart(),
                _ => self.cut(),
            },
            _ => {
                if self.random.below(4) == 0 {
                    let landed = self.random.below(4);
                    self.shelves[at].lose_power(landed);
                    self.cut();
                }
            }
        }
    }

    fn restart(&mut self) {
        self.part();
        self.host.restart();
    }

    fn send(&mut self, at: usize) {
        let most = 1 + self.random.below(6);
        let messages = self.host.send(most, &mut self.random);
        self.deliver(at, messages);
    }

    fn deliver(&mut self, at: usize, messages: Vec<host::Message>) {
        let is_told = |message: &host::Message| matches!(message, host::Message::Pages(_));
        let keeps_all = self.planted != Planted::SayNothing;
        let messages = messages
            .into_iter()
            .map(|message| match keeps_all || is_told(&message) {
                true => message,
                false => host::Message::Pages(Vec::new()),
            });
        self.shelves[at].under_way.extend(messages);
    }

    fn sync(&mut self, at: usize) {
        let durable = match self.planted {
            Planted::AckBeforeSync => self.shelves[at].received(),
            _ => self.shelves[at].sync(),
        };
        self.acks.push(durable);
    }

    fn hear(&mut self, at: usize) {
        if !self.acks.is_empty() {
            let durable = self.acks.remove(0);
            self.heard = durable;
            self.host.hear_ack(durable, self.shelves[at].id);
        }
    }

    /// Goes on without faults until all is acknowledged, and says so.
    fn finish(&mut self) {
        for _ in 0..10_000 {
            let at = match self.at {
                Some(at) => at,
                None => {
                    self.connect();
                    continue;
                }
            };
            if self.host.is_done() {
                let last = self.host.end();
                self.deliver(at, last);
            }
            self.send(at);
            while !self.shelves[at].under_way.is_empty() {
                self.shelves[at].take();
            }
            let durable = self.shelves[at].sync();
            self.acks.push(durable);
            while !self.acks.is_empty() {
                self.hear(at);
            }
            if self.host.is_done() {
                let last = self.host.end();
                self.deliver(at, last);
                while !self.shelves[at].under_way.is_empty() {
                    self.shelves[at].take();
                }
                return;
            }
        }
        panic!("it does not come to an end");
    }

    /// Reads all stores together. `Err`: what is wrong.
    fn check(&mut self) -> Result<(), String> {
        let mut progress = HostProgress::default();
        for content in self.shelves.iter().flat_map(Shelf::progress) {
            progress.take(content).map_err(|fault| fault.to_string())?;
        }
        let all: Vec<_> = self.shelves.iter().flat_map(Shelf::pages).collect();
        let here: BTreeSet<_> = all.iter().copied().collect();
        self.outcome.twice = (all.len() - here.len()) as u64;
        self.outcome.pages = here.len() as u64;
        for (slot, ring) in self.host.rings.iter().enumerate() {
            let slot = slot as u32;
            if let Some((_, beyond)) = here.range((slot, ring.produced)..(slot + 1, 0)).next() {
                return Err(format!("page {beyond} of slot {slot} was never written"));
            }
            for page in (0..ring.produced).filter(|page| !here.contains(&(slot, *page))) {
                let absent = progress.absent(slot, page..page + 1);
                let why = absent.parts.first().and_then(|part| part.why);
                if why != Some(Why::Overwritten) {
                    return Err(format!("page {page} of slot {slot}: {why:?}"));
                }
                self.outcome.gone += 1;
            }
            // Where the host says how many events were in pages that are gone, it is right.
            for part in progress.absent(slot, 0..ring.produced).parts {
                if part.events != 0 && part.events != part.pages * EVENTS {
                    return Err(format!("{part:?} of slot {slot}"));
                }
            }
        }
        if self.host.again > 0 {
            return Err(format!("{} acknowledged pages were sent", self.host.again));
        }
        let most = self.may_come_twice + self.host.may_come_twice;
        match self.outcome.twice <= most {
            true => Ok(()),
            false => Err(format!(
                "{} pages came twice, at most {most}",
                self.outcome.twice
            )),
        }
    }
}

fn run(seed: u64, planted: Planted) -> (Outcome, Result<(), String>) {
    let mut world = World::new(seed, planted);
    for _ in 0..400 {
        world.step();
    }
    world.finish();
    let found = world.check();
    (world.outcome, found)
}

#[test]
fn each_page_once_or_gone_and_told_so() {
    let (mut all, seeds) = (Outcome::default(), 1_000);
    for seed in 1..=seeds {
        let (outcome, found) = run(seed, Planted::Nothing);
        assert_eq!(found, Ok(()), "seed {seed}");
        all.pages += outcome.pages;
        all.gone += outcome.gone;
        all.twice += outcome.twice;
        all.cuts += outcome.cuts;
    }
    println!(
        "{seeds} schedules, {} cuts: {} pages, {} gone, {} came twice",
        all.cuts, all.pages, all.gone, all.twice
    );
    assert!(all.gone > seeds && all.twice > 0 && all.cuts > seeds * 5);
}

#[test]
fn planted_bugs_are_found() {
    for planted in [
        Planted::AckBeforeSync,
        Planted::ForgetAtReconnect,
        Planted::SayNothing,
    ] {
        let found = (1..=300).filter(|seed| run(*seed, planted).1.is_err());
        let found = found.count();
        println!(
            "planted bug {}: {found} of 300 schedules find it",
            planted as u8
        );
        assert!(found > 0);
    }
}
