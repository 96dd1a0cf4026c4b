//! A shared object with a session of its own, which its host may close while the session runs.

use ringmark::{Keep, Mode, Session, event};

/// Starts the session, with these bits: 1 in memory without a name, 2 without the helper thread.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_start(how: u32) -> bool {
    let builder = Session::builder().mode(Mode::Overwrite).keep(Keep::Always);
    let builder = builder.memfd(how & 1 != 0).control(how & 2 == 0);
    builder.start().is_ok()
}

/// Emits as many events.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_emit(events: u64) {
    for seq in 0..events {
        event!("plugin.event", seq = seq);
    }
}
