//! Which span each record of a ring belongs to: the spans that its thread is in.

use std::collections::HashMap;

use ringmark_format::RingId;
use ringmark_format::schema::Shape;

use crate::events::event::Event;
use crate::trace_file::finished_spans::finished_id;
use crate::trace_file::schema::EventType;

/// Deepest nesting of entered spans that is followed.
const ENTERED_MAX: usize = 4096;

/// Spans of a session that were made and not closed, by id: their parent and type.
#[derive(Debug, Default)]
pub(crate) struct Spans<'a> {
    open: HashMap<u64, (u64, &'a EventType)>,
}

/// The spans that the thread of a ring is in, the innermost last. A new ring begins with none.
#[derive(Debug, Default)]
pub(super) struct EnteredSpans {
    ring: Option<RingId>,
    entered: Vec<u64>,
}

impl EnteredSpans {
    /// Goes on with a page of this ring.
    pub(super) fn begin_page(&mut self, ring: RingId) {
        if self.ring.replace(ring) != Some(ring) {
            self.entered.clear();
        }
    }

    /// Finds span and parent of an event, and keeps track of the spans that are open. `index`: the
    /// event's number in its page.
    pub(super) fn place<'a>(&mut self, event: &mut Event<'a>, index: u64, spans: &mut Spans<'a>) {
        // The innermost span around the record: one that finished later, or an entered one.
        let finished = Some(event.around).filter(|id| *id != 0);
        let around = finished.or(self.entered.last().copied());
        if event.ty.function.is_some() {
            event.span = around;
            return;
        }
        let number = |field: Option<usize>| {
            let field = event.ty.fields.get(field?)?;
            field.number(&event.payload).filter(|id| *id != 0)
        };
        let (own, parent) = (number(event.ty.span_id), number(event.ty.parent_id));
        match event.ty.shape {
            Some(Shape::Span) => {
                let id = finished_id(event.ty, &event.payload, event.page, index);
                event.span = Some(id);
                event.parent = parent.or(around);
                return;
            }
            Some(shape) if shape.is_part_of_span() => {}
            _ => {
                event.span = own.or(around);
                event.parent = parent;
                return;
            }
        }
        let Some(id) = own else { return };
        event.span = Some(id);
        if event.ty.shape == Some(Shape::SpanNew) {
            event.parent = parent.or(around);
            spans.open.insert(id, (event.parent.unwrap_or(0), event.ty));
            return;
        }
        let known = spans.open.get(&id);
        event.span_type = known.map(|(_, ty)| *ty);
        event.parent = parent.or(known.map(|(p, _)| *p).filter(|p| *p != 0));
        self.follow(event.ty.shape, id, spans);
    }

    /// Keeps track of what is entered in this ring. A span may be left in another order than it
    /// was entered.
    fn follow(&mut self, shape: Option<Shape>, id: u64, spans: &mut Spans<'_>) {
        match shape {
            Some(Shape::SpanEnter) if self.entered.len() < ENTERED_MAX => self.entered.push(id),
            Some(Shape::SpanExit) => {
                if let Some(place) = self.entered.iter().rposition(|e| *e == id) {
                    self.entered.remove(place);
                }
            }
            Some(Shape::SpanClose) => {
                spans.open.remove(&id);
            }
            _ => {}
        }
    }
}
