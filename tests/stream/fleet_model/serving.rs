//! What collectors do: they let hosts in, take batches in, put segments and acknowledge.

use std::collections::VecDeque;
use std::io;

use ringmark_collector::machines::{Taken, Then};
use ringmark_reader::stream::machines::Ended;

use super::collector::{Arrived, Collector, Work};
use super::figures::Figures;
use super::host::Stage;
use super::world::{Event, World};
use super::{Away, SECOND, micros};

/// How many connections that wait for credit are asked in vain before the others wait for the next time.
const ASKED_IN_VAIN: usize = 8;

impl World {
    fn collector(&mut self, at: usize, life: u64) -> Option<&mut Collector> {
        self.collectors[at]
            .as_mut()
            .filter(|collector| collector.life == life)
    }

    /// Gives the processor of a collector something to do.
    pub(super) fn work(&mut self, at: usize, work: Work) {
        let Some(collector) = &mut self.collectors[at] else {
            return;
        };
        collector.work.push_back(work);
        if !collector.is_working {
            self.work_on(at);
        }
    }

    fn work_on(&mut self, at: usize) {
        let (handshake, takes) = (micros(self.of.handshake), self.of.takes);
        loop {
            let Some(collector) = &mut self.collectors[at] else {
                return;
            };
            collector.is_working = false;
            let Some(front) = collector.work.front_mut() else {
                return;
            };
            let (time, evicted) = match front {
                Work::Shake {
                    host,
                    attempt,
                    place,
                } => match place.is_to_go() {
                    true => (0, Some((*host, *attempt))),
                    false => (handshake, None),
                },
                Work::Take { batch, .. } => (batch.bytes * SECOND / takes, None),
            };
            if let Some((host, attempt)) = evicted {
                collector.work.pop_front();
                self.figures.evicted += 1;
                self.over_there(Event::Ended(host, attempt, Ended::Lost));
                continue;
            }
            collector.is_working = true;
            let life = collector.life;
            return self.after(time, Event::Worked(at, life));
        }
    }

    pub(super) fn worked(&mut self, at: usize, life: u64) {
        let Some(collector) = self.collector(at, life) else {
            return;
        };
        match collector.work.pop_front() {
            Some(Work::Shake { host, attempt, .. }) => self.let_in(at, host, attempt),
            Some(Work::Take {
                host,
                attempt,
                batch,
            }) => self.take((at, host), attempt, batch),
            None => {}
        }
        self.work_on(at);
    }

    fn let_in(&mut self, at: usize, host: u32, attempt: u64) {
        Figures::count(&mut self.figures.handshakes, self.now, 1);
        let of = &self.hosts[host as usize];
        if of.attempt != attempt || of.stage != Stage::Shaking(at) {
            self.figures.in_vain += 1;
            return;
        }
        let most = self.of.connections;
        let collector = self.collectors[at].as_mut().expect("it has worked");
        if collector.peers.len() >= most {
            self.figures.refused += 1;
            return self.over_there(Event::Ended(host, attempt, Ended::RefusedForNow));
        }
        let credit = collector.welcome(host, attempt, self.of.page);
        self.over_there(Event::Welcome(host, attempt, credit));
        self.settle(at, host);
    }

    /// Takes a batch in, after those of its connection that came before.
    fn take(&mut self, (at, host): (usize, u32), attempt: u64, batch: Arrived) {
        let Some(collector) = &mut self.collectors[at] else {
            return;
        };
        let Some(peer) = collector
            .peers
            .get_mut(&host)
            .filter(|peer| peer.attempt == attempt)
        else {
            return;
        };
        peer.stuck.push_back(batch);
        if peer.stuck.len() > 1 {
            return;
        }
        if !self.take_stuck(at, host) {
            let collector = self.collectors[at].as_mut().expect("it is there");
            collector.turn.push_back(host);
        }
        self.settle(at, host);
        self.flush_when_due(at);
    }

    /// Takes in what came of a host; returns whether there was memory for all.
    fn take_stuck(&mut self, at: usize, host: u32) -> bool {
        let collector = self.collectors[at].as_mut().expect("it is there");
        let (mut is_all, mut resumed, mut read, mut new) = (true, false, 0, None);
        let Some(peer) = collector.peers.get_mut(&host) else {
            return true;
        };
        while let Some(first) = peer.stuck.front() {
            let is_session = first.pages.is_empty();
            let session = (!is_session).then_some(&mut peer.session);
            match peer.stepped.count(&collector.objects, session, first.bytes) {
                Taken::Yes => {}
                Taken::Waits => {
                    is_all = false;
                    break;
                }
                Taken::BeyondCredit => panic!("host {host} sent beyond its credit"),
            }
            read = first.end;
            if is_session {
                peer.stuck.pop_front();
                resumed = true;
                continue;
            }
            peer.taken.extend(peer.stuck.pop_front());
            let segment = peer.session.segment();
            if peer.noted != segment {
                peer.noted = segment;
                new = segment;
            }
        }
        let attempt = peer.attempt;
        if let Some(segment) = new {
            collector.note_segment(host, segment);
        }
        let (waiting, taken) = (collector.objects.waiting(), collector.objects.taken());
        self.figures.most_waiting = self.figures.most_waiting.max(waiting);
        self.figures.most_taken = self.figures.most_taken.max(taken);
        self.note_read(host, attempt, read);
        if resumed {
            self.over_there(Event::Resumed(host, attempt));
        }
        is_all
    }

    /// The collector has read up to this position: there is room for more on the way.
    fn note_read(&mut self, host: u32, attempt: u64, read: u64) {
        let of = &mut self.hosts[host as usize];
        if of.attempt != attempt {
            return;
        }
        of.read = of.read.max(read);
        if std::mem::take(&mut of.is_full) {
            self.over_there(Event::Step(host, attempt));
        }
    }

    /// Says to a host what there is to say.
    fn settle(&mut self, at: usize, host: u32) {
        let Some(collector) = &mut self.collectors[at] else {
            return;
        };
        let Some(peer) = collector.peers.get_mut(&host) else {
            return;
        };
        let attempt = peer.attempt;
        let said = peer.stepped.settle(&collector.objects);
        let mut stored = VecDeque::new();
        if let Some((durable, _)) = said {
            while peer.taken.front().is_some_and(|first| first.end <= durable) {
                stored.extend(peer.taken.pop_front());
            }
        }
        if !peer.is_short && peer.stepped.is_short(&collector.objects) {
            peer.is_short = true;
            collector.short.push(host);
        }
        let quiet_at = micros(self.clock.shown_at(peer.stepped.quiet_at()));
        let is_to_watch = !peer.is_watched && quiet_at > self.now;
        peer.is_watched |= is_to_watch;
        let life = collector.life;
        if is_to_watch {
            let wait = quiet_at - self.now;
            self.after(wait, Event::Quiet(at, life, host, attempt));
        }
        stored.iter().for_each(|batch| self.store(host, batch));
        if let Some(said) = said {
            self.over_there(Event::Ack(host, attempt, said));
        }
    }

    /// Pages of a host are stored: in order, and those between them are lost.
    fn store(&mut self, host: u32, batch: &Arrived) {
        let of = &mut self.hosts[host as usize];
        let new = batch
            .pages
            .end
            .saturating_sub(batch.pages.start.max(of.stored));
        let pages = batch.pages.end - batch.pages.start;
        self.figures.stored += new;
        self.figures.twice += pages - new;
        self.figures.steady.pages += if self.of.is_steady(self.now) { new } else { 0 };
        let is_next = of.is_next(&batch.pages);
        assert!(
            is_next,
            "host {host}: {:?} after {}",
            batch.pages, of.stored
        );
        of.stored = of.stored.max(batch.pages.end);
        if self.now >= self.of.back_at() {
            let since = self.now - self.of.back_at();
            if of.backlog_to.is_some_and(|to| to <= of.stored) {
                of.backlog_to = None;
                self.figures.drained.push(since as f64 / SECOND as f64);
            }
        }
    }

    /// A connection may be quiet now.
    pub(super) fn quiet(&mut self, (at, life): (usize, u64), host: u32, attempt: u64) {
        let Some(collector) = self.collector(at, life) else {
            return;
        };
        let Some(peer) = collector
            .peers
            .get_mut(&host)
            .filter(|peer| peer.attempt == attempt)
        else {
            return;
        };
        peer.is_watched = false;
        self.settle(at, host);
        self.feed(at);
    }

    /// Memory is free: those that wait for it get some, blocks before credit.
    fn feed(&mut self, at: usize) {
        while let Some(&host) = self.collectors[at].as_ref().and_then(|c| c.turn.front()) {
            let is_all = self.take_stuck(at, host);
            self.settle(at, host);
            if !is_all {
                break;
            }
            self.collectors[at]
                .as_mut()
                .expect("it is there")
                .turn
                .pop_front();
        }
        let mut in_vain = 0;
        while in_vain < ASKED_IN_VAIN {
            let drawn = self.random.below(u64::MAX);
            let Some(collector) = self.collectors[at].as_mut().filter(|c| !c.short.is_empty())
            else {
                break;
            };
            let place = (drawn % collector.short.len() as u64) as usize;
            let host = collector.short.swap_remove(place);
            if let Some(peer) = collector.peers.get_mut(&host) {
                peer.is_short = false;
                self.settle(at, host);
                let again = self.collectors[at]
                    .as_ref()
                    .and_then(|c| c.peers.get(&host));
                in_vain += usize::from(again.is_some_and(|peer| peer.is_short));
            }
        }
        self.flush_when_due(at);
    }

    /// Puts what is due, and else looks again when it will be.
    fn flush_when_due(&mut self, at: usize) {
        let Some(collector) = self.collectors[at].as_mut().filter(|c| !c.is_putting) else {
            return;
        };
        let life = collector.life;
        if collector.objects.put().is_some() {
            collector.is_putting = true;
            return self.begin_put(at, life);
        }
        let due = collector
            .objects
            .due()
            .map(|due| micros(self.clock.shown_at(due)));
        if let Some(due) = due.filter(|due| collector.flush_at.is_none_or(|at| at > *due)) {
            collector.flush_at = Some(due);
            let wait = due.saturating_sub(self.now);
            self.after(wait, Event::Flush(at, life));
        }
    }

    pub(super) fn flush(&mut self, at: usize, life: u64) {
        if let Some(collector) = self.collector(at, life) {
            collector.flush_at = None;
            self.flush_when_due(at);
        }
    }

    fn begin_put(&mut self, at: usize, life: u64) {
        let collector = self.collectors[at].as_ref().expect("it puts");
        let bytes = collector.objects.putting_bytes();
        match (self.is_store_away, self.of.what) {
            (true, Away::HangingStore) => {}
            (true, _) => self.after(micros(self.of.put), Event::Put(at, life, false)),
            (false, _) => {
                let time = micros(self.of.put) + bytes * SECOND / self.of.put_bytes_per_second;
                self.after(time, Event::Put(at, life, true));
            }
        }
    }

    /// Puts that hung go on.
    pub(super) fn end_hanging(&mut self) {
        for at in 0..self.collectors.len() {
            let putting = self.collectors[at].as_ref().filter(|c| c.is_putting);
            if let Some(life) = putting.map(|collector| collector.life) {
                self.begin_put(at, life);
            }
        }
    }

    pub(super) fn again(&mut self, at: usize, life: u64) {
        if self.collector(at, life).is_some() {
            self.begin_put(at, life);
        }
    }

    pub(super) fn answer(&mut self, at: usize, life: u64, is_ok: bool) {
        let Some(collector) = self.collector(at, life) else {
            return;
        };
        let bytes = collector.objects.putting_bytes();
        let answer = match is_ok {
            true => Ok(()),
            false => Err(io::Error::other("503")),
        };
        let then = collector.objects.answer(&answer);
        if let Some(Then::Again(after)) = then {
            self.figures.failed_puts += 1;
            return self.after(micros(after), Event::Again(at, life));
        }
        collector.is_putting = false;
        let durable = collector.objects.durable();
        let hosts = collector.take_before(durable);
        let is_steady = self.of.is_steady(self.now);
        self.figures.puts += 1;
        self.figures.steady.puts += u64::from(is_steady);
        self.figures.put_bytes += bytes;
        for host in hosts {
            self.settle(at, host);
        }
        self.feed(at);
    }
}
