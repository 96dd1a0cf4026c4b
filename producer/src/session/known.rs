//! The event types of the program's call sites, each once.

use core::ptr;
use std::collections::BinaryHeap;

use crate::description::{Description, EventType, Field};
use crate::sites;

/// An event type with its fields.
pub(super) struct Known {
    event: EventType,
    fields: Vec<Field>,
    fixed_bytes: u32,
}

/// What all call sites say. Inlining copies sites; generic code gives one site several layouts.
///
/// A type's place is found in a sorted list: the instructions of a heap are a fraction of those of a
/// map, and each traced program carries them.
pub(super) fn types() -> Vec<Known> {
    let mut states = BinaryHeap::new();
    sites::for_each(|description| states.push(ptr::from_ref(description.event.state)));
    let mut states = states.into_sorted_vec();
    states.dedup();
    let mut places = vec![None::<usize>; states.len()];
    let mut all: Vec<Known> = Vec::new();
    sites::for_each(|description| {
        let state = ptr::from_ref(description.event.state);
        let place = states.binary_search(&state).ok();
        let Some(place) = place.and_then(|place| places.get_mut(place)) else {
            return;
        };
        match *place {
            Some(at) => all[at].merge(&description),
            None => {
                *place = Some(all.len());
                all.push(Known::new(&description));
            }
        }
    });
    all
}

impl Known {
    fn new(description: &Description<'_>) -> Self {
        Self {
            event: description.event,
            fields: description.fields.to_vec(),
            fixed_bytes: description.fixed_bytes,
        }
    }

    /// Another layout of the same type: only the leading fields in which both agree can be
    /// described. A record of either is then read rightly as far as that; the rest stays raw.
    fn merge(&mut self, other: &Description<'_>) {
        let pairs = self.fields.iter().zip(other.fields);
        let agree = pairs.take_while(|(ours, theirs)| ours == theirs).count();
        if agree == self.fields.len() && agree == other.fields.len() {
            return;
        }
        self.fields.truncate(agree);
        self.fixed_bytes = self.fields.last().map_or(0, end);
    }

    /// To be registered.
    pub(super) fn description(&self) -> Description<'_> {
        Description {
            event: self.event,
            fields: &self.fields,
            fixed_bytes: self.fixed_bytes,
        }
    }
}

/// Where the bytes of a field end.
fn end(field: &Field) -> u32 {
    field.place.offset + field.place.bytes()
}
