//! Functions that a budget switched off while they were traced.

use std::collections::BTreeSet;

use crate::events::event::Output;
use crate::trace_file::dump::Dump;
use crate::trace_file::value::Value;

/// The event by which a function tracer says so.
const NAME: &[u8] = b"function_switched_off";
/// Begins the target of what the function tracer itself emits.
const TARGET: &[u8] = b"ringmark_function_tracer";

fn is_event(name: &[u8], target: &[u8]) -> bool {
    name == NAME && target.starts_with(TARGET)
}

impl Dump {
    /// How many functions were switched off for their cost: their later calls are not here, and not counted.
    pub(crate) fn functions_switched_off(&self) -> u64 {
        let mut types = self.sessions.iter().flat_map(|s| s.schema.types());
        if !types.any(|ty| ty.occurs && is_event(&ty.name, &ty.origin.target)) {
            return 0;
        }
        let mut found = BTreeSet::new();
        self.events().for_each(|item| {
            if let Output::Event(event) = item
                && is_event(&event.ty.name, &event.ty.origin.target)
                && let Some((_, Value::Str(function))) = event.args().next()
            {
                found.insert((event.session.uuid.0, function.to_vec()));
            }
        });
        found.len() as u64
    }
}
