//! Spans over threads: put together from their records in the order of time, over all rings.

use std::collections::HashMap;
use std::io;

use ringmark_decoder::{Event, EventType, Output, Page, Paired, Session, SpanPairs};
use ringmark_format::schema::Shape;

use crate::timeline::items::Cut;
use crate::timeline::lanes::SingleLanes;
use crate::timeline::plan::Plan;
use crate::timeline::viewer::{Lane, Viewer};

/// A span that has not ended: where the record is that made it, and its lane. The rest is held by
/// [`SpanPairs`]: there may be very many.
#[derive(Debug, Clone, Copy)]
struct Open<'a> {
    page: &'a Page,
    /// Number of the record in its page.
    number: u32,
    lane: u32,
}

/// Those of a session, by their ids.
struct OfSession<'a> {
    session: &'a Session,
    open: HashMap<u64, Open<'a>>,
}

/// The spans over threads of a plan, and what was shown of them.
pub(super) struct Lives<'p, 'a> {
    cut: &'p Cut,
    pairs: SpanPairs,
    /// By the address of the session, which stays where it is.
    open: HashMap<usize, OfSession<'a>>,
    lanes: HashMap<(usize, &'a [u8]), SingleLanes>,
    /// Spans that were shown.
    pub(super) shown: u64,
    /// Spans whose beginning is not in the trace.
    pub(super) no_start: u64,
    /// Spans that are not known, because too many were open at one time.
    pub(super) unknown: u64,
}

impl<'p, 'a> Lives<'p, 'a> {
    /// Shows all spans over threads of a plan: those that end in the order of their ends, then the others
    /// in the order of their beginnings.
    pub(super) fn show(plan: &'p Plan<'a>, viewer: &mut impl Viewer<'a>) -> io::Result<Self> {
        let mut lives = Self {
            cut: &plan.cut,
            pairs: SpanPairs::new(plan.dump),
            open: HashMap::new(),
            lanes: HashMap::new(),
            shown: 0,
            no_start: 0,
            unknown: 0,
        };
        if plan.has_lives {
            let mut events = match viewer.asks_parents() {
                true => plan.dump.events_alone(),
                false => plan.dump.events_of_lives(),
            };
            events.try_for_each(|output| lives.take(&output, viewer))?;
            lives.show_open(viewer)?;
        }
        Ok(lives)
    }

    fn take(&mut self, output: &Output<'a>, viewer: &mut impl Viewer<'a>) -> io::Result<()> {
        let paired = self.pairs.take(output);
        let Output::Event(event) = output else {
            return Ok(());
        };
        let Some(id) = event.span else { return Ok(()) };
        match (event.ty.shape, paired) {
            (Some(Shape::SpanNew), _) => self.open(event, id),
            (_, Paired::Ended(span)) => {
                let open = self.of_session(event.session).open.remove(&id);
                let Some(open) = open else { return Ok(()) };
                self.lanes(event.session, span.ty).give_back(open.lane);
                let is_long = span.total_ns >= self.cut.min_ns;
                if is_long && self.cut.filter.passes_span(&span) {
                    self.shown += 1;
                    let lane = lane((event, span.ty), open.lane);
                    return viewer.lasted(&lane, &span);
                }
            }
            (Some(Shape::SpanClose), _) => self.no_start += 1,
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, event: &Event<'a>, id: u64) {
        let lane = self.lanes(event.session, event.ty).take();
        let number = event.seq.wrapping_sub(event.page.header.first_event);
        let made = Open {
            page: event.page,
            number: number as u32,
            lane,
        };
        self.of_session(event.session).open.insert(id, made);
    }

    /// The lanes for spans that this type makes.
    fn lanes(&mut self, session: &Session, ty: &'a EventType) -> &mut SingleLanes {
        let key = (session.process, ty.name.as_slice());
        self.lanes.entry(key).or_default()
    }

    fn of_session(&mut self, session: &'a Session) -> &mut OfSession<'a> {
        let address = std::ptr::from_ref(session) as usize;
        self.open.entry(address).or_insert_with(|| OfSession {
            session,
            open: HashMap::new(),
        })
    }

    /// Shows the spans that have no end.
    fn show_open(&mut self, viewer: &mut impl Viewer<'a>) -> io::Result<()> {
        let mut all = Vec::new();
        for (address, of) in &self.open {
            for id in of.open.keys() {
                match self.pairs.made(of.session, *id) {
                    Some((_, tick, _)) => all.push((wall_ns(of.session, tick), *id, *address)),
                    None => self.unknown += 1,
                }
            }
        }
        all.sort_unstable();
        for (_, id, address) in all {
            let of = &self.open[&address];
            let (Some(made), Some(at)) = (self.pairs.made(of.session, id), of.open.get(&id)) else {
                continue;
            };
            let made = Event::remade((of.session, at.page, at.number), made, id);
            if self.cut.filter.passes(&made) {
                self.shown += 1;
                viewer.lasts(&lane((&made, made.ty), at.lane), &made)?;
            }
        }
        Ok(())
    }
}

/// The lane of a span of this type, with this record of it.
fn lane<'a>((event, ty): (&Event<'a>, &'a EventType), number: u32) -> Lane<'a> {
    Lane {
        session: event.session,
        ty,
        number,
        thread: event.thread(),
    }
}

fn wall_ns(session: &Session, tick: u64) -> u64 {
    let clock = &session.clock;
    clock.wall_of(tick, clock.t_ns(tick))
}
