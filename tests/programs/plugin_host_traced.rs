//! As `plugin_host`, in a program that has a session of its own.

mod plugin_host;

use ringmark::{Keep, Mode, Session, event};

fn main() {
    let builder = Session::builder().mode(Mode::Overwrite).keep(Keep::Always);
    let session = builder.start().expect("a session");
    event!("host.event", seq = 0_u64);
    plugin_host::main();
    event!("host.event", seq = 1_u64);
    assert!(session.path().exists());
}
