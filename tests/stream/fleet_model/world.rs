//! What happens when: hosts that connect, write and send.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use ringmark_collector::machines::SetClock;
use ringmark_reader::stream::machines::{Ended, jittered};
use ringmark_tests::random::Random;

use super::collector::{Arrived, Collector, Work, address};
use super::figures::Figures;
use super::host::{Host, Sent, Stage};
use super::{Away, Fleet, SECOND, micros};

/// How long a streamer waits for an answer before it is connected, as its wire does.
const SILENT: u64 = 8 * SECOND;
/// Longest wait of a streamer between two looks at its rings.
const PACE: u64 = SECOND / 100;
/// Virtual time in which all must come to an end.
const LONG_END: u64 = 6 * 3600 * SECOND;

/// Something that happens.
pub(super) enum Event {
    Dial(u32),
    /// The host gives up this attempt, if it is still at it.
    GiveUp(u32, u64),
    /// A collector ended the attempt, or the connection.
    Ended(u32, u64, Ended),
    /// WELCOME came, with the first credit.
    Welcome(u32, u64, u64),
    Resumed(u32, u64),
    Step(u32, u64),
    Ack(u32, u64, (u64, u64)),
    Arrive {
        at: usize,
        host: u32,
        attempt: u64,
        batch: Arrived,
    },
    Worked(usize, u64),
    Quiet(usize, u64, u32, u64),
    Flush(usize, u64),
    Put(usize, u64, bool),
    Again(usize, u64),
    Gone,
    Back,
}

/// What is planned, the next first.
#[derive(Default)]
struct Plan {
    order: BinaryHeap<Reverse<(u64, u64, usize)>>,
    events: Vec<Option<Event>>,
    free: Vec<usize>,
    next: u64,
}

impl Plan {
    fn add(&mut self, at: u64, event: Event) {
        let place = self.free.pop().unwrap_or(self.events.len());
        if place == self.events.len() {
            self.events.push(None);
        }
        self.events[place] = Some(event);
        self.order.push(Reverse((at, self.next, place)));
        self.next += 1;
    }

    fn next(&mut self) -> Option<(u64, Event)> {
        let Reverse((at, _, place)) = self.order.pop()?;
        self.free.push(place);
        Some((at, self.events[place].take()?))
    }
}

pub(super) struct World {
    pub(super) of: Fleet,
    pub(super) random: Random,
    pub(super) clock: SetClock,
    pub(super) now: u64,
    plan: Plan,
    pub(super) hosts: Vec<Host>,
    /// `None`: it is away.
    pub(super) collectors: Vec<Option<Collector>>,
    lives: u64,
    pub(super) is_store_away: bool,
    is_back: bool,
    /// When programs stop to write; `None`: that is not known yet.
    over_at: Option<u64>,
    /// Hosts that have not caught up.
    pub(super) behind: usize,
    pub(super) figures: Figures,
}

impl World {
    pub(super) fn new(seed: u64, of: &Fleet) -> Self {
        let mut random = Random::from_seed((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let clock = SetClock::new();
        let zero = clock.at(Duration::ZERO);
        let begun = |_| Host::new(random.below(of.period()), of, zero);
        let hosts: Vec<_> = (0..of.hosts).map(begun).collect();
        let mut made = Self {
            of: of.clone(),
            random,
            clock,
            now: 0,
            plan: Plan::default(),
            hosts,
            collectors: (0..of.collectors).map(|_| None).collect(),
            lives: 0,
            is_store_away: false,
            is_back: false,
            over_at: None,
            behind: 0,
            figures: Figures::default(),
        };
        made.begin_collectors();
        for host in 0..of.hosts as u32 {
            let within = made.random.below(made.of.connect * SECOND);
            made.after(within, Event::Dial(host));
        }
        made.after(of.gone_at(), Event::Gone);
        made.after(of.back_at(), Event::Back);
        made
    }

    pub(super) fn after(&mut self, time: u64, event: Event) {
        self.plan.add(self.now + time, event);
    }

    /// The same after the time from one machine to the other.
    pub(super) fn over_there(&mut self, event: Event) {
        self.after(micros(self.of.latency), event);
    }

    /// Runs until all that was written is stored or lost.
    pub(super) fn run(&mut self) {
        while let Some((at, event)) = self.plan.next() {
            self.now = at;
            self.clock.set(Duration::from_micros(at));
            self.happen(event);
            self.look_at_end();
            assert!(
                self.now < LONG_END,
                "it does not come to an end: {}",
                self.state()
            );
            if self.over_at.is_some() && self.hosts.iter().all(|host| host.waiting == 0) {
                return;
            }
        }
        panic!("nothing happens any more: {}", self.state());
    }

    fn state(&self) -> String {
        let waiting = self.hosts.iter().filter(|host| host.waiting > 0).count();
        format!(
            "{waiting} hosts have pages, {} have not caught up",
            self.behind
        )
    }

    /// Programs stop to write when all have caught up.
    fn look_at_end(&mut self) {
        let least = self.of.back_at() + self.of.after * SECOND;
        if self.over_at.is_none() && self.is_back && self.behind == 0 && self.now >= least {
            for host in &mut self.hosts {
                host.write(self.now, &self.of);
            }
            self.over_at = Some(self.now);
        }
    }

    fn write(&mut self, host: u32) {
        if self.over_at.is_none() {
            self.hosts[host as usize].write(self.now, &self.of);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Dial(host) => self.dial(host),
            Event::GiveUp(host, attempt) => {
                if matches!(self.hosts[host as usize].stage, Stage::Shaking(_)) {
                    self.ended(host, attempt, Ended::Lost);
                }
            }
            Event::Ended(host, attempt, how) => self.ended(host, attempt, how),
            Event::Welcome(host, attempt, credit) => self.welcomed(host, attempt, credit),
            Event::Resumed(host, attempt) => self.resumed(host, attempt),
            Event::Step(host, attempt) => {
                if self.is_at(host, attempt) {
                    self.hosts[host as usize].is_planned = false;
                    self.step(host);
                }
            }
            Event::Ack(host, attempt, said) => self.heard(host, attempt, said),
            Event::Arrive {
                at,
                host,
                attempt,
                batch,
            } => {
                self.work(
                    at,
                    Work::Take {
                        host,
                        attempt,
                        batch,
                    },
                );
            }
            Event::Worked(at, life) => self.worked(at, life),
            Event::Quiet(at, life, host, attempt) => self.quiet((at, life), host, attempt),
            Event::Flush(at, life) => self.flush(at, life),
            Event::Put(at, life, is_ok) => self.answer(at, life, is_ok),
            Event::Again(at, life) => self.again(at, life),
            Event::Gone => self.go(),
            Event::Back => self.come_back(),
        }
    }

    fn is_at(&self, host: u32, attempt: u64) -> bool {
        self.hosts[host as usize].attempt == attempt
    }

    fn begin_collectors(&mut self) {
        for at in 0..self.collectors.len() {
            self.lives += 1;
            self.collectors[at] = Some(Collector::new(self.lives, &self.of, &self.clock));
        }
    }

    fn go(&mut self) {
        if self.of.what != Away::Collectors {
            self.is_store_away = true;
            return;
        }
        for host in 0..self.hosts.len() as u32 {
            let of = &self.hosts[host as usize];
            let attempt = of.attempt;
            if of.stage != Stage::Apart {
                self.ended(host, attempt, Ended::Lost);
            }
        }
        self.collectors
            .iter_mut()
            .for_each(|collector| *collector = None);
    }

    fn come_back(&mut self) {
        self.is_store_away = false;
        self.is_back = true;
        if self.of.what == Away::Collectors {
            self.begin_collectors();
        }
        for host in 0..self.hosts.len() as u32 {
            self.write(host);
            let of = &mut self.hosts[host as usize];
            self.figures.backlogs.push(of.waiting * self.of.page);
            if let Some(last) = of.last_held() {
                (of.backlog_to, of.is_behind) = (Some(last + 1), true);
                self.behind += 1;
            }
        }
        let waiting = self
            .collectors
            .iter()
            .flatten()
            .map(|of| of.objects.waiting());
        self.figures.waiting_at_return = waiting.max().unwrap_or_default();
        if self.of.what == Away::HangingStore {
            self.end_hanging();
        }
    }

    fn dial(&mut self, host: u32) {
        let of = &mut self.hosts[host as usize];
        if of.stage != Stage::Apart {
            return;
        }
        of.attempt += 1;
        let attempt = of.attempt;
        Figures::count(&mut self.figures.attempts, self.now, 1);
        let there = |(at, collector): (usize, &Option<Collector>)| collector.as_ref().map(|_| at);
        let there: Vec<usize> = self
            .collectors
            .iter()
            .enumerate()
            .filter_map(there)
            .collect();
        if there.is_empty() {
            return self.over_there(Event::Ended(host, attempt, Ended::Lost));
        }
        let at = there[self.random.below(there.len() as u64) as usize];
        self.hosts[host as usize].stage = Stage::Shaking(at);
        let collector = self.collectors[at].as_ref().expect("it is there");
        let address = Some(address(host, &self.of));
        let moment = self.clock.at(self.clock.now());
        match collector.pool.enter_at(address, moment) {
            Some(place) => {
                self.after(SILENT, Event::GiveUp(host, attempt));
                self.work(
                    at,
                    Work::Shake {
                        host,
                        attempt,
                        place,
                    },
                );
            }
            None => {
                self.figures.evicted += 1;
                self.over_there(Event::Ended(host, attempt, Ended::Lost));
            }
        }
    }

    /// An attempt, or a connection, has ended. An attempt that was welcomed is no longer given up.
    fn ended(&mut self, host: u32, attempt: u64, how: Ended) {
        self.write(host);
        let noise = self.random.below(u64::MAX);
        let of = &mut self.hosts[host as usize];
        if of.attempt != attempt {
            return;
        }
        let is_dialing = matches!(of.stage, Stage::Apart | Stage::Shaking(_));
        self.figures.cut += u64::from(!is_dialing);
        of.hang_up(self.now);
        // What the collector still says to this attempt is not heard.
        of.attempt += 1;
        let noise = if self.of.has_noise { noise } else { 0 };
        let wait = jittered(of.backoff.next(how), noise);
        self.after(micros(wait), Event::Dial(host));
    }

    fn welcomed(&mut self, host: u32, attempt: u64, credit: u64) {
        if !self.is_at(host, attempt) {
            return;
        }
        if let Stage::Shaking(at) = self.hosts[host as usize].stage {
            self.write(host);
            self.hosts[host as usize].greeted(at, self.now, credit);
            self.announce(host);
        }
    }

    fn announce(&mut self, host: u32) {
        let of = &mut self.hosts[host as usize];
        let attempt = of.attempt;
        if let Some((at, batch)) = of.announce() {
            self.over_there(Event::Arrive {
                at,
                host,
                attempt,
                batch,
            });
        }
    }

    fn resumed(&mut self, host: u32, attempt: u64) {
        if !self.is_at(host, attempt) {
            return;
        }
        if let Stage::Announced(at) = self.hosts[host as usize].stage {
            self.write(host);
            self.hosts[host as usize].stage = Stage::Streaming(at);
            self.step(host);
        }
    }

    fn heard(&mut self, host: u32, attempt: u64, said: (u64, u64)) {
        if !self.is_at(host, attempt) {
            return;
        }
        self.write(host);
        let (now, figures, fleet) = (self.now, &mut self.figures, &self.of);
        let of = &mut self.hosts[host as usize];
        let (begun, period) = (of.begun, fleet.period());
        of.acknowledged(said, now, fleet, |pages| {
            for page in pages.clone() {
                let lag = now - (begun + page * period);
                figures.lag(lag);
                if fleet.is_steady(now) {
                    figures.steady.lags.push(lag as f64 / SECOND as f64);
                }
            }
        });
        let usual = micros(fleet.flush) + 2 * SECOND;
        if of.is_behind
            && of.backlog_to.is_none()
            && of.has_sent_to(now.saturating_sub(usual), fleet)
        {
            of.is_behind = false;
            self.behind -= 1;
            let since = now - self.of.back_at();
            self.figures.caught_up.push(since as f64 / SECOND as f64);
        }
        self.announce(host);
        self.step(host);
    }

    /// A host sends what it may.
    fn step(&mut self, host: u32) {
        self.write(host);
        let moment = self.clock.at(self.clock.now());
        let Stage::Streaming(at) = self.hosts[host as usize].stage else {
            return;
        };
        let attempt = self.hosts[host as usize].attempt;
        let mut last = 0;
        let wait = loop {
            let of = &mut self.hosts[host as usize];
            match of.batch(self.now, moment, &self.of) {
                Sent::Batch(batch) => {
                    last = batch.bytes;
                    self.over_there(Event::Arrive {
                        at,
                        host,
                        attempt,
                        batch,
                    });
                }
                Sent::All if self.over_at.is_some() => return,
                Sent::All => {
                    let next = of.full_at(of.written, &self.of);
                    break next.saturating_sub(self.now) + self.random.below(PACE);
                }
                // It looks when ACK comes.
                Sent::NoCredit => return,
                Sent::TooFast => {
                    let rate = self.of.max_rate.unwrap_or(u64::MAX);
                    break PACE + last * SECOND / rate;
                }
            }
        };
        let of = &mut self.hosts[host as usize];
        if !of.is_planned {
            of.is_planned = true;
            self.after(wait, Event::Step(host, attempt));
        }
    }
}
