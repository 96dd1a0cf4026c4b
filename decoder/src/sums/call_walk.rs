//! Walks the records of a trace with what each means for the calls of its thread.
//!
//! | record | its steps |
//! | --- | --- |
//! | an entry | one: a call began |
//! | an exit | one for each call that it ends, the innermost first |
//! | an exit of a function that has one record for each call | one: a whole call |
//! | an event, a span, a loss | none |
//!
//! The walk keeps the open calls of each thread and the open spans, and nothing of what it has passed.

use crate::events::event::Output;
use crate::events::filter::Filter;
use crate::events::span_pairs::{Paired, SpanPairs};
use crate::sums::calls::{Calls, Step};
use crate::trace_file::dump::Dump;

impl<'a> Calls<'a> {
    /// Gives `to` each item of `dump` that passes `filter`, in order, with its steps: what it means
    /// for the calls of its thread. Items that are no function records have no steps. The third
    /// argument is the number of calls around the item. A loss that does not pass counts for the
    /// calls all the same.
    pub fn walk(
        &mut self,
        dump: &'a Dump,
        filter: &Filter,
        mut to: impl FnMut(&Output<'a>, &[Step<'a>], usize),
    ) {
        let mut steps = Vec::new();
        let mut pairs = SpanPairs::of_part(dump, filter);
        dump.events().for_each(|item| {
            match (pairs.take(&item), &item) {
                (_, Output::Lost(lost)) => self.lose(lost),
                (Paired::Alone, Output::Event(event)) => _ = pairs.native(event),
                _ => {}
            }
            if !filter.passes_item(&item) {
                return;
            }
            steps.clear();
            let mut depth = 0;
            if let Output::Event(event) = &item {
                depth = self.depth(event);
                self.take_with(&mut pairs, event, |step| steps.push(step));
            }
            to(&item, &steps, depth);
        });
    }
}
