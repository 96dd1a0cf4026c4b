//! Events and losses as JSON, one object per line. `format-spec/JSON.md` describes the objects.

use ringmark_format::schema::{Level, Shape};

use crate::blocks::page::Page;
use crate::events::event::{Event, Lost, Output};
use crate::events::span::Span;
use crate::show::json_args::{self, ArgKeys, NO_IDS};
use crate::show::json_keys::{head, id, key, known, number, text, times, wall_ns};
use crate::show::shared::{PerSession, PerType};
use crate::trace_file::schema::EventType;
use crate::trace_file::session::Session;
use crate::trace_file::thread_times::ThreadTimes;
use crate::words::escape;
use crate::words::number::unsigned;
use crate::words::timestamp::Stamper;

/// What all lines of a session share.
#[derive(Debug)]
struct SessionPieces {
    /// What [`head`] writes.
    head: Vec<u8>,
    types: PerType<TypePieces>,
}

/// What all lines of a type share, escaped.
#[derive(Debug)]
struct TypePieces {
    /// What [`push_names`] writes.
    names: Vec<u8>,
    args: ArgKeys,
    /// What stands at the end of an event's line.
    tail: &'static [u8],
}

/// What a span has that is not entered and left, after its other keys.
const NOT_ENTERED: &[u8] = b",\"busy_ns\":null,\"idle_ns\":null,\"polls\":null,\"whole\":null}\n";

/// What a thread did, where no switches were recorded.
const NO_STATES: &[u8] = b",\"running_ns\":null,\"ready_ns\":null,\"throttled_ns\":null,\"waiting_ns\":null,\"waits\":null,\"preemptions\":null";

impl SessionPieces {
    #[cold]
    fn new(session: &Session) -> Self {
        let mut pieces = Vec::new();
        head(session, &mut pieces);
        Self {
            head: pieces,
            types: PerType::default(),
        }
    }
}

impl TypePieces {
    #[cold]
    fn new(ty: &EventType) -> Self {
        let mut names = Vec::new();
        push_names(ty, (&ty.name, &ty.origin.target), ty.level, &mut names);
        Self {
            names,
            args: ArgKeys::new(ty),
            tail: match ty.shape {
                Some(Shape::Span) => NOT_ENTERED,
                _ => b"}\n",
            },
        }
    }
}

/// Appends `,"kind":…,"name":…,"target":…,"category":…,"level":…`.
fn push_names(ty: &EventType, names: (&[u8], &[u8]), level: Option<Level>, out: &mut Vec<u8>) {
    push_names_of(ty.kind(), ty, names, level, out);
}

/// The same for an object of this kind.
pub(super) fn push_names_of(
    kind: &str,
    ty: &EventType,
    (name, target): (&[u8], &[u8]),
    level: Option<Level>,
    out: &mut Vec<u8>,
) {
    key("kind", out);
    escape::json(kind.as_bytes(), out);
    key("name", out);
    text(name, out);
    key("target", out);
    text(target, out);
    key("category", out);
    text(&ty.origin.category, out);
    key("level", out);
    text(level.map_or("", Level::name).as_bytes(), out);
}

/// Writes items as JSON lines.
///
/// Lines share most of their text: the front per page, the names per event type. Both are made
/// once and kept.
#[derive(Debug, Default)]
pub struct JsonWriter<'a> {
    stamper: Stamper,
    page: Option<&'a Page>,
    /// `{"v":…,"thread":…,"seq":` of that page.
    front: Vec<u8>,
    exact: Vec<u8>,
    sessions: PerSession<'a, SessionPieces>,
}

impl<'a> JsonWriter<'a> {
    /// A writer that has written nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the line of `item`, with its line feed, to `out`.
    #[inline]
    pub fn write(&mut self, item: &Output<'a>, out: &mut Vec<u8>) {
        match item {
            Output::Event(event) => self.event(event, out),
            Output::Lost(lost) => self.lost(lost, out),
        }
    }

    /// Appends the line of `event`, with its line feed.
    #[inline]
    pub fn event(&mut self, event: &Event<'a>, out: &mut Vec<u8>) {
        if !self.page.is_some_and(|page| std::ptr::eq(page, event.page)) {
            self.begin_page(event.session, event.page);
        }
        out.extend_from_slice(&self.front);
        unsigned(event.seq, out);
        let wall = wall_ns(event.session, event.wall_ns());
        times(&mut self.stamper, wall, event.t_ns, out);
        out.extend_from_slice(b",\"dur_ns\":");
        number(event.duration_ns(), out);
        // A name of a function may be long, and its types are many: nothing of them is kept.
        let pieces = event.ty.function.is_none().then(|| {
            let session = self.sessions.of(event.session, SessionPieces::new);
            session.types.of(event.ty, TypePieces::new)
        });
        match (event.span_type, pieces) {
            (None, Some(pieces)) => out.extend_from_slice(&pieces.names),
            _ => {
                let names = (event.name(), event.target());
                push_names(event.ty, names, event.level(), out);
            }
        }
        out.extend_from_slice(b",\"span\":");
        id(event.span, out);
        out.extend_from_slice(b",\"parent\":");
        id(event.parent, out);
        let keys = pieces.map(|pieces| &pieces.args);
        match keys {
            Some(keys) => keys.ids(event.ty, &event.payload, out),
            None => out.extend_from_slice(NO_IDS),
        }
        json_args::write(event, keys, &mut self.exact, out);
        if event.ty.shape == Some(Shape::Span) {
            did(event.session, event.did(), out);
        }
        out.extend_from_slice(pieces.map_or(b"}\n", |pieces| pieces.tail));
    }

    /// Appends the line of a span that has ended, or of a call, with its line feed.
    pub fn span(&mut self, span: &Span<'a>, out: &mut Vec<u8>) {
        let end = &span.end;
        if !self.page.is_some_and(|page| std::ptr::eq(page, end.page)) {
            self.begin_page(end.session, end.page);
        }
        out.extend_from_slice(&self.front);
        unsigned(end.seq, out);
        let wall = wall_ns(end.session, end.wall_ns());
        times(&mut self.stamper, wall, end.t_ns, out);
        out.extend_from_slice(b",\"dur_ns\":");
        number(span.took_ns(), out);
        let names = (span.name, span.target);
        push_names_of("span", span.ty, names, span.ty.level, out);
        out.extend_from_slice(b",\"span\":");
        id(span.id, out);
        out.extend_from_slice(b",\"parent\":");
        id(span.parent, out);
        json_args::write_span(span, &mut self.exact, out);
        did(end.session, span.times, out);
        let Some(entered) = &span.entered else {
            return out.extend_from_slice(NOT_ENTERED);
        };
        for (name, figure) in [
            ("busy_ns", entered.busy_ns),
            ("idle_ns", entered.idle_ns),
            ("polls", entered.polls),
        ] {
            key(name, out);
            unsigned(figure, out);
        }
        key("whole", out);
        out.extend_from_slice(if entered.is_whole { b"true" } else { b"false" });
        out.extend_from_slice(b"}\n");
    }

    #[inline(never)]
    fn begin_page(&mut self, session: &'a Session, page: &'a Page) {
        self.page = Some(page);
        self.front.clear();
        let pieces = self.sessions.of(session, SessionPieces::new);
        self.front.extend_from_slice(&pieces.head);
        thread(Some(page.ring.0), session, Some(page), &mut self.front);
        key("seq", &mut self.front);
    }

    fn lost(&mut self, lost: &Lost<'a>, out: &mut Vec<u8>) {
        let session = lost.session;
        let pieces = self.sessions.of(session, SessionPieces::new);
        out.extend_from_slice(&pieces.head);
        thread(lost.ring.map(|ring| ring.0), session, lost.page, out);
        out.extend_from_slice(b",\"seq\":null");
        let wall = wall_ns(session, session.clock.wall_ns(lost.t_ns));
        times(&mut self.stamper, wall, lost.t_ns, out);
        out.extend_from_slice(b",\"dur_ns\":null,\"kind\":\"lost\",\"name\":null,\"target\":null");
        out.extend_from_slice(b",\"category\":null,\"level\":null,\"span\":null,\"parent\":null");
        out.extend_from_slice(NO_IDS);
        out.extend_from_slice(b",\"args\":{},\"exact\":null,\"count\":");
        unsigned(lost.loss.count, out);
        key("cause", out);
        escape::json(lost.loss.why.cause().as_bytes(), out);
        out.extend_from_slice(b"}\n");
    }
}

/// Appends what a thread did, as far as that is known.
pub(super) fn did(session: &Session, times: Option<ThreadTimes>, out: &mut Vec<u8>) {
    if !session.has_switches() {
        return out.extend_from_slice(NO_STATES);
    }
    for (name, figure) in [
        ("running_ns", times.map(|did| did.running_ns)),
        ("ready_ns", times.map(|did| did.ready_ns)),
        ("throttled_ns", times.map(|did| did.throttled_ns)),
        ("waiting_ns", times.map(|did| did.waiting_ns)),
        ("waits", times.map(|did| did.waits)),
        ("preemptions", times.map(|did| did.preemptions)),
    ] {
        key(name, out);
        number(figure, out);
    }
}

/// The name of the thread that wrote a page, or else that of its process.
fn thread_name<'a>(session: &'a Session, page: &'a Page) -> &'a [u8] {
    match page.thread_name() {
        [] => session.process_name(),
        name => name,
    }
}

/// Appends `,"ring":…,"tid":…,"thread":…`: what wrote an event.
pub(crate) fn thread(ring: Option<u64>, session: &Session, page: Option<&Page>, out: &mut Vec<u8>) {
    key("ring", out);
    number(ring, out);
    key("tid", out);
    known(page.map_or(0, |page| page.header.tid), out);
    key("thread", out);
    text(page.map_or(&[], |page| thread_name(session, page)), out);
}
