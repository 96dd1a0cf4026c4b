//! Which span each record of a ring belongs to: the spans that its thread is in.

use std::collections::HashMap;

use ringmark_format::RingId;
use ringmark_format::schema::{NO_SPAN, Shape};

use crate::blocks::page::Page;
use crate::trace_file::finished_spans::{UNKNOWN, finished_id};
use crate::trace_file::schema::EventType;

/// Deepest nesting of entered spans that is followed.
const ENTERED_MAX: usize = 4096;

/// Spans of a session that were made and not closed, by id: their parent and type.
#[derive(Debug, Default)]
pub(crate) struct Spans<'a> {
    open: HashMap<u64, (u64, &'a EventType)>,
}

/// A record that is placed in spans.
pub(super) struct RecordAt<'a, 'p> {
    pub ty: &'a EventType,
    pub payload: &'p [u8],
    pub page: &'a Page,
    /// Its number in the page.
    pub index: u64,
}

/// The spans of an event: see the fields of [`Event`](crate::Event) with these names.
#[derive(Debug, Default)]
pub(super) struct InSpans<'a> {
    pub span: Option<u64>,
    pub parent: Option<u64>,
    pub span_type: Option<&'a EventType>,
}

impl InSpans<'_> {
    pub(super) const fn inside(span: Option<u64>, parent: Option<u64>) -> Self {
        Self {
            span,
            parent,
            span_type: None,
        }
    }
}

/// The span that a record names in the field at this place; `None`: none.
#[inline]
pub(super) fn id_in(ty: &EventType, payload: &[u8], place: Option<u16>) -> Option<u64> {
    let field = ty.fields.get(usize::from(place?))?;
    field.number(payload).filter(|id| *id != 0)
}

/// The span that a record names, or that it is not in any; where it names none, that around it.
fn or_around(named: Option<u64>, around: Option<u64>) -> Option<u64> {
    match named {
        Some(NO_SPAN) => None,
        named => named.or(around),
    }
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

    /// Finds the spans of an event, and keeps track of those that are open. `around`: id of the
    /// innermost finished span around it; 0: there is none; [`UNKNOWN`]: it is not known.
    #[inline]
    pub(super) fn place<'a>(
        &mut self,
        event: &RecordAt<'a, '_>,
        around: u64,
        spans: &mut Spans<'a>,
    ) -> InSpans<'a> {
        // The innermost span around the record: one that finished later, or an entered one.
        let around = match around {
            0 => self.entered.last().copied(),
            UNKNOWN => None,
            finished => Some(finished),
        };
        match event.ty.function {
            Some(_) => InSpans::inside(around, None),
            None => self.place_event(event, around, spans),
        }
    }

    fn place_event<'a>(
        &mut self,
        event: &RecordAt<'a, '_>,
        around: Option<u64>,
        spans: &mut Spans<'a>,
    ) -> InSpans<'a> {
        let RecordAt { ty, payload, .. } = *event;
        let own = id_in(ty, payload, ty.span_id);
        let parent = id_in(ty, payload, ty.parent_id);
        match ty.shape {
            Some(Shape::Span) => {
                let id = finished_id(ty, payload, event.page, event.index);
                return InSpans::inside(Some(id), or_around(parent, around));
            }
            Some(shape) if shape.is_part_of_span() => {}
            _ => return InSpans::inside(or_around(own, around), or_around(parent, None)),
        }
        let Some(id) = own else {
            return InSpans::default();
        };
        if ty.shape == Some(Shape::SpanNew) {
            let parent = or_around(parent, around);
            spans.open.insert(id, (parent.unwrap_or(0), ty));
            return InSpans::inside(own, parent);
        }
        let known = spans.open.get(&id).copied();
        self.follow(ty.shape, id, spans);
        InSpans {
            span: own,
            parent: parent.or(known.map(|(p, _)| p).filter(|p| *p != 0)),
            span_type: known.map(|(_, ty)| ty),
        }
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
