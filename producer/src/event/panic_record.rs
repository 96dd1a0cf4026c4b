//! A panic as an event: its message and its place, recorded before anything is printed.
//!
//! The hook that was there runs afterwards. It may not return, and the process may end in it. A hook
//! that the program sets later without calling ours leaves panics without a record.
//!
//! A hook runs for panics that are caught, too, so a record says that there was a panic, not that
//! the program ended by it.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::panic::{self, PanicHookInfo};
use std::thread;

use ringmark_format::panics;

use super::callsite::{self, Callsite};
use super::emit;
use super::text::Text;
use crate::description::{EventType, Level, Now, Shape, TypeState};
use crate::session;

/// The type of the records.
struct Panic;

/// Message, file, line: as [`panics::FIELDS`] names them.
type Payload = (Text, Text, u32);

impl Callsite for Panic {
    const FIELDS: &'static [&'static str] = &panics::FIELDS;
    const SHAPE: Shape = Shape::Instant;

    fn event() -> EventType {
        EventType {
            name: panics::NAME,
            target: panics::TARGET,
            category: panics::CATEGORY,
            level: Level::Error,
            shape: Shape::Instant,
            file: "",
            line: 0,
            state: Self::state(),
        }
    }

    fn state() -> &'static TypeState {
        static STATE: TypeState = TypeState::new();
        &STATE
    }
}

/// Has every panic recorded from now on, once. Only the copy of this library in the program's own
/// file does: a shared object may have a standard library, and so hooks, of its own.
///
/// Setting a hook would panic in a thread that panics: then nothing is recorded.
pub(crate) fn install() {
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    if thread::panicking() || !session::is_in_program() || INSTALLED.swap(true, Relaxed) {
        return;
    }
    callsite::register::<Panic, Payload>();
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        record(info);
        before(info);
    }));
}

/// Takes no lock and calls nothing of the program's: the message is one that the standard library
/// has made, and both texts are cut to what fits on the stack.
fn record(info: &PanicHookInfo<'_>) {
    let id = Panic::state().enabled();
    if id == 0 {
        return;
    }
    let message = info.payload();
    let message = match (
        message.downcast_ref::<&str>(),
        message.downcast_ref::<String>(),
    ) {
        (Some(text), _) => text,
        (None, Some(text)) => text.as_str(),
        (None, None) => "",
    };
    let (file, line) = info
        .location()
        .map_or(("", 0), |place| (place.file(), place.line()));
    let payload = (Text::copy(message), Text::copy(file), line);
    emit::record(id, Now::Clock, None, payload);
}
