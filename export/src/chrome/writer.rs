//! Writes the events.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use ringmark_decoder::{
    Ended, Event, Lost, OpenSpan, Session, SmallKeys, Span, Value, escape, number,
};
use ringmark_format::schema::semantic;

use super::args::{Members, plain};
use crate::gathered::Gathered;
use crate::timeline::plan::Plan;
use crate::timeline::processes::{MADE_IDS, Process, processes};
use crate::timeline::viewer::{Lane, Place, Row, Slice, Viewer};

/// Where an event is shown: process and thread.
type Ids = (u32, u32);

/// A trace that is being written.
pub(crate) struct Chrome<'w, 'p, 'a, W> {
    plan: &'p Plan<'a>,
    out: Gathered<'w, W>,
    /// Whether no event was written.
    is_first: bool,
    processes: BTreeMap<usize, Process>,
    /// Rows, and by which ids they are shown.
    rows: SmallKeys<Place, Ids>,
    /// The row of the latest event.
    latest: Option<(Place, Ids)>,
    /// `,"cat":…` of each event type, by address.
    categories: SmallKeys<usize, Vec<u8>>,
    /// Spans over threads so far.
    lasting: u64,
    lost: HashMap<Ids, u64>,
    flows: u64,
}

impl<'w, 'p, 'a, W: Write> Chrome<'w, 'p, 'a, W> {
    pub(crate) fn new(plan: &'p Plan<'a>, out: &'w mut W) -> Self {
        let mut new = Self {
            plan,
            out: Gathered::new(out),
            is_first: true,
            processes: processes(plan.dump),
            rows: SmallKeys::default(),
            latest: None,
            categories: SmallKeys::default(),
            lasting: 0,
            lost: HashMap::new(),
            flows: 0,
        };
        let head = b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
        new.out.bytes().extend_from_slice(head);
        let all: Vec<_> = new.processes.values().cloned().collect();
        for process in all {
            new.named("process_name", (process.pid, 0), &process.name);
        }
        for number in plan.threads.keys() {
            let _ = new.ids(Place {
                thread: *number,
                row: Row::Spans(0),
            });
        }
        new
    }

    /// Says the name of a process or thread, which is printable.
    fn named(&mut self, what: &str, (pid, tid): Ids, name: &[u8]) {
        let head = format!(
            "{{\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"name\":"
        );
        self.next();
        self.out.bytes().extend_from_slice(head.as_bytes());
        escape::json(name, self.out.bytes());
        self.out.bytes().extend_from_slice(b"}}");
    }

    /// Begins the line of an event.
    fn next(&mut self) {
        let comma: &[u8] = if std::mem::take(&mut self.is_first) {
            b"\n"
        } else {
            b",\n"
        };
        self.out.bytes().extend_from_slice(comma);
    }

    fn pid(&self, session: &Session) -> u32 {
        self.processes
            .get(&session.process)
            .map_or(0, |process| process.pid)
    }

    /// The ids of a row. The first time, they are named.
    #[inline]
    fn ids(&mut self, place: Place) -> Ids {
        match self.latest {
            Some((latest, ids)) if latest == place => ids,
            _ => {
                let ids = self.find_ids(place);
                self.latest = Some((place, ids));
                ids
            }
        }
    }

    fn find_ids(&mut self, place: Place) -> Ids {
        if let Some(ids) = self.rows.get(&place) {
            return *ids;
        }
        let Some(thread) = self.plan.threads.get(&place.thread).copied() else {
            return (0, 0);
        };
        let made = MADE_IDS + self.rows.len() as u32;
        let mut name = thread.name.to_vec();
        let (tid, row) = match place.row {
            Row::Spans(0) if thread.tid != 0 => (thread.tid, ""),
            Row::Spans(0) => (made, ""),
            Row::Spans(_) => (made, ": spans that overlap"),
            Row::Calls(0) => (made, ": functions"),
            Row::Calls(_) => (made, ": functions, deeper"),
            Row::TimedCalls(_) => (made, ": functions, timed"),
        };
        name.extend_from_slice(row.as_bytes());
        let ids = (self.pid(thread.session), tid);
        self.rows.insert(place, ids);
        self.named("thread_name", ids, &name);
        ids
    }

    /// The id of the latest span over threads, and the category of this event.
    fn identified(&self, of: &Event<'_>) -> Vec<u8> {
        let id = format!(",\"id\":{}", self.lasting);
        [id.as_bytes(), &category(of)].concat()
    }

    fn thread(&mut self, thread: u32) -> Ids {
        self.ids(Place {
            thread,
            row: Row::Spans(0),
        })
    }

    /// Appends an event. `more` are further members, each after a comma.
    #[inline]
    fn event(
        &mut self,
        (phase, more): (&str, &[u8]),
        (pid, tid): Ids,
        at_ns: u64,
        name: &[u8],
        args: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<()> {
        let since = at_ns.saturating_sub(self.plan.first_ns());
        let (us, ns) = (since / 1000, since % 1000);
        self.next();
        let out = self.out.bytes();
        out.extend_from_slice(b"{\"ph\":\"");
        out.extend_from_slice(phase.as_bytes());
        out.extend_from_slice(b"\",\"pid\":");
        number::unsigned(pid.into(), out);
        out.extend_from_slice(b",\"tid\":");
        number::unsigned(tid.into(), out);
        out.extend_from_slice(b",\"ts\":");
        number::unsigned(us, out);
        let digits = [ns / 100, ns / 10 % 10, ns % 10].map(|digit| b'0' + digit as u8);
        out.extend_from_slice(&[b'.', digits[0], digits[1], digits[2]]);
        out.extend_from_slice(more);
        if !name.is_empty() {
            out.extend_from_slice(b",\"name\":");
            escape::json(name, out);
        }
        out.extend_from_slice(b",\"args\":{");
        args(out);
        out.extend_from_slice(b"}}");
        self.out.write_if_full()
    }
}

/// `,"cat":"…"`: category or target, and level.
fn category(of: &Event<'_>) -> Vec<u8> {
    let mut out = b",\"cat\":".to_vec();
    let category = if of.category().is_empty() {
        of.target()
    } else {
        of.category()
    };
    let level = of.level().map_or("", |level| level.name());
    let comma: &[u8] = if category.is_empty() || level.is_empty() {
        b""
    } else {
        b","
    };
    escape::json(&[category, comma, level.as_bytes()].concat(), &mut out);
    out
}

fn how_ended(how: Option<Ended>) -> Option<&'static [u8]> {
    match how {
        Some(Ended::Unseen) => Some(b"unseen"),
        Some(Ended::Unwound) => Some(b"unwound"),
        _ => None,
    }
}

impl<'a, W: Write> Viewer<'a> for Chrome<'_, '_, 'a, W> {
    fn begin(&mut self, place: Place, at_ns: u64, of: &Slice<'a>) -> io::Result<()> {
        let ids = self.ids(place);
        self.event(("B", b""), ids, at_ns, of.name(), |out| {
            if let Slice::Call(_, Some(entry)) = of {
                Members::new(out, entry.payload.len()).event(entry);
            }
            if matches!(of, Slice::Call(_, None)) && matches!(place.row, Row::Calls(_)) {
                Members::new(out, 0).text(b"began", b"before what is recorded");
            }
        })
    }

    fn end(
        &mut self,
        place: Place,
        at_ns: u64,
        by: &Event<'a>,
        how: Option<Ended>,
    ) -> io::Result<()> {
        let ids = self.ids(place);
        self.event(("E", b""), ids, at_ns, b"", |out| {
            let mut members = Members::new(out, by.payload.len());
            match how_ended(how) {
                Some(how) => members.text(b"ended", how),
                None => members.event(by),
            }
        })
    }

    fn open(&mut self, place: Place, at_ns: u64, span: &OpenSpan<'a>) -> io::Result<()> {
        let ids = self.ids(place);
        self.event(("B", b""), ids, at_ns, &span.ty.name, |out| {
            Members::new(out, usize::MAX).open(span);
        })
    }

    fn instant(&mut self, of: &Event<'a>) -> io::Result<()> {
        let ids = self.thread(of.thread());
        let is_flow = |field: &ringmark_decoder::Field| field.semantic == Some(semantic::FLOW);
        self.flows += u64::from(of.ty.fields.iter().any(is_flow));
        let mut categories = std::mem::take(&mut self.categories);
        let address = std::ptr::from_ref(of.ty) as usize;
        let more = match of.ty.function.is_some() || of.span_type.is_some() {
            true => &[b",\"s\":\"t\"", &category(of)[..]].concat(),
            false => categories
                .entry(address)
                .or_insert_with(|| [b",\"s\":\"t\"", &category(of)[..]].concat()),
        };
        let written = self.event(("i", more), ids, of.wall_ns(), of.name(), |out| {
            Members::new(out, of.payload.len()).event(of);
        });
        self.categories = categories;
        written
    }

    fn end_only(&mut self, of: &Event<'a>) -> io::Result<()> {
        let ids = self.thread(of.thread());
        self.event(
            ("i", b",\"s\":\"t\""),
            ids,
            of.wall_ns(),
            of.name(),
            |out| {
                Members::new(out, 0).text(b"ended", b"beginning not known");
            },
        )
    }

    fn counter(&mut self, of: &Event<'a>) -> io::Result<()> {
        let mut fields = of.args();
        let value = fields.find(|(field, _)| field.semantic == Some(semantic::COUNTER));
        let Some((field, value)) = value else {
            return self.instant(of);
        };
        let ids = self.thread(of.thread());
        let unit = if field.unit.is_empty() {
            &field.name
        } else {
            &field.unit
        };
        self.event(("C", b""), ids, of.wall_ns(), of.name(), |out| {
            escape::json(unit, out);
            out.push(b':');
            // A number in quotes is no number there.
            match value {
                Value::U64(n) => number::unsigned(n, out),
                Value::I64(n) => number::signed(n, out),
                value => plain(value, out),
            }
        })
    }

    fn lasted(&mut self, lane: &Lane<'a>, span: &Span<'a>) -> io::Result<()> {
        self.lasting += 1;
        let more = self.identified(&span.end);
        let ids = self.thread(lane.thread);
        let name = &lane.ty.name;
        self.event(("b", &more), ids, span.start_wall_ns(), name, |out| {
            Members::new(out, usize::MAX).span(span);
        })?;
        self.event(("e", &more), ids, span.end.wall_ns(), name, |_| {})
    }

    fn lasts(&mut self, lane: &Lane<'a>, of: &Event<'a>) -> io::Result<()> {
        self.lasting += 1;
        let more = self.identified(of);
        let ids = self.thread(lane.thread);
        self.event(("b", &more), ids, of.wall_ns(), &lane.ty.name, |out| {
            Members::new(out, of.payload.len()).event(of);
        })
    }

    fn lost(&mut self, lost: &Lost<'a>, at_ns: u64) -> io::Result<()> {
        let (ids, scope) = match lost.thread() {
            Some(thread) => (self.thread(thread), b",\"s\":\"t\""),
            None => ((self.pid(lost.session), 0), b",\"s\":\"p\""),
        };
        let name = b"events not here";
        self.event(("i", scope), ids, at_ns, name, |out| {
            let mut members = Members::new(out, 0);
            members.number(b"events", lost.loss.count);
            members.text(b"cause", lost.loss.why.cause().as_bytes());
        })?;
        let all = self.lost.entry(ids).or_default();
        *all = all.saturating_add(lost.loss.count);
        let all = *all;
        // Counters are a process's: each thread has one by its id.
        let more = format!(",\"id\":{}", ids.1);
        self.event(("C", more.as_bytes()), ids, at_ns, name, |out| {
            Members::new(out, 0).number(b"events", all);
        })
    }

    fn left_out(&self) -> Vec<(&'static str, u64)> {
        vec![("flows, which are arguments only", self.flows)]
    }

    fn bytes(&self) -> u64 {
        self.out.len()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.bytes().extend_from_slice(b"\n]}\n");
        self.out.finish()
    }
}
