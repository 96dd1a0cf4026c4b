//! Sums number and time of the calls of each function.

use std::collections::HashMap;

use crate::sums::call_figures::CallTimes;
use crate::sums::calls::{Call, Ended, module_name};
use crate::sums::durations::Durations;
use crate::trace_file::functions::Function;
use crate::trace_file::session::Session;
use crate::trace_file::thread_times::ThreadTimes;

/// The calls of one function, over all sessions and threads. Times are in ns.
#[derive(Debug, Clone, Default)]
pub struct FunctionTimes {
    /// Name of the function, demangled.
    pub name: Vec<u8>,
    /// File name of its module.
    pub module: Vec<u8>,
    /// Number of calls.
    pub calls: u64,
    /// Calls that were unwound, or left without a record; part of `calls`.
    pub not_returned: u64,
    /// Calls that began before the first record; part of `calls`.
    pub no_start: u64,
    /// Calls without a record of their end; part of `calls`.
    pub no_end: u64,
    /// Calls whose tracers record entries only (kind `function`); part of `no_end`.
    pub entries_only: u64,
    /// Time in it and in what it called, in ns. Calls inside a call of the same function are not
    /// counted again.
    pub total_ns: u64,
    /// Time in it without the traced functions that it called, in ns: of the calls in `durations` but
    /// `unknown_self`.
    pub self_ns: u64,
    /// Calls in `durations` that began before the recorded window, or during which records were lost, so
    /// that their own time is not known.
    pub unknown_self: u64,
    /// What their threads did in `total_ns`, as far as it is known.
    pub thread_times: ThreadTimes,
    /// Calls in `durations` of which it is not known what their threads did.
    pub unknown_times: u64,
    /// Durations of the calls whose beginning is known.
    pub durations: Durations,
}

impl FunctionTimes {
    fn add(&mut self, call: &Call<'_>, did: Option<ThreadTimes>) {
        self.calls += 1;
        self.not_returned += u64::from(call.ended != Ended::Returned);
        if call.unsure && call.ended == Ended::Unseen {
            // Its end was lost, and what ended it here came later.
            self.no_end += 1;
            return;
        }
        let Some(ns) = call.duration_ns() else {
            self.no_start += 1;
            return;
        };
        if !call.session.has_times() {
            return;
        }
        self.durations.add(ns);
        match call.self_ns() {
            Some(ns) => self.self_ns = self.self_ns.saturating_add(ns),
            None => self.unknown_self += 1,
        }
        self.unknown_times += u64::from(did.is_none());
        if !call.recursive {
            self.total_ns = self.total_ns.saturating_add(ns);
            self.thread_times = self.thread_times.and(did.unwrap_or_default());
        }
    }

    /// Whether the duration of any call is known; if none is, all times are 0.
    #[must_use]
    pub const fn is_timed(&self) -> bool {
        self.durations.count() > 0
    }

    /// Time in it without the traced functions that it called, in ns; `None`: of no call it is known.
    #[must_use]
    pub fn own_ns(&self) -> Option<u64> {
        (self.unknown_self < self.durations.count()).then_some(self.self_ns)
    }

    /// What their threads did; `None`: of no call it is known.
    #[must_use]
    pub fn did(&self) -> Option<ThreadTimes> {
        (self.unknown_times < self.durations.count()).then_some(self.thread_times)
    }

    /// The times of its calls; `None`: no duration is known.
    #[must_use]
    pub fn times(&self) -> Option<CallTimes> {
        CallTimes::of(&self.durations, self.total_ns, self.self_ns)
    }
}

/// Why a call has no record of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoEnd {
    /// Its tracers record entries only: they are of kind `function`.
    EntriesOnly,
    /// It is still open, or its end could not be recorded.
    NotSeen,
}

/// Collects the times of all functions of a dump, call by call. One function in several sessions, with the
/// same name and module, is one row.
#[derive(Debug, Default)]
pub struct Profile {
    functions: Vec<FunctionTimes>,
    /// By module and name: a function may be in several sessions.
    places: HashMap<(Vec<u8>, Vec<u8>), usize>,
    /// By number of the session and place of the function in it: what every call is looked up by.
    known: Vec<Vec<Option<usize>>>,
}

impl Profile {
    /// Adds a call that ended in this session. `did`: what its thread did in it, if that is known.
    pub fn add(&mut self, session: &Session, call: &Call<'_>, did: Option<ThreadTimes>) {
        self.of(session, call.function).add(call, did);
    }

    /// Adds a call without a record of its end.
    pub fn add_endless(&mut self, session: &Session, function: &Function, why: NoEnd) {
        let times = self.of(session, function);
        times.calls += 1;
        times.no_end += 1;
        times.entries_only += u64::from(why == NoEnd::EntriesOnly);
    }

    #[inline]
    fn of(&mut self, session: &Session, function: &Function) -> &mut FunctionTimes {
        let of_session = self.known.get(session.number);
        let known = of_session.and_then(|places| places.get(function.place).copied().flatten());
        let place = known.unwrap_or_else(|| self.place(session, function));
        &mut self.functions[place]
    }

    fn place(&mut self, session: &Session, function: &Function) -> usize {
        let module = module_name(session, function);
        let key = (module.to_vec(), function.name.clone());
        let place = *self.places.entry(key).or_insert_with_key(|(module, name)| {
            self.functions.push(FunctionTimes {
                name: name.clone(),
                module: module.clone(),
                ..FunctionTimes::default()
            });
            self.functions.len() - 1
        });
        if self.known.len() <= session.number {
            self.known.resize_with(session.number + 1, Vec::new);
        }
        let of_session = &mut self.known[session.number];
        if of_session.len() <= function.place {
            of_session.resize(function.place + 1, None);
        }
        of_session[function.place] = Some(place);
        place
    }

    /// The functions, those with the most time of their own first.
    #[must_use]
    pub fn finish(mut self) -> Vec<FunctionTimes> {
        self.functions
            .sort_by(|a, b| (b.self_ns, b.calls, &a.name).cmp(&(a.self_ns, a.calls, &b.name)));
        self.functions
    }
}
