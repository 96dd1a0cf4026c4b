//! Writes the packets.

use std::collections::HashMap;
use std::io::{self, Write};

use ringmark_decoder::{
    Ended, Event, EventType, Field, Function, Lost, OpenSpan, Session, SmallKeys, Span, ThreadDoes,
    ThreadState, Value, WaitText, escape,
};
use ringmark_format::schema::semantic;

use super::args;
use super::cpus::Cpus;
use super::fields::{annotation, clocks, event, packet, task};
use super::front::About;
use super::names::{NameOf, Names};
use super::proto::{Message, Smalls};
use super::sequence::{Ids, MONOTONIC, Namer, REALTIME, Sequence};
use super::tracks::Tracks;
use crate::gathered::Gathered;
use crate::timeline::items::NO_THREAD;
use crate::timeline::plan::Plan;
use crate::timeline::processes::printable;
use crate::timeline::viewer::{Lane, Place, Row, Slice, Viewer};

/// The sequence of what belongs to no thread.
const COMMON: u64 = 1;

/// A trace that is being written.
pub(crate) struct Perfetto<'w, W> {
    out: Gathered<'w, W>,
    common: Sequence,
    tracks: Tracks,
    names: Names,
    /// One for each row, so that its packets need not name its track.
    sequences: Vec<(Place, Sequence)>,
    /// Place in `sequences`, by row; and that of the latest event.
    rows: SmallKeys<Place, usize>,
    latest: usize,
    /// Events that are not there, by thread and by process.
    lost: HashMap<(u32, usize), u64>,
    cpus: Cpus,
    /// What a thread did last, as far as it is written.
    did: Option<Did>,
    /// Times of threads on processors that Perfetto has no numbers for.
    unnumbered: u64,
    /// Memory for the fields of one event.
    fields: Vec<u8>,
    /// Small packets that come after all of `out`.
    smalls: Smalls,
}

/// What a thread did up to a time.
#[derive(Debug, Clone, Copy)]
struct Did {
    tid: u32,
    cpu: u32,
    to_ns: u64,
    /// Whether it ended then.
    is_last: bool,
}

/// What an event is made of.
struct Parts<'p> {
    namer: Namer<'p>,
    tracks: &'p mut Tracks,
    /// Its fields but for the first ones: see [`About`].
    fields: &'p mut Vec<u8>,
    /// Where a new track is described.
    out: &'p mut Vec<u8>,
}

/// The row of a thread itself.
const fn own_row(thread: u32) -> Place {
    Place {
        thread,
        row: Row::Spans(0),
    }
}

impl<'w, W: Write> Perfetto<'w, W> {
    /// Begins with the clocks, the processes and the threads.
    pub(crate) fn new(plan: &Plan<'_>, out: &'w mut W) -> Self {
        let mut out = Gathered::new(out);
        let mut common = Sequence::new(COMMON, 0);
        let clock = plan.dump.sessions.first().map(|session| &session.clock);
        let real = clock.map_or(0, |clock| clock.real_zero_ns);
        let mono = clock.map_or(0, |clock| clock.mono_zero_ns);
        common.timeless(out.bytes(), |packet| {
            packet.message(packet::CLOCK_SNAPSHOT, |snapshot| {
                for (id, at_ns) in [(REALTIME, real), (MONOTONIC, mono)] {
                    snapshot.message(clocks::CLOCK, |clock| {
                        clock.number(clocks::ID, id);
                        clock.number(clocks::TIMESTAMP, at_ns);
                    });
                }
                snapshot.number(clocks::PRIMARY, REALTIME);
            });
        });
        let tracks = Tracks::new(plan, &mut common, out.bytes());
        Self {
            out,
            common,
            tracks,
            names: Names::default(),
            sequences: Vec::new(),
            rows: SmallKeys::default(),
            latest: 0,
            lost: HashMap::new(),
            cpus: Cpus::new(plan.dump),
            did: None,
            unnumbered: 0,
            fields: Vec::new(),
            smalls: Smalls::default(),
        }
    }

    /// Appends an event of a row.
    #[inline]
    fn event(
        &mut self,
        place: Place,
        at_ns: u64,
        make: impl FnOnce(&mut Parts<'_>) -> About,
    ) -> io::Result<()> {
        if place.thread != NO_THREAD {
            self.turn_to(place);
        }
        self.smalls.move_to(self.out.bytes());
        let (tracks, names, out) = (&mut self.tracks, &mut self.names, self.out.bytes());
        let sequence = match self.sequences.get_mut(self.latest) {
            Some((_, sequence)) if place.thread != NO_THREAD => sequence,
            _ => &mut self.common,
        };
        self.fields.clear();
        let about = make(&mut Parts {
            namer: Namer {
                sequence: &mut *sequence,
                names,
            },
            tracks,
            fields: &mut self.fields,
            out,
        });
        sequence.event(&self.names, at_ns, (&about.front(), &self.fields), out);
        self.out.write_if_full()
    }

    /// Appends the beginning of a native span, or its end with its record. `None`, and nothing is
    /// appended: its packet is no small one.
    // Inlined, the place is not put together to be taken apart.
    #[inline(always)]
    fn small(
        &mut self,
        place: Place,
        at_ns: u64,
        ty: &EventType,
        end: Option<&Event<'_>>,
    ) -> Option<()> {
        if place.thread == NO_THREAD {
            return None;
        }
        self.turn_to(place);
        let names = self.names.of_type(ty);
        let (_, sequence) = self.sequences.get_mut(self.latest)?;
        let packet = &mut self.smalls;
        sequence.begin_small(names, at_ns, packet)?;
        let names = Ids(names);
        match end {
            None => {
                packet.number(event::TYPE, event::SLICE_BEGIN);
                packet.number(event::NAME_IID, names.event());
            }
            Some(by) => {
                packet.number(event::TYPE, event::SLICE_END);
                args::of_small(by, names, packet)?;
            }
        }
        sequence.end_small(packet, at_ns)
    }

    /// Appends what a thread does from a time on.
    fn put_state(&mut self, at_ns: u64, (tid, cpu): (u32, u32), state: u64) -> io::Result<()> {
        self.smalls.move_to(self.out.bytes());
        let out = self.out.bytes();
        self.common.packet(&self.names, at_ns, out, |packet| {
            packet.message(packet::TASK_STATE, |new| {
                new.number(task::CPU, cpu.into());
                new.number(task::TID, tid.into());
                new.number(task::STATE, state);
            });
        });
        self.out.write_if_full()
    }

    /// Appends what a thread waited for, as a slice of a row of its own.
    fn put_wait(
        &mut self,
        thread: u32,
        state: &ThreadState<'_>,
        text: WaitText<'_>,
    ) -> io::Result<()> {
        let place = Place {
            thread,
            row: Row::Waits,
        };
        self.event(place, state.from_ns, |parts| {
            let functions: Vec<_> = text.functions().map(printable).collect();
            if !functions.is_empty() {
                parts.word(b"in", &functions.join(&b" < "[..]));
            }
            About::begin(parts.namer.name(NameOf::Event, &printable(text.what)), None)
        })?;
        self.event(place, state.to_ns, |_| About::end(None))
    }

    /// Ends what is known of a thread. Perfetto has no state for what is not known, and Ringmark none that is
    /// called stopped.
    fn end_states(&mut self, did: Did) -> io::Result<()> {
        let state = match did.is_last {
            true => task::DESTROYED,
            false => task::STOPPED,
        };
        self.put_state(did.to_ns, (did.tid, did.cpu), state)
    }

    /// Makes room for the next small packet.
    #[inline]
    fn move_if_full(&mut self) -> io::Result<()> {
        if !self.smalls.is_full() {
            return Ok(());
        }
        self.smalls.move_to(self.out.bytes());
        self.out.write_if_full()
    }

    /// Makes the sequence of a row the latest one.
    #[inline(always)]
    fn turn_to(&mut self, place: Place) {
        let latest = self.sequences.get(self.latest);
        if latest.is_none_or(|(row, _)| *row != place) {
            self.latest = self.look_for(place);
        }
    }

    #[cold]
    fn look_for(&mut self, place: Place) -> usize {
        match self.rows.get(&place) {
            Some(number) => *number,
            None => self.add_row(place),
        }
    }

    fn add_row(&mut self, place: Place) -> usize {
        let number = self.sequences.len();
        let out = self.out.bytes();
        let track = self.tracks.row(place, &mut self.common, out);
        let sequence = Sequence::new(COMMON + 1 + number as u64, track);
        self.sequences.push((place, sequence));
        self.rows.insert(place, number);
        number
    }
}

/// The value of a counter: a double where an integer does not hold it. `None`: it is no number.
fn put_value(value: Value<'_>, event: &mut Message<'_>) -> Option<()> {
    let double = match value {
        Value::U64(n) => match i64::try_from(n) {
            Ok(n) => {
                event.signed(event::COUNTER_VALUE, n);
                return Some(());
            }
            Err(_) => n as f64,
        },
        Value::I64(n) => {
            event.signed(event::COUNTER_VALUE, n);
            return Some(());
        }
        Value::U128(n) => n as f64,
        Value::I128(n) => n as f64,
        Value::F32(n) => n.into(),
        Value::F64(n) => n,
        Value::Bool(b) => f64::from(u8::from(b)),
        _ => return None,
    };
    event.double(event::DOUBLE_COUNTER_VALUE, double);
    Some(())
}

impl Parts<'_> {
    /// The name of a type, its arguments, its categories if wanted.
    #[inline]
    fn typed(&mut self, of: &Event<'_>, with_categories: bool) -> u64 {
        let names = self.namer.of_type(of.ty);
        let mut message = Message(self.fields);
        if with_categories {
            for category in names.categories() {
                message.number(event::CATEGORY_IID, category);
            }
        }
        args::of_event(of, names, &mut message);
        names.event()
    }

    /// The name and the fields of an instant; a name that is a message is a field.
    fn instant(&mut self, of: &Event<'_>) -> Option<u64> {
        if of.ty.function.is_some() {
            args::of_call(of, &mut self.namer, self.fields);
            return Some(self.namer.name(NameOf::Event, of.name()));
        }
        if let Some((name, digits)) = args::raw(of, &mut self.namer) {
            args::annotation(name, &mut Message(self.fields), |a| {
                a.text(annotation::STRING, &digits);
            });
            return Some(self.namer.name(NameOf::Event, of.name()));
        }
        let name = self.typed(of, true);
        if let Some(flow) = args::flow(of) {
            Message(self.fields).fixed(event::FLOW_ID, flow);
        }
        let Some(message) = of.message().filter(|message| !message.is_empty()) else {
            return Some(name);
        };
        Message(self.fields).message(event::NAME, |shown| escape::text(message, shown.0));
        None
    }

    /// An argument of ours.
    fn word(&mut self, name: &[u8], word: &[u8]) {
        let name = self.namer.name(NameOf::Argument, name);
        args::annotation(name, &mut Message(self.fields), |a| {
            a.text(annotation::STRING, word);
        });
    }
}

fn address_of(function: &Function) -> usize {
    std::ptr::from_ref(function) as usize
}

impl<'a, W: Write> Viewer<'a> for Perfetto<'_, W> {
    #[inline]
    fn begin(&mut self, place: Place, at_ns: u64, of: &Slice<'a>) -> io::Result<()> {
        if let Slice::Span(ty) = of
            && self.small(place, at_ns, ty, None).is_some()
        {
            return self.move_if_full();
        }
        self.event(place, at_ns, |parts| {
            let name = match of {
                Slice::Span(ty) => parts.namer.of_type(ty).event(),
                Slice::Call(function, entry) => {
                    match entry {
                        Some(entry) => args::of_call(entry, &mut parts.namer, parts.fields),
                        None if matches!(place.row, Row::Calls(_)) => {
                            parts.word(b"began", b"before what is recorded");
                        }
                        None => {}
                    }
                    parts.namer.name_at(address_of(function), &function.name)
                }
            };
            About::begin(name, None)
        })
    }

    #[inline]
    fn end(
        &mut self,
        place: Place,
        at_ns: u64,
        by: &Event<'a>,
        how: Option<Ended>,
    ) -> io::Result<()> {
        if how.is_none() && self.small(place, at_ns, by.ty, Some(by)).is_some() {
            return self.move_if_full();
        }
        self.event(place, at_ns, |parts| {
            match how {
                None => {
                    let _ = parts.typed(by, false);
                }
                // The record is that of another call.
                Some(Ended::Unseen) => parts.word(b"ended", b"unseen"),
                Some(Ended::Unwound) => parts.word(b"ended", b"unwound"),
                Some(Ended::Returned) => args::of_call(by, &mut parts.namer, parts.fields),
            }
            About::end(None)
        })
    }

    fn open(&mut self, place: Place, at_ns: u64, span: &OpenSpan<'a>) -> io::Result<()> {
        self.event(place, at_ns, |parts| {
            args::of_open(span, &mut parts.namer, parts.fields);
            About::begin(parts.namer.name(NameOf::Event, &span.ty.name), None)
        })
    }

    fn instant(&mut self, of: &Event<'a>) -> io::Result<()> {
        self.event(own_row(of.thread()), of.wall_ns(), |parts| {
            About::instant(parts.instant(of), None)
        })
    }

    fn end_only(&mut self, of: &Event<'a>) -> io::Result<()> {
        let place = Place {
            row: Row::Calls(0),
            ..own_row(of.thread())
        };
        self.event(place, of.wall_ns(), |parts| {
            parts.word(b"began", b"not known");
            About::instant(parts.instant(of), None)
        })
    }

    fn counter(&mut self, of: &Event<'a>) -> io::Result<()> {
        let is_value = |(field, _): &(&Field, Value<'_>)| field.semantic == Some(semantic::COUNTER);
        let Some((field, value)) = of.args().find(is_value) else {
            return self.instant(of);
        };
        self.event(own_row(of.thread()), of.wall_ns(), |parts| {
            let about = (of.ty.name.as_slice(), field.unit.as_slice());
            if put_value(value, &mut Message(parts.fields)).is_none() {
                return About::instant(parts.instant(of), None);
            }
            let track = parts
                .tracks
                .counter(of.session, about, parts.namer.sequence, parts.out);
            About::counter(track)
        })
    }

    fn lasted(&mut self, lane: &Lane<'a>, span: &Span<'a>) -> io::Result<()> {
        let place = own_row(NO_THREAD);
        let mut own = None;
        self.event(place, span.start_wall_ns(), |parts| {
            let about = (lane.ty.name.as_slice(), lane.number);
            let track = parts
                .tracks
                .lasting(lane.session, about, parts.namer.sequence, parts.out);
            own = Some(track);
            let names = parts.namer.of_type(lane.ty);
            for category in names.categories() {
                Message(parts.fields).number(event::CATEGORY_IID, category);
            }
            let name = names.event();
            args::of_span(span, &mut parts.namer, parts.fields);
            About::begin(name, own)
        })?;
        self.event(place, span.end.wall_ns(), |_| About::end(own))
    }

    fn lasts(&mut self, lane: &Lane<'a>, of: &Event<'a>) -> io::Result<()> {
        self.event(own_row(NO_THREAD), of.wall_ns(), |parts| {
            let about = (lane.ty.name.as_slice(), lane.number);
            let track = parts
                .tracks
                .lasting(lane.session, about, parts.namer.sequence, parts.out);
            About::begin(parts.typed(of, true), Some(track))
        })
    }

    fn lost(&mut self, lost: &Lost<'a>, at_ns: u64) -> io::Result<()> {
        let thread = lost.thread().unwrap_or(NO_THREAD);
        let of_thread = self
            .sequences
            .iter_mut()
            .filter(|(place, _)| place.thread == thread);
        of_thread.for_each(|(_, sequence)| sequence.cut());
        let all = self.lost.entry((thread, lost.session.process)).or_default();
        *all = all.saturating_add(lost.loss.count);
        let all = *all;
        let place = own_row(thread);
        self.event(place, at_ns, |parts| {
            let count = parts.namer.name(NameOf::Argument, b"events");
            args::annotation(count, &mut Message(parts.fields), |a| {
                a.number(annotation::UINT, lost.loss.count);
            });
            parts.word(b"cause", lost.loss.why.cause().as_bytes());
            let name = parts.namer.name(NameOf::Event, b"events not here");
            let process = parts.tracks.of_process(lost.session);
            About::instant(Some(name), (thread == NO_THREAD).then_some(process))
        })?;
        self.event(place, at_ns, |parts| {
            let _ = put_value(Value::U64(all), &mut Message(parts.fields));
            let thread = lost.thread();
            About::counter(
                parts
                    .tracks
                    .lost(lost.session, thread, parts.namer.sequence, parts.out),
            )
        })
    }

    fn state(&mut self, thread: (u32, &'a Session), state: &ThreadState<'_>) -> io::Result<()> {
        let (number, session) = thread;
        let Some(tid) = self.tracks.tid(number) else {
            return Ok(());
        };
        let Some(cpu) = self.cpus.number(session, number, state.cpu) else {
            self.unnumbered += 1;
            return Ok(());
        };
        let goes_on = |did: &Did| did.tid == tid && did.to_ns == state.from_ns;
        if let Some(did) = self.did.take().filter(|did| !goes_on(did)) {
            self.end_states(did)?;
        }
        let does = match state.does {
            ThreadDoes::Runs => task::RUNNING,
            ThreadDoes::Ready => task::RUNNABLE,
            ThreadDoes::Waits => task::SLEEPS,
        };
        self.put_state(state.from_ns, (tid, cpu), does)?;
        if let Some(text) = state.waits_for {
            self.put_wait(number, state, text)?;
        }
        self.did = Some(Did {
            tid,
            cpu,
            to_ns: state.to_ns,
            is_last: state.is_last,
        });
        Ok(())
    }

    fn left_out(&self) -> Vec<(&'static str, u64)> {
        vec![(
            "times of threads on processors beyond the 4096 that Perfetto reads",
            self.unnumbered,
        )]
    }

    fn bytes(&self) -> u64 {
        self.out.len() + self.smalls.len() as u64
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(did) = self.did.take() {
            self.end_states(did)?;
        }
        self.smalls.move_to(self.out.bytes());
        self.out.finish()
    }
}
