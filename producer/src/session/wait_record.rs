//! The record of a wait for room in a full ring: a finished span that no place in a program emits.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ringmark_format::{TypeId, waits};

use crate::description::{Description, EventType, Field, Level, Shape, TypeState};

static STATE: TypeState = TypeState::new();

/// Gives `to` the type's description, once: before a session starts whose threads may wait.
pub(super) fn describe(to: impl FnOnce(&Description<'_>)) {
    static DESCRIBED: AtomicBool = AtomicBool::new(false);
    if DESCRIBED.swap(true, Relaxed) {
        return;
    }
    let event = EventType {
        name: waits::NAME,
        target: waits::TARGET,
        category: waits::CATEGORY,
        level: Level::Error,
        shape: Shape::Span,
        file: "",
        line: 0,
        state: &STATE,
    };
    to(&Description {
        event,
        fields: &[Field::DURATION],
        fixed_bytes: 8,
    });
}

/// The type in this session, enabled or not: times cannot be read without the waits. `None`: it has
/// none.
pub(super) fn type_id() -> Option<TypeId> {
    Some(TypeId(STATE.id())).filter(|id| id.0 != 0)
}
