//! The items of a dump in groups that share nothing, which need no merge with each other.

use std::collections::BTreeMap;

use ringmark_format::schema::Shape;

use crate::events::cursor::Placing;
use crate::events::merge::Events;
use crate::trace_file::dump::Dump;
use crate::trace_file::session::{Session, Slot};

/// What is in one order.
enum Group<'a> {
    Process(Vec<&'a Session>),
    Slot(&'a Session, &'a Slot),
    /// What belongs to no page.
    Rest(&'a Session),
}

impl Dump {
    /// Every event and loss, as [`Self::events_bare`] has them, in groups: one for each ring slot, or
    /// for each process whose threads may have records in several. Each group is in the order of time; no
    /// thread and no call is in two of them. Less is merged, so this is faster.
    ///
    /// The records of one span over threads may lie in several groups: for those there is
    /// [`Self::events_of_lives`].
    pub fn events_apart(&self) -> impl Iterator<Item = Events<'_>> {
        groups(&self.sessions).into_iter().map(|group| match group {
            Group::Process(sessions) => Events::merged(&sessions, (Placing::Named, None)),
            Group::Slot(session, slot) => {
                Events::of_slots([(session, slot)].into_iter(), (Placing::Named, None))
            }
            Group::Rest(session) => Events::rest_of(session),
        })
    }
}

impl Dump {
    /// Whether no thread, call or span of a session has records in several slots.
    pub(super) fn is_apart(&self, session: &Session) -> bool {
        let of_process = |other: &&Session| other.process == session.process;
        let mut types = session.schema.types().iter();
        let has_parts = types.any(|ty| ty.occurs && ty.shape.is_some_and(Shape::is_part_of_span));
        let is_alone = self.sessions.iter().filter(of_process).nth(1).is_none();
        is_alone && !has_parts && !has_calls_over_threads(session)
    }
}

fn groups(sessions: &[Session]) -> Vec<Group<'_>> {
    let mut processes: BTreeMap<usize, Vec<&Session>> = BTreeMap::new();
    for session in sessions {
        processes.entry(session.process).or_default().push(session);
    }
    let mut groups = Vec::new();
    for sessions in processes.into_values() {
        match sessions.as_slice() {
            [session] if !has_calls_over_threads(session) => {
                let slots = session.slots.iter();
                groups.extend(slots.map(|slot| Group::Slot(session, slot)));
                groups.push(Group::Rest(session));
            }
            _ => groups.push(Group::Process(sessions)),
        }
    }
    groups
}

/// Whether calls on other stacks are recorded, which may end in another thread.
fn has_calls_over_threads(session: &Session) -> bool {
    let mut types = session.schema.types().iter();
    types.any(|ty| ty.occurs && ty.function.is_some_and(|meaning| meaning.has_slot))
}
