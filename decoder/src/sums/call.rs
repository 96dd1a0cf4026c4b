//! A call of a function: one that is open, one that has ended.
//!
//! What is known of a call comes from two records, of its entry and of its exit, or from one of them:
//!
//! - Without the entry, the beginning is not known, nor what was around the call.
//! - Without the exit, the end is that of the call around it, and the call has ended
//!   [unseen](Ended::Unseen).
//! - A record that stands for a whole call has both times.

use crate::blocks::page::Page;
use crate::events::event::Event;
use crate::events::payload::FewBytes;
use crate::events::span::Span;
use crate::trace_file::functions::{Function, FunctionUse};
use crate::trace_file::session::Session;
use crate::trace_file::thread_times::ThreadTimes;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ended {
    /// It returned.
    Returned,
    /// It was unwound by an exception, a `longjmp` or the end of its thread.
    Unwound,
    /// Not known: its exit was lost, or no record was written.
    Unseen,
}

/// A call that has ended.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    /// The session that recorded it.
    pub session: &'a Session,
    /// The function that was called.
    pub function: &'a Function,
    /// Id of the function in the session.
    pub id: u32,
    /// Time of its entry, in ns since the session's start; `None`: before the first record.
    pub entered_ns: Option<u64>,
    /// Tick of its entry; `None`: before the first record.
    pub entered_tick: Option<u64>,
    /// Time at which it was left, in ns since the session's start.
    pub left_ns: u64,
    /// Time in calls of traced functions, spans and waits inside it, in ns.
    pub children_ns: u64,
    /// Number of open calls around it.
    pub depth: u32,
    /// Whether a call of the same function is open further out, for certain.
    pub recursive: bool,
    /// Whether records of its thread were lost while it was open.
    pub unsure: bool,
    /// Whether not all that was in it is here: it began before the window of its page, or records of its
    /// thread were lost while it was open.
    pub(crate) is_cut: bool,
    /// How it ended.
    pub ended: Ended,
    /// What the record of its entry means, and its payload; `None`: it has none here.
    pub(crate) entry: Option<(&'a FunctionUse, FewBytes)>,
    /// Slot and tick of entry of the call around it, of a call on another stack.
    pub(super) around: Option<(u64, u64)>,
}

impl<'a> Call<'a> {
    /// Whether it was on a stack that is not its thread's own.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        self.entry
            .as_ref()
            .is_some_and(|(meaning, _)| meaning.has_slot)
    }

    /// File name of the function's module, or empty.
    #[must_use]
    pub fn target(&self) -> &'a [u8] {
        module_name(self.session, self.function)
    }

    /// The call as a span; `None`: its entry is not known, or its end is lost. `end`: the event at which it was left,
    /// which may be the exit of a call around it.
    #[must_use]
    pub fn as_span(&self, end: &Event<'a>) -> Option<Span<'a>> {
        if self.unsure && self.ended == Ended::Unseen {
            return None;
        }
        let total_ns = self.duration_ns()?;
        let exit = end.ty.function.as_ref();
        let exit = exit.filter(|_| self.ended != Ended::Unseen);
        Some(Span {
            end: end.clone(),
            ty: end.ty,
            name: &self.function.name,
            target: self.target(),
            id: None,
            parent: None,
            start_ns: self.entered_ns?,
            total_ns,
            entered: None,
            self_ns: self.self_ns(),
            times: self.thread_times(end),
            is_inner: self.recursive,
            tids: Vec::new(),
            seen: Vec::new(),
            words: [
                self.entry.clone(),
                exit.map(|meaning| (meaning, FewBytes::of(&end.payload))),
            ],
            parts: Vec::new(),
        })
    }

    /// Number of calls around it; `None`: one record describes it, and calls around it come later or have none.
    #[must_use]
    pub fn known_depth(&self) -> Option<u32> {
        let is_one_record = self.entry.is_none() && self.entered_ns.is_some();
        (!is_one_record).then_some(self.depth)
    }

    /// Its duration in ns; `None`: its entry is not known.
    #[must_use]
    pub fn duration_ns(&self) -> Option<u64> {
        Some(self.left_ns.saturating_sub(self.entered_ns?))
    }

    /// What its thread did in it; `None`: it is not known. `end`: the event at which it was left.
    #[must_use]
    pub fn thread_times(&self, end: &Event<'a>) -> Option<ThreadTimes> {
        let took_ns = self.took_ns().filter(|_| !self.is_elsewhere())?;
        let is_its_end = self.left_ns == end.t_ns;
        end.thread_times(took_ns).filter(|_| is_its_end)
    }

    /// Its duration in ns; `None`, too, if its session has no times.
    #[must_use]
    pub fn took_ns(&self) -> Option<u64> {
        self.duration_ns().filter(|_| self.session.has_times())
    }

    /// Its duration without the calls, spans and waits inside it, in ns; `None`: its entry is not known, or
    /// not all that was in it is here: it began before the recorded window, or records were lost since.
    #[must_use]
    pub fn self_ns(&self) -> Option<u64> {
        let duration_ns = self.duration_ns().filter(|_| !self.is_cut)?;
        Some(duration_ns.saturating_sub(self.children_ns))
    }
}

/// A call that has begun and not ended.
#[derive(Debug, Clone)]
pub struct OpenCall<'a> {
    /// The session that recorded its entry.
    pub session: &'a Session,
    /// The function that was called.
    pub function: &'a Function,
    /// Id of the function in the session.
    pub id: u32,
    /// Time of its entry, in ns since the session's start.
    pub entered_ns: u64,
    /// Tick of its entry.
    pub entered_tick: u64,
    /// Time in ended calls on its stack inside it, in ns, if that is not its thread's own.
    pub(super) children_ns: u64,
    /// Whether records of its thread were lost since: it may have ended.
    pub unsure: bool,
    /// Whether not all that was in it is here.
    pub(super) is_cut: bool,
    /// Whether a call of the same function was open further out, for certain, when it began.
    pub(super) recursive: bool,
    /// The page of the record of its entry.
    pub(crate) page: &'a Page,
    /// What the record of its entry means, and its payload.
    pub(crate) entry: (&'a FunctionUse, FewBytes),
}

impl<'a> OpenCall<'a> {
    #[inline]
    pub(super) fn begun(
        event: &Event<'a>,
        function: &'a Function,
        meaning: &'a FunctionUse,
    ) -> Self {
        Self {
            session: event.session,
            function,
            id: meaning.function,
            entered_ns: event.t_ns,
            entered_tick: event.tick,
            children_ns: 0,
            unsure: false,
            is_cut: event.tick < event.page.from,
            recursive: false,
            page: event.page,
            entry: (meaning, FewBytes::of(&event.payload)),
        }
    }

    /// Id of the thread that entered it.
    #[must_use]
    pub fn tid(&self) -> u32 {
        self.page.header.tid
    }

    /// File name of the function's module, or empty.
    #[must_use]
    pub fn target(&self) -> &[u8] {
        module_name(self.session, self.function)
    }

    /// Whether it is a call of the function with this id in this session.
    pub(super) fn is_of(&self, session: &Session, id: u32) -> bool {
        self.id == id && std::ptr::eq(self.session, session)
    }
}

/// File name of a function's module, or empty.
pub(super) fn module_name<'a>(session: &'a Session, function: &Function) -> &'a [u8] {
    let module = session.schema.functions().module(function.module);
    module.map_or(&[], |module| module.file_name())
}

/// How the call ended whose exit means this.
pub(super) fn ended(meaning: &FunctionUse) -> Ended {
    match meaning.loose {
        true => Ended::Unwound,
        false => Ended::Returned,
    }
}

/// A call of which `event` is the only record: it was entered before the first.
pub(super) fn without_entry<'a>(
    event: &Event<'a>,
    (function, id): (&'a Function, u32),
    ended: Ended,
    depth: u32,
) -> Call<'a> {
    Call {
        session: event.session,
        function,
        id,
        entered_ns: None,
        entered_tick: None,
        left_ns: event.t_ns,
        children_ns: 0,
        depth,
        recursive: false,
        unsure: false,
        is_cut: false,
        ended,
        entry: None,
        around: None,
    }
}
