//! What neighbouring lines share: made for the first line of a session or of an event type, and
//! kept by the writer.

use crate::trace_file::schema::EventType;
use crate::trace_file::session::Session;
use crate::words::escape;
use crate::words::number::unsigned;

/// A value per session.
#[derive(Debug)]
pub(super) struct PerSession<'a, T> {
    /// By [`Session::number`].
    made: Vec<Option<(&'a Session, T)>>,
}

impl<T> Default for PerSession<'_, T> {
    fn default() -> Self {
        Self { made: Vec::new() }
    }
}

impl<'a, T> PerSession<'a, T> {
    /// The value of `session`, made by `make` on first use.
    #[inline]
    pub(super) fn of(&mut self, session: &'a Session, make: impl FnOnce(&Session) -> T) -> &mut T {
        let place = place(&mut self.made, session.number);
        // A writer may get sessions of several dumps: their numbers alone do not tell them apart.
        if let Some((known, _)) = place
            && !std::ptr::eq(*known, session)
        {
            *place = None;
        }
        let (_, value) = place.get_or_insert_with(|| (session, make(session)));
        value
    }
}

/// A value per event type of one session.
#[derive(Debug)]
pub(super) struct PerType<T> {
    /// By [`EventType::number`].
    made: Vec<Option<Box<T>>>,
}

impl<T> Default for PerType<T> {
    fn default() -> Self {
        Self { made: Vec::new() }
    }
}

impl<T> PerType<T> {
    /// The value of `ty`, made by `make` on first use.
    #[inline]
    pub(super) fn of(&mut self, ty: &EventType, make: impl FnOnce(&EventType) -> T) -> &T {
        let place = place(&mut self.made, ty.number as usize);
        place.get_or_insert_with(|| Box::new(make(ty)))
    }
}

/// The place with this number; there are as many as the largest number that was asked for.
#[inline]
fn place<T>(made: &mut Vec<Option<T>>, number: usize) -> &mut Option<T> {
    if made.len() <= number {
        grow(made, number);
    }
    &mut made[number]
}

#[cold]
#[inline(never)]
fn grow<T>(made: &mut Vec<Option<T>>, number: usize) {
    made.resize_with(number + 1, || None);
}

/// ` (file:line)`, or nothing if the file is not known.
pub(super) fn place_in_source(ty: &EventType) -> Vec<u8> {
    let mut text = Vec::new();
    if !ty.origin.file.is_empty() {
        text.extend_from_slice(b" (");
        escape::text(&ty.origin.file, &mut text);
        text.push(b':');
        unsigned(ty.line.into(), &mut text);
        text.push(b')');
    }
    text
}

impl Session {
    /// Its process among those of several hosts, as text for a person: `HOST/SERVICE[PID]`. A host
    /// that is not known is `-`; a process without a service has its own name in place of it.
    #[must_use]
    pub fn process_label(&self) -> String {
        let mut label = Vec::new();
        push_process(self, &mut label);
        String::from_utf8_lossy(label.trim_ascii_start()).into_owned()
    }
}

/// Appends ` HOST/SERVICE[PID]`. A host that is not known is `-`; a process without a service has its
/// own name in place of it.
pub(crate) fn push_process(session: &Session, out: &mut Vec<u8>) {
    let host = match session.host() {
        [] => b"-",
        host => host,
    };
    let service = match session.service() {
        [] => session.process_name(),
        service => service,
    };
    out.push(b' ');
    escape::text(host, out);
    out.push(b'/');
    escape::text(service, out);
    out.push(b'[');
    unsigned(session.pid().into(), out);
    out.push(b']');
}
