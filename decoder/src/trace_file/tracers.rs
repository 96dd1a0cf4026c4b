//! The function tracers of all sessions, by name.

use std::collections::BTreeSet;

use crate::trace_file::dump::Dump;
use crate::trace_file::session::Session;

impl Dump {
    /// Whether any session describes function records.
    #[must_use]
    pub fn has_functions(&self) -> bool {
        let mut types = self.sessions.iter().flat_map(|s| s.schema.types());
        types.any(|ty| ty.function.is_some())
    }

    /// The names of all function tracers, each once, in order.
    #[must_use]
    pub fn tracer_names(&self) -> BTreeSet<&[u8]> {
        let sessions = self.sessions.iter();
        let all = sessions.flat_map(|s| s.schema.functions().tracers());
        all.map(|(_, tracer)| tracer.name.as_slice()).collect()
    }

    /// The bits of the function tracers with this name, for each session in order; see
    /// [`Calls::new`](crate::Calls::new). `None`: no session has one.
    #[must_use]
    pub fn tracers_named(&self, name: &[u8]) -> Option<Vec<u64>> {
        let all: Vec<u64> = self.sessions.iter().map(|s| bits(s, name)).collect();
        all.iter().any(|bits| *bits != 0).then_some(all)
    }
}

fn bits(session: &Session, name: &[u8]) -> u64 {
    let tracers = session.schema.functions().tracers();
    let named = tracers.filter(|(_, tracer)| tracer.name == name);
    named.fold(0, |bits, (number, _)| {
        bits | 1_u64.checked_shl(number).unwrap_or(0)
    })
}
