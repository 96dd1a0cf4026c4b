//! Folded stacks: for each stack of spans or calls the time in its innermost one, in ns.
//!
//! `process;thread;outer;inner 120`. Threads of one name are taken together. Spans over threads lie
//! below their process, with the time that threads were in them. A span or call whose own time is not
//! known has none here: what lay inside it may be missing. Memory is that of the stacks that are
//! different.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use ringmark_decoder::{Ended, Event, Lost, OpenSpan, SmallKeys, Span, SpanPairs, escape};

use crate::timeline::plan::Plan;
use crate::timeline::processes::{Process, processes};
use crate::timeline::viewer::{Lane, Place, Row, Slice, Viewer};

/// A frame below others.
#[derive(Debug)]
struct Frame {
    /// Place of the one around it; its own: it is a process.
    around: usize,
    name: Vec<u8>,
    self_ns: u64,
}

/// A slice that has begun.
#[derive(Debug)]
struct Open {
    frame: usize,
    at_ns: u64,
    children_ns: u64,
}

/// What is left out: a line of text each.
#[derive(Debug, Default)]
struct LeftOut {
    events: u64,
    counters: u64,
    lost: u64,
    no_start: u64,
    no_end: u64,
    /// Own times that are not known.
    not_whole: u64,
}

/// Stacks that are being summed up.
pub(crate) struct Folded<'w, 'p, 'a, W> {
    plan: &'p Plan<'a>,
    pairs: SpanPairs,
    out: &'w mut W,
    written: u64,
    processes: BTreeMap<usize, Process>,
    frames: Vec<Frame>,
    places: HashMap<(usize, Vec<u8>), usize>,
    /// The same by the address of the name, which stays where it is while a dump is read.
    known: SmallKeys<(usize, usize), usize>,
    open: SmallKeys<Place, Vec<Open>>,
    /// Spans and calls are told apart by a frame.
    has_both: bool,
    left_out: LeftOut,
}

/// Rows of calls are one stack, however deep it is.
const fn whole(place: Place) -> Place {
    match place.row {
        Row::Calls(_) => Place {
            row: Row::Calls(0),
            ..place
        },
        _ => place,
    }
}

/// Stands for the frame around a process.
const NOTHING: usize = usize::MAX;

impl<'w, 'p, 'a, W: Write> Folded<'w, 'p, 'a, W> {
    pub(crate) fn new(plan: &'p Plan<'a>, out: &'w mut W) -> Self {
        let counts = plan.counts();
        Self {
            plan,
            pairs: SpanPairs::new(plan.dump),
            out,
            written: 0,
            processes: processes(plan.dump),
            frames: Vec::new(),
            places: HashMap::new(),
            known: SmallKeys::default(),
            open: SmallKeys::default(),
            has_both: counts.calls > 0 && counts.calls < counts.slices,
            left_out: LeftOut::default(),
        }
    }

    fn frame(&mut self, around: usize, name: &[u8]) -> usize {
        if let Some(place) = self.places.get(&(around, name.to_vec())) {
            return *place;
        }
        let place = self.frames.len();
        self.frames.push(Frame {
            around,
            name: name.to_vec(),
            self_ns: 0,
        });
        self.places.insert((around, name.to_vec()), place);
        place
    }

    fn process(&mut self, number: usize) -> usize {
        let name = self
            .processes
            .get(&number)
            .map(|process| process.name.clone());
        self.frame(NOTHING, &name.unwrap_or_default())
    }

    /// The frame that the outermost slices of a row lie in.
    fn root(&mut self, place: Place) -> usize {
        let Some(thread) = self.plan.threads.get(&place.thread).copied() else {
            return self.frame(NOTHING, b"?");
        };
        let process = self.process(thread.session.process);
        let root = self.frame(process, thread.name);
        match place.row {
            Row::Spans(_) if self.has_both => self.frame(root, b"(spans)"),
            Row::Calls(_) | Row::TimedCalls(_) if self.has_both => self.frame(root, b"(functions)"),
            _ => root,
        }
    }

    /// Whether all of what lay inside a slice of one record, which ends it, is shown.
    fn is_whole(&self, place: Place, by: &Event<'_>) -> bool {
        match place.row {
            // It is shown from its entry on, or from where its thread is known.
            Row::Calls(_) => true,
            Row::Spans(_) | Row::TimedCalls(_) => {
                self.pairs.is_whole(by) && self.plan.cut.filter.has_start(by)
            }
        }
    }

    /// The frame of a name in the dump.
    #[inline]
    fn named(&mut self, around: usize, name: &'a [u8]) -> usize {
        let key = (around, name.as_ptr() as usize);
        match self.known.get(&key) {
            Some(place) => *place,
            None => {
                let place = self.frame(around, name);
                self.known.insert(key, place);
                place
            }
        }
    }

    fn push(&mut self, place: Place, at_ns: u64, name: &'a [u8]) {
        let place = whole(place);
        let open = self.open.entry(place).or_default();
        let around = match open.last().map(|open| open.frame) {
            Some(frame) => frame,
            None => self.root(place),
        };
        let frame = self.named(around, name);
        self.open.entry(place).or_default().push(Open {
            frame,
            at_ns,
            children_ns: 0,
        });
    }

    /// The line of a frame.
    fn line(&self, place: usize, out: &mut Vec<u8>) {
        let mut stack = Vec::new();
        let mut next = place;
        while let Some(frame) = self.frames.get(next) {
            stack.push(next);
            next = frame.around;
        }
        for (depth, frame) in stack.iter().rev().enumerate() {
            if depth > 0 {
                out.push(b';');
            }
            let from = out.len();
            escape::text(&self.frames[*frame].name, out);
            // A semicolon ends a frame. An empty name would be no frame.
            out[from..]
                .iter_mut()
                .filter(|b| **b == b';')
                .for_each(|b| *b = b':');
            if out.len() == from {
                out.push(b'?');
            }
        }
        out.extend_from_slice(format!(" {}\n", self.frames[place].self_ns).as_bytes());
    }
}

impl<'a, W: Write> Viewer<'a> for Folded<'_, '_, 'a, W> {
    fn begin(&mut self, place: Place, at_ns: u64, of: &Slice<'a>) -> io::Result<()> {
        self.push(place, at_ns, of.name());
        Ok(())
    }

    fn end(
        &mut self,
        place: Place,
        at_ns: u64,
        by: &Event<'a>,
        _: Option<Ended>,
    ) -> io::Result<()> {
        let is_whole = self.is_whole(place, by);
        let open = self.open.entry(whole(place)).or_default();
        let Some(ended) = open.pop() else {
            return Ok(());
        };
        let took = at_ns.saturating_sub(ended.at_ns);
        if let Some(around) = open.last_mut() {
            around.children_ns += took;
        }
        if is_whole {
            self.frames[ended.frame].self_ns += took.saturating_sub(ended.children_ns);
        } else {
            self.left_out.not_whole += 1;
        }
        Ok(())
    }

    fn open(&mut self, place: Place, at_ns: u64, span: &OpenSpan<'a>) -> io::Result<()> {
        self.push(place, at_ns, &span.ty.name);
        Ok(())
    }

    fn instant(&mut self, _: &Event<'a>) -> io::Result<()> {
        self.left_out.events += 1;
        Ok(())
    }

    fn end_only(&mut self, _: &Event<'a>) -> io::Result<()> {
        self.left_out.no_start += 1;
        Ok(())
    }

    fn counter(&mut self, _: &Event<'a>) -> io::Result<()> {
        self.left_out.counters += 1;
        Ok(())
    }

    fn lasted(&mut self, lane: &Lane<'a>, span: &Span<'a>) -> io::Result<()> {
        let process = self.process(lane.session.process);
        let over = self.frame(process, b"(over threads)");
        let frame = self.frame(over, &lane.ty.name);
        let busy = span
            .entered
            .map_or(span.total_ns, |entered| entered.busy_ns);
        self.frames[frame].self_ns += span.self_ns.unwrap_or(busy);
        Ok(())
    }

    fn lasts(&mut self, _: &Lane<'a>, _: &Event<'a>) -> io::Result<()> {
        self.left_out.no_end += 1;
        Ok(())
    }

    fn lost(&mut self, lost: &Lost<'a>, _: u64) -> io::Result<()> {
        self.left_out.lost = self.left_out.lost.saturating_add(lost.loss.count);
        Ok(())
    }

    fn left_out(&self) -> Vec<(&'static str, u64)> {
        let left = &self.left_out;
        vec![
            ("events that have no duration", left.events),
            ("values of counters", left.counters),
            ("lost, overwritten or missing events", left.lost),
            ("calls without a known beginning", left.no_start),
            ("spans and calls without an end", left.no_end),
            ("own times that are not known", left.not_whole),
        ]
    }

    fn bytes(&self) -> u64 {
        self.written
    }

    fn finish(&mut self) -> io::Result<()> {
        self.left_out.no_end += self
            .open
            .values()
            .map(|open| open.len() as u64)
            .sum::<u64>();
        let mut line = Vec::new();
        for place in 0..self.frames.len() {
            if self.frames[place].self_ns > 0 {
                line.clear();
                self.line(place, &mut line);
                self.out.write_all(&line)?;
                self.written += line.len() as u64;
            }
        }
        self.out.flush()
    }
}
