//! Spans over threads as the page nests them: when a thread was in one, and which one was around it.
//!
//! The records of a thread name spans by their ids, which are given again. So a record is of the span that
//! had its id at that time, which is known when all spans are.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use ringmark_decoder::Event;
use ringmark_format::schema::Shape;

use super::meta::Key;
use super::rows::{Slice, Track, flag};

/// A span over threads: when it began and ended, its name, and the id of the one around it.
#[derive(Debug)]
struct Life {
    process: usize,
    start: u64,
    end: u64,
    name: u32,
    around: Option<u64>,
}

/// A thread in a span, or one that was: the session's process, the id, wall times in ns.
#[derive(Debug, Clone, Copy)]
struct Stay {
    process: usize,
    id: u64,
    start: u64,
    end: u64,
}

/// All spans over threads, and the threads in them.
#[derive(Debug, Default)]
pub(super) struct Entered {
    lives: Vec<Life>,
    /// Their places in `lives`, by process and id, in the order of their ends.
    by_id: HashMap<(usize, u64), Vec<u32>>,
    /// By thread: those it is in, the innermost last.
    inside: HashMap<u32, Vec<Stay>>,
    /// Thread and depth of those that it has left.
    left: Vec<(u32, usize, Stay)>,
}

impl Entered {
    /// Takes a record of a span.
    pub(super) fn part(&mut self, of: &Event<'_>) {
        let Some(id) = of.span else { return };
        let inside = self.inside.entry(of.thread()).or_default();
        match of.shape() {
            Some(Shape::SpanEnter) => inside.push(Stay {
                process: of.session.process,
                id,
                start: of.wall_ns(),
                end: of.wall_ns(),
            }),
            Some(Shape::SpanExit) => {
                if let Some(depth) = inside.iter().rposition(|stay| stay.id == id) {
                    let mut stay = inside.remove(depth);
                    stay.end = of.wall_ns();
                    self.left.push((of.thread(), depth, stay));
                }
            }
            _ => {}
        }
    }

    /// Takes a span with its process, its id and that of the one around it. Returns its number.
    pub(super) fn life(
        &mut self,
        (process, id, around): (usize, Option<u64>, Option<u64>),
        (start, end): (u64, u64),
        name: u32,
    ) -> u32 {
        let number = self.lives.len() as u32;
        self.lives.push(Life {
            process,
            start,
            end,
            name,
            around,
        });
        if let Some(id) = id {
            self.by_id.entry((process, id)).or_default().push(number);
        }
        number
    }

    /// The span that had this id at a time.
    fn find(&self, process: usize, id: u64, at: u64) -> Option<u32> {
        let all = self.by_id.get(&(process, id))?.iter().copied();
        let mut lasting = all.filter(|number| {
            let life = &self.lives[*number as usize];
            life.start <= at && at <= life.end
        });
        lasting.next()
    }

    /// The span around one. What a file says may go round in a circle: one that began later, or at the same
    /// time and ended earlier, is around none.
    pub(super) fn around(&self, number: u32) -> Option<u32> {
        let life = self.lives.get(number as usize)?;
        let around = self.find(life.process, life.around?, life.start)?;
        let order = |number: u32| {
            let life = &self.lives[number as usize];
            (life.start, Reverse(life.end), Reverse(number))
        };
        (order(around) < order(number)).then_some(around)
    }

    /// The times in which threads were in spans that are shown: thread, depth and slice. Those that no thread
    /// has left last to the end.
    pub(super) fn finish(&mut self, last_ns: u64) -> Vec<(u32, usize, Slice)> {
        let mut all: Vec<_> = std::mem::take(&mut self.left);
        let count = all.len();
        for (thread, stays) in std::mem::take(&mut self.inside) {
            for (depth, mut stay) in stays.into_iter().enumerate() {
                stay.end = last_ns.max(stay.start);
                all.push((thread, depth, stay));
            }
        }
        let slices = all.into_iter().enumerate();
        let slices = slices.filter_map(|(place, (thread, depth, stay))| {
            let life = self.find(stay.process, stay.id, stay.start)?;
            let slice = Slice {
                start: stay.start,
                end: stay.end,
                name: self.lives[life as usize].name,
                args: None,
                flags: flag::ENTERED | if place < count { 0 } else { flag::OPEN },
                life: None,
                around: Some(life),
            };
            Some((thread, depth, slice))
        });
        slices.collect()
    }

    /// The places of the spans among all slices of the tracks.
    pub(super) fn places(&self, tracks: &BTreeMap<Key, Track>) -> Vec<u32> {
        let mut places = vec![u32::MAX; self.lives.len()];
        let rows = tracks.values().flat_map(|track| &track.rows);
        for (place, slice) in (0..).zip(rows.flatten()) {
            if let Some(known) = slice.life.and_then(|life| places.get_mut(life as usize)) {
                *known = place;
            }
        }
        places
    }
}
