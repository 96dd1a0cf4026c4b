//! Promise: a traced program runs as it does untraced, also under a tool that interprets its every
//! instruction and hides the kernel's page of code.

use ringmark_tests::account::Account;
use ringmark_tests::recording::read;
use ringmark_tests::require_tools;
use ringmark_tests::stage::{SOON, Stage};

const EMIT: &str = env!("CARGO_BIN_EXE_emit");

#[test]
fn events_are_recorded_under_valgrind() {
    if !require_tools(&["valgrind"]) {
        return;
    }
    for more in ["", ",control=off", ",clock=coarse"] {
        let stage = Stage::new("valgrind");
        let arguments = format!("-q --tool=none {EMIT} 2 100");
        let program = stage.start("valgrind", &format!("mode=discard{more}"), &arguments);
        let _ = program.finish(2 * SOON).expect_code(0);
        let account = Account::of(&read(&[stage.ring_file()]));
        account.expect_exact(2, 100);
        assert_eq!(account.lost(), 0);
    }
}
