//! What goes wrong in the world: puts that fail or come late, collectors and streamers that are killed.

use std::io;

use super::world::{Event, SECOND, World};

impl World {
    /// The next object is put, if none is. What becomes of it is drawn.
    pub(crate) fn put(&mut self, at: usize, life: u64) {
        let Some(collector) = self.collectors[at].as_mut().filter(|c| c.life == life) else {
            return;
        };
        if collector.is_putting {
            return;
        }
        let Some((name, bytes)) = collector.put() else {
            return;
        };
        self.begin_put((at, life), name, bytes);
    }

    fn begin_put(&mut self, (at, life): (usize, u64), name: String, bytes: Vec<u8>) {
        self.troubles.puts += 1;
        let takes = self.between(5_000, 300_000);
        let drawn = if self.is_troubled() {
            self.below(20)
        } else {
            99
        };
        let answer = |is_ok| Event::Answer { at, life, is_ok };
        if self.now < self.away_until {
            self.troubles.refused_all += 1;
            return self.after(takes, answer(false));
        }
        match drawn {
            0 => {
                self.troubles.failed_before += 1;
                self.after(takes, answer(false));
            }
            1 | 2 => {
                self.troubles.failed_after += 1;
                self.after(takes / 2, Event::Land(name, bytes));
                self.after(takes, answer(false));
            }
            3 => {
                // A reader, and a HEAD, find nothing; much later it is there all the same.
                self.troubles.landed_late += 1;
                let late = self.between(SECOND, 40 * SECOND);
                self.after(late, Event::Land(name, bytes));
                self.after(takes, answer(false));
            }
            4 => {
                self.troubles.stalls += 1;
                let stalls = self.between(SECOND, 30 * SECOND);
                self.after(stalls, Event::Land(name, bytes));
                self.after(stalls + takes, answer(true));
            }
            _ => {
                self.after(takes / 2, Event::Land(name, bytes));
                self.after(takes, answer(true));
            }
        }
    }

    pub(crate) fn answer(&mut self, at: usize, life: u64, is_ok: bool) {
        let Some(collector) = self.collectors[at].as_mut().filter(|c| c.life == life) else {
            return;
        };
        let answer = match is_ok {
            true => Ok(()),
            false => Err(io::Error::other("503")),
        };
        if let Some(after) = collector.answered(&answer) {
            self.after(after.as_micros() as u64, Event::Again { at, life });
            return;
        }
        self.after(0, Event::Put { at, life });
        self.settle(at);
    }

    pub(crate) fn trouble(&mut self) {
        if !self.is_troubled() {
            return;
        }
        let host = self.below(self.hosts.len() as u64) as usize;
        let at = self.below(self.collectors.len() as u64) as usize;
        match self.below(12) {
            0..=3 => self.kill(at),
            4..=6 => self.cut(host),
            7 | 8 => self.restart(host),
            9 => self.away_until = self.now + self.between(SECOND, 20 * SECOND),
            _ => {}
        }
        let next = self.between(300_000, 5 * SECOND);
        self.after(next, Event::Trouble);
    }

    fn kill(&mut self, at: usize) {
        let Some(collector) = self.collectors[at].take() else {
            return;
        };
        self.troubles.kills += 1;
        self.troubles.kills_under_way += u64::from(collector.under_way() > 0);
        drop(collector);
        for host in 0..self.hosts.len() {
            let is_its = self.hosts[host]
                .connection
                .as_ref()
                .is_some_and(|of| of.collector == at);
            if is_its {
                self.lose_connection(host);
            }
        }
        let down = self.between(50_000, 6 * SECOND);
        self.after(down, Event::Begin(at));
    }

    fn cut(&mut self, host: usize) {
        if self.hosts[host].connection.is_some() {
            self.troubles.cuts += 1;
            self.lose_connection(host);
        }
    }

    fn lose_connection(&mut self, host: usize) {
        if let Some(connection) = self.hosts[host].connection.as_ref() {
            let (at, number) = (connection.collector, connection.number);
            if let Some(collector) = &mut self.collectors[at] {
                collector.hang_up(number);
            }
        }
        self.hosts[host].hang_up();
        let again = self.between(50_000, 3 * SECOND);
        self.after(again, Event::Connect(host));
    }

    /// A streamer is killed. One time in four its host's next one begins an hour later.
    fn restart(&mut self, host: usize) {
        if self.hosts[host].is_down {
            return;
        }
        self.cut(host);
        self.hosts[host].restart();
        self.hosts[host].is_down = true;
        self.troubles.restarts += 1;
        let is_long = self.below(4) == 0;
        self.troubles.hours_away += u64::from(is_long);
        let down = if is_long {
            3600 * SECOND
        } else {
            self.between(10_000, 5 * SECOND)
        };
        self.after(down, Event::StreamerBegins(host));
    }
}
