//! Keeps what the timeline gives by track and row, and writes the page in the end.

use std::collections::BTreeMap;
use std::io::{self, Write};

use ringmark_decoder::{
    Ended, Event, FunctionWords, Lost, OpenSpan, Session, SmallKeys, Span, ThreadState, Why,
    escape, event_words, span_args, unplaced_notice,
};
use ringmark_format::schema::semantic;

use super::about::About;
use super::entered::Entered;
use super::meta::{Key, Meta};
use super::rows::{Kind, Loss, Slice as Shown, Track, does, flag};
use super::{packed, page};
use crate::texts::Texts;
use crate::timeline::plan::Plan;
use crate::timeline::processes::{Process, printable, processes};
use crate::timeline::viewer::{Lane, Place, Row, Slice, Viewer};

/// Why a thread that could run did not.
const THROTTLED: &[u8] = b"the limit of its control group";

/// A page that is being made.
pub(crate) struct Html<'w, 'p, 'a, W> {
    plan: &'p Plan<'a>,
    about: &'p About,
    out: &'w mut W,
    written: u64,
    processes: BTreeMap<usize, Process>,
    tracks: BTreeMap<Key, Track>,
    names: Texts,
    args: Texts,
    losses: Vec<Loss>,
    /// What threads did, by their numbers.
    states: BTreeMap<u32, Vec<Shown>>,
    /// The latest time of which something is known, by thread.
    seen: SmallKeys<u32, u64>,
    last_ns: u64,
    text: Vec<u8>,
    unplaced: u64,
    entered: Entered,
}

impl<'w, 'p, 'a, W: Write> Html<'w, 'p, 'a, W> {
    pub(crate) fn new(plan: &'p Plan<'a>, about: &'p About, out: &'w mut W) -> Self {
        Self {
            plan,
            about,
            out,
            written: 0,
            processes: processes(plan.dump),
            tracks: BTreeMap::new(),
            names: Texts::default(),
            args: Texts::default(),
            losses: Vec::new(),
            states: BTreeMap::new(),
            seen: SmallKeys::default(),
            last_ns: plan.first_ns(),
            text: Vec::new(),
            unplaced: 0,
            entered: Entered::default(),
        }
    }

    fn see(&mut self, thread: u32, at_ns: u64) {
        let seen = self.seen.entry(thread).or_insert(at_ns);
        *seen = at_ns.max(*seen);
        self.last_ns = self.last_ns.max(at_ns);
    }

    /// The track of a row. Rows of calls are one stack, however deep it is.
    fn track(&mut self, place: Place) -> &mut Track {
        let kind = match place.row {
            Row::Spans(number) => Kind::Spans(number),
            Row::Calls(_) => Kind::Calls,
            Row::TimedCalls(number) => Kind::TimedCalls(number),
            // What threads did has rows of its own.
            Row::Waits => Kind::Events,
        };
        self.of_thread(place.thread, kind)
    }

    fn of_thread(&mut self, thread: u32, kind: Kind) -> &mut Track {
        let known = self.plan.threads.get(&thread);
        let process = known.map_or(0, |known| known.session.process);
        let key = (process, Some(thread), kind, Vec::new());
        self.tracks.entry(key).or_default()
    }

    fn of_lane(&mut self, lane: &Lane<'a>) -> &mut Track {
        let key = (
            lane.session.process,
            None,
            Kind::Lasting,
            lane.ty.name.clone(),
        );
        self.tracks.entry(key).or_default()
    }

    fn name(&mut self, name: &[u8]) -> u32 {
        self.names.number(&printable(name))
    }

    /// The number of the text that was made; `None`: it is empty.
    fn take_text(&mut self) -> Option<u32> {
        let text = std::mem::take(&mut self.text);
        let trimmed = text.trim_ascii_start();
        let number = (!trimmed.is_empty()).then(|| self.args.number(trimmed));
        self.text = text;
        self.text.clear();
        number
    }

    /// The track of the values of a counter; `None`: the event has no value.
    fn of_counter(&mut self, of: &Event<'a>) -> Option<&mut Track> {
        let mut fields = of.args().map(|(field, _)| field);
        let field = fields.find(|field| field.semantic == Some(semantic::COUNTER))?;
        let process = self.plan.threads.get(&of.thread());
        let process = process.map_or(0, |known| known.session.process);
        let name = of.ty.name.clone();
        let key = (process, Some(of.thread()), Kind::Counter, name);
        let track = self.tracks.entry(key).or_default();
        if track.value.is_empty() {
            track.value = printable(&field.name);
            track.unit = printable(&field.unit);
        }
        Some(track)
    }

    fn put_event(&mut self, of: &Event<'a>, name: &[u8]) {
        let slice = self.event_slice(of, name);
        self.of_thread(of.thread(), Kind::Events).put(0, slice);
    }

    fn event_slice(&mut self, of: &Event<'a>, name: &[u8]) -> Shown {
        let (name, args) = (self.names.number(name), self.take_text());
        let at_ns = of.wall_ns();
        self.see(of.thread(), at_ns);
        Shown {
            start: at_ns,
            end: at_ns,
            name,
            args,
            flags: 0,
            life: None,
            around: None,
        }
    }

    /// What a record of a call says, as ` key=value …`.
    fn call_words(&mut self, of: &Event<'a>) {
        let Some(meaning) = of.ty.function else {
            return;
        };
        let words = FunctionWords::read(meaning, &of.payload);
        for (place, value) in words.arguments().enumerate() {
            self.text
                .extend_from_slice(format!(" arg{}={value}", place + 1).as_bytes());
        }
        if let Some(result) = words.result {
            self.text
                .extend_from_slice(format!(" result={result}").as_bytes());
        }
    }

    /// The texts of the arguments of what began and of what ends it, as one.
    fn join(&mut self, begun: Option<u32>) -> Option<u32> {
        let Some(begun) = begun else {
            return self.take_text();
        };
        let end = std::mem::take(&mut self.text);
        self.text = self.args.get(begun as usize).unwrap_or_default().to_vec();
        self.text.extend_from_slice(&end);
        self.take_text()
    }

    /// Shows the times in which threads were in spans over threads, and what was around those.
    fn put_entered(&mut self) {
        let last_ns = self.last_ns;
        for (thread, depth, slice) in self.entered.finish(last_ns) {
            self.of_thread(thread, Kind::Entered).put(depth, slice);
        }
        let tracks = self.tracks.iter_mut();
        let lasting = tracks.filter(|(key, _)| key.2 == Kind::Lasting);
        for slice in lasting.flat_map(|(_, track)| &mut track.rows).flatten() {
            slice.around = slice.life.and_then(|life| self.entered.around(life));
        }
    }

    /// A loss that nothing comes after lasts to the end: nothing is known of the thread any more.
    fn close_losses(&mut self) {
        for loss in &mut self.losses {
            let seen = loss.thread.and_then(|thread| self.seen.get(&thread));
            let is_last = seen.is_none_or(|seen| *seen <= loss.to);
            if is_last && loss.cause != Why::Overwritten.cause() {
                loss.to = self.last_ns.max(loss.to);
            }
        }
    }
}

/// What the words of an event do not have: its level and target.
fn front(of: &Event<'_>, out: &mut Vec<u8>) {
    if let Some(level) = of.level() {
        out.extend_from_slice(level.name().as_bytes());
        out.push(b' ');
    }
    if !of.target().is_empty() {
        escape::text(of.target(), out);
        out.push(b':');
    }
}

impl<'a, W: Write> Viewer<'a> for Html<'_, '_, 'a, W> {
    fn begin(&mut self, place: Place, at_ns: u64, of: &Slice<'a>) -> io::Result<()> {
        // The record of a span is written when it ends: before, nothing was known of its beginning.
        match of {
            Slice::Call(_, Some(_)) => self.see(place.thread, at_ns),
            _ => self.last_ns = at_ns.max(self.last_ns),
        }
        let is_before = matches!(of, Slice::Call(_, None)) && matches!(place.row, Row::Calls(_));
        if let Slice::Call(_, Some(entry)) = of {
            self.call_words(entry);
        }
        let slice = Shown {
            start: at_ns,
            end: at_ns,
            name: self.name(of.name()),
            args: self.take_text(),
            flags: if is_before { flag::BEFORE } else { 0 },
            life: None,
            around: None,
        };
        self.track(place).begin(slice);
        Ok(())
    }

    fn end(
        &mut self,
        place: Place,
        at_ns: u64,
        by: &Event<'a>,
        how: Option<Ended>,
    ) -> io::Result<()> {
        self.see(place.thread, at_ns);
        let track = self.track(place);
        let Some(mut slice) = track.end() else {
            return Ok(());
        };
        let row = track.depth();
        match how {
            Some(Ended::Unseen) => self.text.extend_from_slice(b" ended=unseen"),
            Some(Ended::Unwound) => self.text.extend_from_slice(b" ended=unwound"),
            Some(_) => self.call_words(by),
            None => {
                if let Some(span) = Span::of_event(by) {
                    span_args(&span, &mut self.text);
                }
            }
        }
        slice.args = self.join(slice.args);
        slice.end = at_ns;
        self.track(place).put(row, slice);
        Ok(())
    }

    fn open(&mut self, place: Place, at_ns: u64, span: &OpenSpan<'a>) -> io::Result<()> {
        self.see(place.thread, at_ns);
        span.text_args(&mut self.text);
        let slice = Shown {
            start: at_ns,
            end: at_ns,
            name: self.name(&span.ty.name),
            args: self.take_text(),
            flags: flag::OPEN,
            life: None,
            around: None,
        };
        self.track(place).begin(slice);
        Ok(())
    }

    fn instant(&mut self, of: &Event<'a>) -> io::Result<()> {
        let (name, values) = event_words(of);
        front(of, &mut self.text);
        self.text.extend_from_slice(&values);
        self.put_event(of, &name);
        Ok(())
    }

    fn end_only(&mut self, of: &Event<'a>) -> io::Result<()> {
        self.text.extend_from_slice(b" ended; beginning not known");
        let name = printable(of.name());
        self.put_event(of, &name);
        Ok(())
    }

    fn counter(&mut self, of: &Event<'a>) -> io::Result<()> {
        let (name, values) = event_words(of);
        front(of, &mut self.text);
        self.text.extend_from_slice(&values);
        let slice = self.event_slice(of, &name);
        match self.of_counter(of) {
            Some(track) => track.put(0, slice),
            None => self.of_thread(of.thread(), Kind::Events).put(0, slice),
        }
        Ok(())
    }

    fn part(&mut self, of: &Event<'a>) -> io::Result<()> {
        self.see(of.thread(), of.wall_ns());
        self.entered.part(of);
        Ok(())
    }

    fn lasted(&mut self, lane: &Lane<'a>, span: &Span<'a>) -> io::Result<()> {
        span_args(span, &mut self.text);
        if let Some(entered) = &span.entered {
            let words = format!(" busy={}ns polls={}", entered.busy_ns, entered.polls);
            self.text.extend_from_slice(words.as_bytes());
        }
        self.see(lane.thread, span.end.wall_ns());
        let (start, end) = (span.start_wall_ns(), span.end.wall_ns());
        let name = self.name(&lane.ty.name);
        let ids = (lane.session.process, span.id, span.parent);
        let slice = Shown {
            start,
            end,
            name,
            args: self.take_text(),
            flags: 0,
            life: Some(self.entered.life(ids, (start, end), name)),
            around: None,
        };
        self.of_lane(lane).put(lane.number as usize, slice);
        Ok(())
    }

    fn lasts(&mut self, lane: &Lane<'a>, of: &Event<'a>) -> io::Result<()> {
        let (_, values) = event_words(of);
        self.text.extend_from_slice(&values);
        let (start, end) = (of.wall_ns(), self.last_ns.max(of.wall_ns()));
        let name = self.name(&lane.ty.name);
        let ids = (lane.session.process, of.span, of.parent);
        let slice = Shown {
            start,
            end,
            name,
            args: self.take_text(),
            flags: flag::OPEN,
            life: Some(self.entered.life(ids, (start, end), name)),
            around: None,
        };
        self.of_lane(lane).put(lane.number as usize, slice);
        Ok(())
    }

    fn lost(&mut self, lost: &Lost<'a>, at_ns: u64) -> io::Result<()> {
        let thread = lost.thread();
        let seen = thread.and_then(|thread| self.seen.get(&thread).copied());
        let from = seen.unwrap_or_else(|| lost.session.clock.wall_ns(0));
        self.last_ns = self.last_ns.max(at_ns);
        self.losses.push(Loss {
            process: lost.session.process,
            thread,
            from: from.clamp(self.plan.first_ns().min(at_ns), at_ns),
            to: at_ns,
            events: lost.loss.count,
            cause: lost.loss.why.cause(),
        });
        Ok(())
    }

    fn state(&mut self, thread: (u32, &'a Session), state: &ThreadState<'_>) -> io::Result<()> {
        let (first_ns, last_ns) = (self.plan.first_ns(), self.plan.last_ns());
        let (start, end) = (state.from_ns.max(first_ns), state.to_ns.min(last_ns));
        if start < end {
            if let Some(text) = state.waits_for {
                escape::text(text.what, &mut self.text);
                for (place, function) in text.functions().enumerate() {
                    let before: &[u8] = if place == 0 { b", in " } else { b" < " };
                    self.text.extend_from_slice(before);
                    escape::text(function, &mut self.text);
                }
            }
            if state.is_throttled {
                self.text.extend_from_slice(THROTTLED);
            }
            let args = self.take_text();
            self.states.entry(thread.0).or_default().push(Shown {
                start,
                end,
                name: does::number(state.does),
                args,
                flags: 0,
                life: None,
                around: None,
            });
        }
        Ok(())
    }

    fn asks_parents(&self) -> bool {
        true
    }

    fn unplaced(&mut self, slices: u64) {
        self.unplaced = slices;
    }

    fn bytes(&self) -> u64 {
        self.written
    }

    fn finish(&mut self) -> io::Result<()> {
        if !self.plan.cut.filter.has_time() {
            self.last_ns = self.last_ns.max(self.plan.last_ns());
        }
        self.close_losses();
        let last_ns = self.last_ns;
        self.put_entered();
        self.tracks
            .values_mut()
            .for_each(|track| track.finish(last_ns));
        let mut sections = Vec::new();
        let meta = Meta {
            about: self.about,
            unplaced: unplaced_notice(self.unplaced, &self.unplaced.to_string()),
            processes: &self.processes,
            threads: &self.plan.threads,
            tracks: &self.tracks,
            states: &self.states,
            losses: &self.losses,
            names: &self.names,
            first_ns: self.plan.first_ns().min(last_ns),
            last_ns,
        };
        packed::section(&meta.to_json(), &mut sections);
        let (mut rows, mut met) = (Vec::new(), 0);
        let places = self.entered.places(&self.tracks);
        for (key, track) in &self.tracks {
            for row in &track.rows {
                let row = (&row[..], key.2.has_links());
                packed::row(row, self.plan.first_ns(), &places, &mut met, &mut rows);
            }
        }
        for states in self.states.values() {
            let row = (&states[..], false);
            packed::row(row, self.plan.first_ns(), &places, &mut met, &mut rows);
        }
        packed::section(&rows, &mut sections);
        let mut texts = Vec::new();
        packed::texts(&self.args, &mut texts);
        let (data, texts) = (packed::as_text(&sections), packed::as_text(&texts));
        self.written = page::write(&data, &texts, self.out)?;
        Ok(())
    }
}
